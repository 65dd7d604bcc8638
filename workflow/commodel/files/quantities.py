"""Quantities as users write them: numbers with units (`parse_with_unit`), axes (`expand_axis`),
names of settings (`parse_setting`), and what a measured time is of (`parse_statistic`,
`parse_repetitions`).

A number with a unit is converted to seconds, bytes, s/B or B/s. An axis is one value, a list or a
range, with at most `MAX_ENTRIES` values.

A setting names the circumstances of a measurement, for platforms whose allocations differ. It is a
text of one line, or pairs such as `rails=2 transport=ucx` in any order; blank means no setting.
Times of different settings are never samples of one point, even if everything else is equal.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from commodel.errors import UserError, make_printable, suggest_name
from commodel.records import Repetitions, Statistic
from commodel.units import (
    BYTE_UNITS,
    MAX_BYTES,
    RATE_UNITS,
    TIME_UNITS,
    parse_bandwidth,
    parse_bare_number,
    parse_bytes,
    parse_number,
    parse_number_of_seconds,
    show_value,
    suggest_time_units,
)

WANTED_QUANTITY = "a number, or one with its unit: 2.5us, 0.1ns/B or 12.5 GB/s"


def parse_with_unit(value: str) -> tuple[float, str]:
    """Return a time, a time per byte, a bandwidth or a size, and its unit: s, s/B, B/s, B, or empty
    without a unit."""
    text = value.strip()
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text)
    if parse_bare_number(text) is not None:
        return sign * parse_number(text), ""
    before_per, per_byte = text.removesuffix("/B"), text.endswith("/B")
    unit = before_per.lstrip("0123456789.+-eE ")  # the parsers check the number
    if unit in TIME_UNITS:
        return sign * parse_number_of_seconds(before_per), "s/B" if per_byte else "s"
    if not unit or unit == before_per or per_byte:
        raise UserError(f"found {show_value(value)}, wanted {WANTED_QUANTITY}")
    if unit in RATE_UNITS:
        return sign * parse_bandwidth(text), "B/s"
    if unit in BYTE_UNITS:
        return sign * float(parse_bytes(text)), "B"
    hint = suggest_name(unit, [*TIME_UNITS, *RATE_UNITS, *BYTE_UNITS])
    raise UserError(f"found the unit '{make_printable(unit, 20)}' in {show_value(value)}; {hint}")


def check_unit(number: float, unit: str, wanted: str) -> None:
    """Refuse a number whose unit is not the wanted one.

    A number without a unit is accepted, except for seconds, where half of the readers mean
    microseconds. 0 is 0 in every unit.
    """
    if unit == wanted:
        return
    if unit:
        right = "a number without a unit" if wanted in ("", "1") else f"a value in {wanted}"
        raise UserError(f"found the unit '{make_printable(unit, 20)}', wanted {right}")
    if number and wanted.startswith("s"):
        number_text = f"{number:g}".replace("e-0", "e-")
        right = (
            f"such as {suggest_time_units(number_text, wanted[1:])}"
            if wanted in ("s", "s/B")
            else wanted
        )
        raise UserError(f"found '{number_text}', wanted a unit with it, {right}")


MAX_ENTRIES = 100_000
RANGE_KEYS = ("from", "to", "factor", "step")
RANGE = "{from, to, factor} or {from, to, step}"
TEXT_RANGE = "FROM:TO:*FACTOR or FROM:TO:+STEP"


def expand_axis(values: object, parse: Callable[[object], int] = parse_bytes) -> list[int]:
    """Return an axis as a list, from a scalar, a list, a range mapping, or the text of a command
    line option."""
    match values:
        case Mapping():
            return _expand_mapping(values, parse)
        case list() | tuple():
            entries = [parse(value) for value in check_entry_count(values)]
        case str() if "," in values or ":" in values:
            # Checked after each part, since many short ranges together may be too many.
            entries = []
            for part in values.split(","):
                entries += _expand_text(part, parse)
                check_entry_count(entries)
        case _:
            entries = [parse(values)]
    if not entries:
        raise UserError("found an empty list, wanted at least one value")
    return entries


def check_entry_count(entries: Sequence[Any]) -> Sequence[Any]:
    """Return the entries; refuse more than an axis may have."""
    if len(entries) > MAX_ENTRIES:
        raise UserError(f"found {len(entries)} values, wanted at most {MAX_ENTRIES}")
    return entries


def _expand_mapping(values: Mapping[str, Any], parse: Callable[[object], int]) -> list[int]:
    unknown = [key for key in values if key not in RANGE_KEYS]
    if unknown:
        raise UserError(
            f"found {show_value(unknown[0])} in a range; {suggest_name(str(unknown[0]), RANGE_KEYS)}"
        )
    if "from" not in values or "to" not in values or ("factor" in values) == ("step" in values):
        raise UserError(f"found a range of {', '.join(values) or 'nothing'}, wanted {RANGE}")
    low, high = parse(values["from"]), parse(values["to"])
    if "step" in values:
        return _expand_steps(low, high, parse(values["step"]))
    return _expand_factors(low, high, parse_number(values["factor"]))


def _expand_text(part: str, parse: Callable[[object], int]) -> list[int]:
    pieces = [piece.strip() for piece in part.split(":")]
    if len(pieces) == 1:
        return [parse(pieces[0])]
    if len(pieces) != 3 or pieces[2][:1] not in ("*", "+"):
        raise UserError(
            f"found {show_value(part.strip())}, wanted {TEXT_RANGE}, or values with commas between them"
        )
    key = "factor" if pieces[2][0] == "*" else "step"
    return _expand_mapping({"from": pieces[0], "to": pieces[1], key: pieces[2][1:]}, parse)


def _expand_steps(low: int, high: int, step: int) -> list[int]:
    if step < 1:
        raise UserError(f"found a range with step {step}, wanted a step of at least 1")
    _check_range(low, high, (high - low) // step + 1)
    return list(range(low, high + 1, step))


def _expand_factors(low: int, high: int, factor: float) -> list[int]:
    """Return low, low·factor, … up to high. With fractional factors, entries are rounded, and equal
    ones are omitted."""
    if factor <= 1:
        raise UserError(f"found a range with factor {factor:g}, wanted a factor above 1")
    if low < 1:
        raise UserError("found a range with a factor from 0, wanted from: 1 or more")
    count = math.log(high / low) / math.log(factor) + 1 if high >= low else 0
    _check_range(low, high, count)
    # larger factors give the same entries, but their powers overflow
    factor = min(factor, 2.0 * MAX_BYTES)
    exact = int(factor) if factor == int(factor) else factor
    entries = (round(low * exact**power) for power in range(int(count) + 2))
    return list(dict.fromkeys(number for number in entries if number <= high))


def _check_range(low: int, high: int, count: float) -> None:
    if high < low:
        raise UserError(f"found a range from {low} to {high}, wanted 'to' not below 'from'")
    if count > MAX_ENTRIES:
        raise UserError(f"found a range of {count:.0f} values, wanted at most {MAX_ENTRIES}")


SETTING_VARIABLE = "COMMODEL_SETTING"  # environment: name of the setting of a measurement
MAX_SETTING_LENGTH = 80  # characters


def parse_setting(value: object) -> str:
    """Return the name of a setting with single blanks; if it consists of pairs, these are sorted by
    name."""
    text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not text.isprintable() or len(text) > MAX_SETTING_LENGTH:
        raise UserError(
            f"found {show_value(value)}, wanted one line of text, at most {MAX_SETTING_LENGTH} characters"
        )
    words = text.split()
    if not all(word.partition("=")[0] and "=" in word for word in words):
        return " ".join(words)
    pairs = sorted(words)
    names = [pair.partition("=")[0] for pair in pairs]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise UserError(f"found '{twice}' twice, wanted each name once")
    return " ".join(pairs)


def parse_statistic(text: str) -> Statistic:
    return Statistic(_find_word(text, list(Statistic)))


def parse_repetitions(text: str) -> Repetitions:
    return Repetitions(_find_word(text, list(Repetitions)))


def _find_word(text: str, words: Sequence[str]) -> str:
    """Return the word that a text is, in any case; refuse any other text."""
    word = " ".join(text.split()).lower()
    if word not in words:
        raise UserError(f"found {show_value(text)}, {suggest_name(word, words)}")
    return word
