"""A number with its unit, where a file may hold any of several: the value, in the unit that commodel counts in."""

from commodel.errors import UserError, one_line, suggest
from commodel.units import (
    BYTE_UNITS,
    RATE_UNITS,
    TIME_UNITS,
    parse_bandwidth,
    parse_bytes,
    parse_number_of_seconds,
    shown,
)

WANTED = "a number, or one with its unit: 2.5us, 0.1ns/B or 12.5 GB/s"


def parse_with_unit(value: str) -> tuple[float, str]:
    """A time, a time per byte, a bandwidth or a size, and its unit: s, s/B, B/s or B."""
    text = value.strip()
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text)
    each, per_byte = text.removesuffix("/B"), text.endswith("/B")
    unit = each.lstrip("0123456789.+-eE ")  # the parsers look at the number
    if unit in TIME_UNITS:
        return sign * parse_number_of_seconds(each), "s/B" if per_byte else "s"
    if not unit or unit == each or per_byte:
        raise UserError(f"found {shown(value)}, wanted {WANTED}")
    if unit in RATE_UNITS:
        return sign * parse_bandwidth(text), "B/s"
    if unit in BYTE_UNITS:
        return sign * float(parse_bytes(text)), "B"
    known = suggest(unit, [*TIME_UNITS, *RATE_UNITS, *BYTE_UNITS])
    raise UserError(f"found the unit '{one_line(unit, 20)}' in {shown(value)}; {known}")
