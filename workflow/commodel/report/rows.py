"""The rows of a table, kept column by column: as tuples of numbers and texts those of a large comparison would take a
gigabyte, of which most is the same few texts again and again."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd

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
