"""Local work of a schedule: what ranks combine, copy or compute once the messages of a step have come."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

KINDS = ("reduce", "copy", "compute")  # the index is what the column holds


@dataclass(frozen=True, eq=False)
class Work:
    """Local work: reduce and copy are given in bytes, compute in seconds."""

    step: np.ndarray
    rank: np.ndarray
    kind: np.ndarray  # index into KINDS
    bytes: np.ndarray
    seconds: np.ndarray

    @classmethod
    def empty(cls) -> "Work":
        return cls(*(np.empty(0, dtype=dtype) for dtype in (int, int, int, float, float)))

    @classmethod
    def reduce(cls, step: ArrayLike, rank: ArrayLike, bytes: ArrayLike) -> "Work":
        """Rank combines `bytes` bytes it has received into its own."""
        return cls._of_bytes("reduce", step, rank, bytes)

    @classmethod
    def copy(cls, step: ArrayLike, rank: ArrayLike, bytes: ArrayLike) -> "Work":
        """Rank moves `bytes` bytes within its memory."""
        return cls._of_bytes("copy", step, rank, bytes)

    @classmethod
    def compute(cls, step: ArrayLike, rank: np.ndarray, seconds: np.ndarray) -> "Work":
        """Each of these ranks computes, for as long as its entry of `seconds` says."""
        of_rank = seconds[rank]
        steps = np.broadcast_to(step, of_rank.shape)
        return cls(steps, rank, np.full(of_rank.shape, KINDS.index("compute")), np.zeros(of_rank.shape), of_rank)

    @classmethod
    def _of_bytes(cls, kind: str, step: ArrayLike, rank: ArrayLike, bytes: ArrayLike) -> "Work":
        step, rank, bytes = np.broadcast_arrays(np.asarray(step), np.asarray(rank), np.asarray(bytes, dtype=float))
        return cls(step, rank, np.full(step.shape, KINDS.index(kind)), bytes, np.zeros(step.shape))

    @classmethod
    def joined(cls, parts: "Sequence[Work]") -> "Work":
        columns = zip(*(part.columns for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns)) if parts else cls.empty()

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        return self.step, self.rank, self.kind, self.bytes, self.seconds

    def in_order(self) -> "Work":
        order = by_step(self.step)
        return Work(*(column[..., order] for column in self.columns))


def by_step(step: np.ndarray) -> np.ndarray:
    """Rows by step, those of a step in row order. numpy sorts short integers by radix, in linear time."""
    few = len(step) and step.min() >= 0 and step.max() < 1 << 15
    return np.argsort(step.astype(np.int16) if few else step, kind="stable")
