"""Repeated rounds (`Rounds`): in each round every rank sends one message and receives one, as around a ring or
pairwise.

There may be thousands of rounds with thousands of messages each. They are therefore described, and expanded only on
demand (`Long`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from commodel.patterns.schedule import Schedule, Work, check_rows

Of = Callable[[np.ndarray | int, np.ndarray], np.ndarray]  # a function of rounds and senders


@dataclass(frozen=True, eq=False)
class Rounds:
    """Repeated rounds: `to` returns the receiver of each sender in a round, `block` its block, `at` the block's
    address.

    Ranks `turn` apart send to receivers that are `turn` apart.
    """

    ranks: int
    count: int
    to: Of
    block: Of
    sizes: np.ndarray
    at: Callable[[np.ndarray, np.ndarray], ArrayLike]
    combines: bool = False
    turn: int = 1
    repeats: bool = True  # receivers repeat every `turn` rounds
    follows: bool = False  # a rank's block is sent by the next rank in the next round
    advances: bool = False  # a sender's receiver is one rank further in the next round
    flips: bool = False  # 2^n ranks: flipping a bit of all ranks' numbers maps messages to messages

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
        """Return the receivers and bytes of these senders in these rounds."""
        return self.to(number, source), self.sizes[self.block(number, source)]

    def round(self, number: int, node: np.ndarray) -> Schedule:
        """Return one round as a schedule."""
        source = np.arange(self.ranks)
        target, bytes = self.sent(number, source)
        work = Work.reduce(0, target, bytes) if self.combines else None
        return Schedule.of(self.ranks, 0, source, target, bytes, work=work).placed(node)


class Long(Schedule):
    """A Schedule with repeated rounds among its `parts`, which a rank does one after the other. Columns are expanded on
    demand."""

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
        """The schedule with all messages."""
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
        return False  # never stacked, but predicted separately

    def resized(self, bytes: np.ndarray, work_bytes: np.ndarray) -> Schedule:
        return self.whole.resized(bytes, work_bytes)

    step, src, dst, bytes, work, holds, ends = (
        property(lambda self, name=name: getattr(self.whole, name))
        for name in ("step", "src", "dst", "bytes", "work", "holds", "ends")
    )
