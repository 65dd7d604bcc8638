"""Values and sentences of a report: how numbers, counts and lists are written.

How one value reads, the same in every writer.

Small pieces of the sentences: counts, shares, sizes, gains, lists.

The rows of a table, kept column by column: as tuples of numbers and texts those of a large comparison would take a
gigabyte, of which most is the same few texts again and again.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from commodel.errors import one_line
from commodel.stats import NEGLIGIBLE
from commodel.units import format_bytes

LONGEST_TEXT = 2000


def plain(value: object) -> object:
    """A value from a frame or a YAML file as None, bool, int, float or safe one-line text."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value) if abs(int(value)) < 2**53 else str(int(value))
    if isinstance(value, float | np.floating):
        return float(value)
    return one_line(value, LONGEST_TEXT)


def finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def comparable(value: object) -> bool:
    """A number that has a place on a scale: infinity has, n/a has not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


def number_format(kind: str, value: float) -> str:
    """The spreadsheet format of one number; `show` prints the same digits."""
    if kind in ("count", "figure"):
        return "#,##0"
    if kind == "percent":
        return "#,##0.0"
    if kind == "signed":
        return "+#,##0.0;-#,##0.0;0.0"
    if kind == "ratio":
        return "0.000"
    if kind == "times":
        return "#,##0.00"
    size = abs(value)
    if size and not 1e-3 <= size < 1e9:
        return "0.000E+00"
    digits = 3 if size == 0 else max(0, 3 - math.floor(math.log10(size)))
    return "#,##0." + "0" * digits if digits else "#,##0"


def show(kind: str, value: object) -> str:
    """One value as the reader sees it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    if math.isnan(value):
        return "n/a"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    form = number_format(kind, value)
    if "E" in form:
        return f"{value:.3e}".upper()
    digits = len(form.split(";")[0].partition(".")[2])
    text = f"{value:,.{digits}f}"
    if kind == "signed":
        return "0.0" if value == 0 else f"{value:+,.1f}"
    return text


def about(value: float) -> str:
    """A value that the data do not determine, to one digit: `≈ 3`."""
    return f"≈ {float(f'{value:.0e}'):,.15g}".upper() if math.isfinite(value) else show("number", value)


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


LARGEST_INTEGER = 2**53  # of whole numbers that a spreadsheet has


class Numbers(Sequence):
    """Numbers, or flags, each None where `blank` says so."""

    def __init__(self, values: np.ndarray, blank: np.ndarray | None = None):
        self.values, self.blank = values, blank if blank is not None and blank.any() else None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, at):
        if isinstance(at, slice):
            part = Numbers(self.values[at], None if self.blank is None else self.blank[at])
            return list(part)
        return None if self.blank is not None and self.blank[at] else self.values[at].item()

    def __iter__(self) -> Iterator:
        values = self.values.tolist()
        for place in np.flatnonzero(self.blank) if self.blank is not None else ():
            values[place] = None
        return iter(values)


class Texts(Sequence):
    """Each of them once: `codes` says which of them a row has."""

    def __init__(self, codes: np.ndarray, texts: Sequence[str | None]):
        self.codes = codes.astype(np.min_scalar_type(len(texts)))
        self.texts = np.array(texts, dtype=object)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, at):
        texts = self.texts[self.codes[at]]
        return texts.tolist() if isinstance(at, slice) else texts

    def __iter__(self) -> Iterator[str | None]:
        return iter(self[:])


class Rows(Sequence):
    """A row is a tuple. Equal to a tuple of equal rows."""

    def __init__(self, columns: Sequence[Sequence]):
        self.columns = tuple(columns)

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def __getitem__(self, at):
        if isinstance(at, slice):
            return tuple(zip(*(column[at] for column in self.columns), strict=True))
        return tuple(column[at] for column in self.columns)

    def __iter__(self) -> Iterator[tuple]:
        return zip(*self.columns, strict=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows | tuple) and tuple(self) == tuple(other)

    def __repr__(self) -> str:
        return repr(tuple(self))

    __hash__ = None


def kept(column: pd.Series, plain: Callable[[object], object], blank: np.ndarray | None = None) -> Sequence:
    """A column of a frame, its numbers as they are and all else as `plain` has it, equal texts once."""
    kind = column.dtype.kind
    if kind in "bf" or (kind == "i" and (column.empty or column.abs().max() < LARGEST_INTEGER)):
        return Numbers(column.to_numpy(), blank)
    if pd.api.types.infer_dtype(column, skipna=False) == "string" and column.notna().all():
        codes, texts = pd.factorize(column)
        if blank is not None:
            codes[blank] = len(texts)
        return Texts(codes, [*(plain(text) for text in texts), None])
    values = [plain(value) for value in column.tolist()]
    for place in np.flatnonzero(blank) if blank is not None else ():
        values[place] = None
    return values
