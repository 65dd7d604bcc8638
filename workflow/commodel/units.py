"""Sizes, times and counts as people write them, converted to bytes, seconds and whole numbers
(`parse_bytes`, `parse_seconds`, `parse_count`), and back (`format_bytes`, `format_seconds`,
`format_duration`).

This module has the tables of units. Every refusal is a UserError that names the wanted form.
"""

import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from commodel.errors import UserError, make_printable, suggest_name

MAX_BYTES = 1 << 50
MAX_COUNT = 1 << 24
MAX_WAVES = 100_000  # of a point
MAX_SECONDS = 1e9
ROUNDING_ERROR_SECONDS = 1e-15  # smaller times are rounding errors, and shown as 0

# KB and a bare K, M, G are refused on purpose: half of the readers take them for 1024, the other
# half for 1000.
BYTE_UNITS = (
    {"B": 1}
    | {f"{p}B": 1000**i for i, p in enumerate("kMGT", 1)}
    | {f"{p}iB": 1024**i for i, p in enumerate("KMGT", 1)}
)
TIME_UNITS = {
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ns": 1e-9,
    "min": 60.0,
    "h": 3600.0,
}

RATE_UNITS = {f"{unit}/s": scale for unit, scale in BYTE_UNITS.items()}
RATE_UNITS |= {f"{p}bit/s": 1000**i / 8 for i, p in enumerate(("", "k", "M", "G", "T"))}

AMBIGUOUS_KILO = {"K", "k", "KB", "Kb", "kb"}  # as close to kB as to KiB, so both are suggested

# Digits are bounded, since int() and 10**exponent take minutes for very long inputs.
_QUANTITY = re.compile(
    r"([+-]?)((?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?) *([^\W\d_]*(?:/s)?|%)"
)

SIZE = "a size such as 4096, 64KiB or 1 MB"
RATE = "a bandwidth such as 100 Gbit/s or 12.5 GB/s"
TIME = "a time such as 2.5us or 0.1 s"
FRACTION = "a fraction such as 2% or 0.02"
COUNT, NUMBER = "a whole number", "a number such as 4, 0.5 or 1e3"


def show_value(value: object) -> str:
    """Return a wrong value as text for an error message."""
    match value:
        case None:
            return "nothing"
        case bool():
            return f"'{str(value).lower()}'"
        case Mapping():
            return "a mapping"
        case list() | tuple():
            return "a list" if value else "an empty list"
        case int() if abs(value) > 10**30:
            return "an endless number"
    return f"'{make_printable(value, 60)}'"


def parse_bytes(value: object) -> int:
    """Return whole bytes, 0 to 2**50."""
    number = _parse_quantity(value, BYTE_UNITS, SIZE)
    if number > MAX_BYTES:
        raise UserError(f"found {show_value(value)}, wanted at most 1024 TiB")
    if number != int(number):
        raise UserError(f"found {show_value(value)}, wanted whole bytes")
    return int(number)


def parse_bandwidth(value: object) -> float:
    """Return bytes per second.

    A unit is required: half of the readers take a bare 100 for gigabits, the other half for GB.
    """
    if parse_bare_number(value):
        raise UserError(f"found {show_value(value)}, wanted {RATE}")
    number = _parse_quantity(value, RATE_UNITS, RATE)
    if number and not 1 <= number <= MAX_BYTES:
        raise UserError(f"found {show_value(value)}, wanted 1 B/s to 1024 TiB/s")
    return float(number)


def parse_seconds(value: object) -> float:
    """Return a time in seconds.

    A unit is required: half of the readers take a bare 2.5 for microseconds. 0 is 0 in every unit.
    """
    if parse_bare_number(value):
        right = suggest_time_units(make_printable(_format_value(value), 40))
        raise UserError(f"found {show_value(value)}, wanted a unit with it, such as {right}")
    return parse_number_of_seconds(value)


def suggest_time_units(number: str, per: str = "") -> str:
    """Return the likely meanings of a number without a unit; `per` is the rest of the unit, such as
    /B."""
    seconds = f"{number}s{per}"
    return seconds if abs(Decimal(number)) < Decimal("0.001") else f"{number}us{per} or {seconds}"


def parse_number_of_seconds(value: object) -> float:
    """Return a time in seconds; a number without a unit is in seconds, as its key or column
    states."""
    number = _parse_quantity(value, TIME_UNITS, TIME)
    if number > MAX_SECONDS:
        raise UserError(f"found {show_value(value)}, wanted at most {MAX_SECONDS:g} s")
    return float(number)


def parse_bare_number(value: object) -> Decimal | None:
    """Return a quantity without a unit as a number; None if the value has a unit, is negative, or
    is no quantity."""
    match = None if isinstance(value, bool) else _QUANTITY.fullmatch(_format_value(value))
    return Decimal(match[2]) if match and not match[3] and match[1] != "-" else None


def parse_fraction(value: object) -> float:
    """Return a fraction from 0 to 1; a bare 2 is refused, since it may mean 2 %."""
    number = _parse_quantity(value, {"%": Decimal("0.01")}, FRACTION)
    if number > 1:
        raise UserError(f"found {show_value(value)}, wanted {FRACTION}, at most 100%")
    return float(number)


def parse_number(value: object) -> float:
    number = float(_parse_quantity(value, {}, NUMBER))
    if math.isinf(number):
        raise UserError(f"found {show_value(value)}, wanted {NUMBER}")
    return number


def parse_waves(value: object) -> int:
    return parse_count(value, 1, MAX_WAVES)


def format_count(count: int, noun: str) -> str:
    """Return a number with its noun: `1 row`, `3 rows`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def parse_count(value: object, low: int = 1, high: int = MAX_COUNT) -> int:
    number = _parse_quantity(value, {}, COUNT)
    if not low <= number <= high or number != int(number):
        raise UserError(f"found {show_value(value)}, wanted {COUNT} from {low} to {high}")
    return int(number)


def _parse_quantity(value: object, units: Mapping[str, Any], wanted: str) -> Decimal:
    """Return a number times its unit; refuse negative ones. With Decimal, 1.1 kB is exactly 1100
    bytes."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UserError(f"found {show_value(value)}, wanted {wanted}")
    match = _QUANTITY.fullmatch(_format_value(value))
    if match is None:
        raise UserError(f"found {show_value(value)}, wanted {wanted}")
    sign, number, unit = match.groups()
    if unit and not units:
        raise UserError(f"found {show_value(value)}, wanted {wanted}, without a unit")
    if unit and unit not in units:
        meant = suggest_name(unit, units)
        if unit in AMBIGUOUS_KILO and "kB" in units:
            meant = "did you mean 'KiB', 1024 bytes, or 'kB', 1000 bytes?"
        raise UserError(
            f"found the unit '{make_printable(unit, 20)}' in {show_value(value)}; {meant}"
        )
    if sign == "-" and Decimal(number):
        raise UserError(f"found {show_value(value)}, wanted {wanted}, not negative")
    scale = units[unit] if unit else 1
    return Decimal(number) * (scale if isinstance(scale, Decimal) else Decimal(str(scale)))


def _format_value(value: object) -> str:
    """Return the text of a value; empty for an integer beyond every quantity, since str() of
    thousands of digits raises."""
    return "" if isinstance(value, int) and abs(value) > 10**30 else str(value).strip()


def format_bytes(count: int) -> str:
    """Return a size as text, as `1 KiB` only for exact multiples, so that no two sizes look the
    same."""
    for power, prefix in ((4, "T"), (3, "G"), (2, "M"), (1, "K")):
        if count and count % 1024**power == 0:
            return f"{count // 1024**power} {prefix}iB"
    return f"{count} B"


def format_seconds(seconds: float) -> str:
    """Return a time as text, with three significant digits in a suitable unit: `344 µs`."""
    if not math.isfinite(seconds):
        return str(seconds)
    rounded = float(f"{seconds:.2e}")  # before the unit is chosen: 999.9 µs is 1 ms
    if abs(rounded) < ROUNDING_ERROR_SECONDS:
        return "0 s"
    scales = {"s": 1, "ms": 1e3, "µs": 1e6, "ns": 1e9}
    unit = next((unit for unit, scale in scales.items() if abs(rounded) * scale >= 0.9995), "ns")
    scaled = (seconds if abs(seconds) >= 1000 else rounded) * scales[unit]
    return f"{scaled:.0f} {unit}" if abs(scaled) >= 1000 else f"{scaled:.3g} {unit}"


def format_duration(seconds: float) -> str:
    """Return the duration of a measurement or a run as text, in seconds up to two minutes, then in
    minutes, hours or days: `105 s`, `20 min`, `5 h 12 min`, `2 d 0 h`."""
    if seconds < 120:
        return format_seconds(seconds)
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    if minutes < 48 * 60:
        hours, minutes = divmod(minutes, 60)
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(round(seconds / 3600), 24)
    return f"{days:,} d {hours} h" if hours else f"{days:,} d"


def format_ranges(numbers: Iterable[int]) -> list[str]:
    """Return whole numbers in order as texts of ranges, such as `0-3` and `7`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return [f"{first}-{last}" if last > first else f"{first}" for first, last in runs]


def format_extent(leaves: int, ranks: int) -> str:
    """Return the extent of a workload: the leaves of a tree, else ranks."""
    return f"{leaves} leaves" if leaves else f"{ranks} ranks"
