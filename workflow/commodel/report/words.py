"""Small pieces of the sentences: counts, shares, sizes, gains, lists."""

import math
from collections import Counter
from collections.abc import Iterable

from commodel.stats import NEGLIGIBLE
from commodel.units import format_bytes

TALLIED = 4  # words that are counted one by one
ALL = "all"  # operations together
CLOSE = "≈ "  # before a choice that others cannot be told apart from


def simulation(simulated: bool) -> str:
    """In the column that tells simulated rows from measured ones."""
    return "simulated" if simulated else "no"


def origin(platform: str, simulated: set[str]) -> str:
    return f"{platform} (simulated)" if platform in simulated else platform


def span(first: int, last: int) -> str:
    return f"at {size(first)}" if first == last else f"from {size(first)} to {size(last)}"


def size(number: int) -> str:
    """A size that no line break tears apart."""
    return format_bytes(int(number)).replace(" ", "\N{NO-BREAK SPACE}")


def gain(row) -> str:
    """How much faster than the next best, and whether the intervals of the two medians part. Then what it gains over
    the library's own choice, where that is not the next best itself."""
    if row.clear == 0:
        text = f"tied with {row.next}"
    else:
        text = f"{times(row.gain_low, row.gain_high)} faster than {row.next}"
        text += "" if row.clear == row.sizes else f", clear at {row.clear} of {row.sizes} sizes"
    no_library = row.own or not math.isfinite(row.over_low) or row.next_own
    if no_library:
        return text
    if row.over_high <= 1 + NEGLIGIBLE:
        return f"{text}; as fast as the library's own"
    return f"{text}; {times(row.over_low, row.over_high)} faster than the library's own"


def times(low: float, high: float) -> str:
    low, high = f"{low:.2f}", f"{high:.2f}"
    return f"{low}×" if low == high else f"{low}–{high}×"


def by_frequency(words: Iterable[str]) -> list[tuple[str, int]]:
    """Each word with how often it is there, the most frequent first."""
    return sorted(Counter(words).items(), key=lambda item: (-item[1], item[0]))


def tally(words: Iterable[str]) -> str:
    """`a 7, b 2, 3 other`: the most frequent first."""
    counts = by_frequency(words)
    shown = [f"{word} {number}" for word, number in counts[:TALLIED]]
    others = sum(number for _, number in counts[TALLIED:])
    return ", ".join([*shown, f"{others} other"] if others else shown)


def count(number: float, noun: str, plural: str = "s") -> str:
    return f"{int(number)} {noun}{'' if number == 1 else plural}"


def shortened(words: list[str], most: int = 6) -> str:
    """`a, b and 3 more`."""
    return comma(words if len(words) <= most else [*words[: most - 1], f"{len(words) - most + 1} more"])


def ratio(value: float) -> str:
    return "∞" if value == math.inf else f"{value:.2f}"


def comma(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def percent(share: float, sign: bool = False) -> str:
    """A share as a reader wants it: 3.4 %, 57 %, 1240 %."""
    if not math.isfinite(share):
        return "n/a"
    value = 100 * share
    digits = 1 if abs(value) < 9.95 else 0
    return f"{value:+.{digits}f} %" if sign else f"{value:.{digits}f} %"
