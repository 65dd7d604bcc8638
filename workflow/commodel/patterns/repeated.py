"""Rounds that repeat: in each every rank sends one message and gets one, as around a ring or pairwise. There may be
thousands of them with thousands of messages each, so they are described, and written out only for those who ask.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from commodel.patterns.schedule import Schedule, Work, check_rows

Of = Callable[[np.ndarray | int, np.ndarray], np.ndarray]  # of rounds and of senders in them


@dataclass(frozen=True, eq=False)
class Rounds:
    """`to` tells whom a sender sends to in a round, `block` which of the blocks of these `sizes`, `at` the address of
    its first byte. Ranks that are `turn` apart do the same, as far as only who sends to whom counts."""

    ranks: int
    count: int
    to: Of
    block: Of
    sizes: np.ndarray
    at: Callable[[np.ndarray, np.ndarray], ArrayLike]
    combines: bool = False
    turn: int = 1
    repeats: bool = True  # every `turn` rounds everyone sends to the same rank again
    follows: bool = False  # in the next round the next rank sends the block that this one sends now
    advances: bool = False  # in the next round everyone sends to the rank after the one it sends to now
    flips: bool = False  # a power of two ranks: who sends to whom stays so where bits of all ranks' numbers are flipped

    @property
    def messages(self) -> int:
        return self.ranks * self.count

    @cached_property
    def even(self) -> bool:
        """Whether all messages have the same size."""
        return bool(self.sizes.min() == self.sizes.max())

    @property
    def width(self) -> int:
        return self.ranks if self.even else self.messages

    def sent(self, number: ArrayLike, source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """To whom these senders send in these rounds, and how much."""
        return self.to(number, source), self.sizes[self.block(number, source)]

    def round(self, number: int, node: np.ndarray) -> Schedule:
        """Return one round by itself."""
        source = np.arange(self.ranks)
        target, bytes = self.sent(number, source)
        work = Work.reduce(0, target, bytes) if self.combines else None
        return Schedule.of(self.ranks, 0, source, target, bytes, work=work).placed(node)


class Long(Schedule):
    """A Schedule with repeated rounds among its `parts`, which a rank does one after the other. The columns are written
    out when somebody looks at them."""

    def __init__(
        self, ranks: int, parts: Sequence[Schedule | Rounds], root: int | None, write: Callable[[], Schedule]
    ) -> None:
        own = {"ranks": ranks, "root": root, "parts": tuple(parts), "write": write, "node": np.arange(ranks)}
        self.__dict__.update(own)

    def placed(self, node: np.ndarray) -> "Long":
        parts = [part if isinstance(part, Rounds) else part.placed(node) for part in self.parts]
        placed = Long(self.ranks, parts, self.root, lambda: self.write().placed(node))
        placed.__dict__["node"] = np.asarray(node)
        return placed

    @cached_property
    def whole(self) -> Schedule:
        """The same, written out."""
        check_rows(self.messages)
        return self.write()

    @property
    def messages(self) -> int:
        return sum(part.messages for part in self.parts)

    @property
    def width(self) -> int:
        return sum(part.width for part in self.parts)

    @property
    def sizes(self) -> int:
        return 1

    @property
    def last_step(self) -> int:
        return sum(part.count if isinstance(part, Rounds) else part.last_step + 1 for part in self.parts) - 1

    @property
    def reduces(self) -> bool:
        rounds = (
            part.combines and part.sizes.any() if isinstance(part, Rounds) else part.reduces for part in self.parts
        )
        return any(rounds)

    @property
    def largest(self) -> np.ndarray:
        return self.extremes()[1][0]

    def longest_work(self, kind: str) -> np.ndarray:
        combined = [part.sizes.max() for part in self.parts if isinstance(part, Rounds) and part.combines]
        others = [part.longest_work(kind) for part in self.parts if not isinstance(part, Rounds)]
        return np.max([0.0, *(combined if kind == "reduce" else ()), *others], keepdims=True)

    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        lengths = [part.sizes if isinstance(part, Rounds) else part.bytes for part in self.parts if part.messages]
        return np.array([min(sizes.min() for sizes in lengths)]), np.array([max(sizes.max() for sizes in lengths)])

    def alike(self, other: Schedule) -> bool:
        return False  # never stacked with others: it is predicted by itself

    def resized(self, bytes: np.ndarray, work_bytes: np.ndarray) -> Schedule:
        return self.whole.resized(bytes, work_bytes)

    step, src, dst, bytes, work, holds, ends = (
        property(lambda self, name=name: getattr(self.whole, name))
        for name in ("step", "src", "dst", "bytes", "work", "holds", "ends")
    )
