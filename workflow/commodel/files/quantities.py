"""A number with its unit, where a file or an option may hold any of several: its value in the unit that commodel counts
in, and whether that is the unit in which it is wanted."""

from commodel.errors import UserError, one_line, suggest
from commodel.units import (
    BYTE_UNITS,
    RATE_UNITS,
    TIME_UNITS,
    bare_number,
    parse_bandwidth,
    parse_bytes,
    parse_number,
    parse_number_of_seconds,
    shown,
    with_time_unit,
)

WANTED = "a number, or one with its unit: 2.5us, 0.1ns/B or 12.5 GB/s"


def parse_with_unit(value: str) -> tuple[float, str]:
    """A time, a time per byte, a bandwidth or a size, and its unit: s, s/B, B/s or B; empty of a number alone."""
    text = value.strip()
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text)
    if bare_number(text) is not None:
        return sign * parse_number(text), ""
    before_per, per_byte = text.removesuffix("/B"), text.endswith("/B")
    unit = before_per.lstrip("0123456789.+-eE ")  # the parsers look at the number
    if unit in TIME_UNITS:
        return sign * parse_number_of_seconds(before_per), "s/B" if per_byte else "s"
    if not unit or unit == before_per or per_byte:
        raise UserError(f"found {shown(value)}, wanted {WANTED}")
    if unit in RATE_UNITS:
        return sign * parse_bandwidth(text), "B/s"
    if unit in BYTE_UNITS:
        return sign * float(parse_bytes(text)), "B"
    hint = suggest(unit, [*TIME_UNITS, *RATE_UNITS, *BYTE_UNITS])
    raise UserError(f"found the unit '{one_line(unit, 20)}' in {shown(value)}; {hint}")


def check_unit(number: float, unit: str, wanted: str) -> None:
    """Refuses a number of another unit than the wanted one. One without a unit is taken for what is wanted, but not for
    seconds: half of the readers mean microseconds. 0 is 0 in every unit."""
    if unit == wanted:
        return
    if unit:
        right = "a number without a unit" if wanted in ("", "1") else f"a value in {wanted}"
        raise UserError(f"found the unit '{one_line(unit, 20)}', wanted {right}")
    if number and wanted.startswith("s"):
        alone = f"{number:g}".replace("e-0", "e-")
        right = f"such as {with_time_unit(alone, wanted[1:])}" if wanted in ("s", "s/B") else wanted
        raise UserError(f"found '{alone}', wanted a unit with it, {right}")
