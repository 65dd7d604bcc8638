"""Several values, as people write an axis: one, a list, a range; none may have more entries than anybody waits for."""

import math
from collections.abc import Callable, Mapping, Sequence

from commodel.errors import UserError, suggest
from commodel.units import MAX_BYTES, parse_bytes, parse_number, shown

MAX_ENTRIES = 100_000
RANGE = "{from, to, factor} or {from, to, step}"
TEXT_RANGE = "FROM:TO:*FACTOR or FROM:TO:+STEP"


def expand(values: object, parse: Callable[[object], int] = parse_bytes) -> list[int]:
    """An axis as a list: from a scalar, a list, a range mapping, or the text that the command line takes."""
    match values:
        case Mapping():
            return _expand_mapping(values, parse)
        case list() | tuple():
            entries = [parse(value) for value in bounded(values)]
        case str() if "," in values or ":" in values:
            # Bounded as it grows: many short ranges could add up to more than one may.
            entries = []
            for part in values.split(","):
                entries += _expand_text(part, parse)
                bounded(entries)
        case _:
            entries = [parse(values)]
    if not entries:
        raise UserError("found an empty list, wanted at least one value")
    return entries


def bounded(entries: Sequence) -> Sequence:
    """`entries`, unless they are more than any axis may have."""
    if len(entries) > MAX_ENTRIES:
        raise UserError(f"found {len(entries)} values, wanted at most {MAX_ENTRIES}")
    return entries


def _expand_mapping(values: Mapping, parse: Callable[[object], int]) -> list[int]:
    for key in values:
        if key not in ("from", "to", "factor", "step"):
            raise UserError(f"found {shown(key)} in a range; {suggest(str(key), ('from', 'to', 'factor', 'step'))}")
    if "from" not in values or "to" not in values or ("factor" in values) == ("step" in values):
        raise UserError(f"found a range of {', '.join(values) or 'nothing'}, wanted {RANGE}")
    low, high = parse(values["from"]), parse(values["to"])
    if "step" in values:
        return _steps(low, high, parse(values["step"]))
    return _factors(low, high, parse_number(values["factor"]))


def _expand_text(part: str, parse: Callable[[object], int]) -> list[int]:
    pieces = [piece.strip() for piece in part.split(":")]
    if len(pieces) == 1:
        return [parse(pieces[0])]
    if len(pieces) != 3 or pieces[2][:1] not in ("*", "+"):
        raise UserError(f"found {shown(part.strip())}, wanted {TEXT_RANGE}, or values with commas between them")
    key = "factor" if pieces[2][0] == "*" else "step"
    return _expand_mapping({"from": pieces[0], "to": pieces[1], key: pieces[2][1:]}, parse)


def _steps(low: int, high: int, step: int) -> list[int]:
    if step < 1:
        raise UserError(f"found a range with step {step}, wanted a step of at least 1")
    _check_range(low, high, (high - low) // step + 1)
    return list(range(low, high + 1, step))


def _factors(low: int, high: int, factor: float) -> list[int]:
    """low, low·factor, … up to high. Fractional factors are rounded, and what rounds to the same is kept once."""
    if factor <= 1:
        raise UserError(f"found a range with factor {factor:g}, wanted a factor above 1")
    if low < 1:
        raise UserError("found a range with a factor from 0, wanted from: 1 or more")
    count = math.log(high / low) / math.log(factor) + 1 if high >= low else 0
    _check_range(low, high, count)
    factor = min(factor, 2.0 * MAX_BYTES)  # beyond every entry already; its powers must not overflow
    exact = int(factor) if factor == int(factor) else factor
    entries = (round(low * exact**power) for power in range(int(count) + 2))
    return list(dict.fromkeys(entry for entry in entries if entry <= high))


def _check_range(low: int, high: int, count: float) -> None:
    if high < low:
        raise UserError(f"found a range from {low} to {high}, wanted 'to' not below 'from'")
    if count > MAX_ENTRIES:
        raise UserError(f"found a range of {count:.0f} values, wanted at most {MAX_ENTRIES}")
