"""Repeated rounds (`Rounds`): in each round every rank sends one message and receives one, as in a
ring algorithm.

There may be thousands of rounds with thousands of messages each. A `CompactSchedule` therefore
stores the functions that define the rounds, and computes the columns of its messages only when they
are read.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from commodel.patterns.schedule import Schedule, Work, check_rows
from commodel.records import Statistic

# rounds; of more repeated rounds only the middle one is evaluated
MAX_EVALUATED_ROUNDS = 64

# of the numbers of rounds and of the senders
RoundFunction = Callable[[np.ndarray | int, np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Rounds:
    """`count` repeated rounds, defined by functions of the number of the round and of the sender.

    The rounds are symmetric: ranks that differ by `shift` send to receivers that differ by `shift`.
    """

    ranks: int
    count: int
    receiver: RoundFunction
    block: RoundFunction  # number of the block that is sent
    sizes: np.ndarray  # bytes of each block
    # of the first byte, in the data of the operation
    address: Callable[[np.ndarray, np.ndarray], ArrayLike]
    combines: bool = False  # the receiver reduces the block into its own data
    shift: int = 1
    periodic: bool = True  # the receivers of a sender repeat with a period of `shift` rounds
    relays_blocks: bool = False  # in the next round, the receiver sends the block to the next rank
    receivers_advance: bool = False  # in the next round, the receiver is the next rank
    # 2^n ranks: flipping a bit of all ranks' numbers maps messages to messages
    bit_flip_symmetric: bool = False

    @property
    def messages(self) -> int:
        return self.ranks * self.count

    @cached_property
    def equal_sizes(self) -> bool:
        """Whether all messages have the same size."""
        return bool(self.sizes.min() == self.sizes.max())

    @property
    def width(self) -> int:
        """The number of costs that a prediction needs for one draw (see `Schedule.width`)."""
        return self.ranks if self.equal_sizes else self.messages

    def receivers_and_bytes(
        self, number: np.ndarray | int, source: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the receivers and bytes of these senders in these rounds."""
        return self.receiver(number, source), self.sizes[self.block(number, source)]

    def round(self, number: int, node: np.ndarray) -> Schedule:
        """Return one round as a schedule, with the node of each rank."""
        source = np.arange(self.ranks)
        target, bytes = self.receivers_and_bytes(number, source)
        work = Work.reduce(0, target, bytes) if self.combines else None
        return Schedule.of(self.ranks, 0, source, target, bytes, work=work).place(node)


def _make_column(name: str) -> property:
    """Return the property of a compact schedule that is a column of the whole one."""
    return property(lambda self: getattr(self.whole, name))


class CompactSchedule(Schedule):
    """A schedule whose `parts` are schedules and repeated rounds, which each rank executes one
    after the other.

    Its columns (`step`, `src`, …) are those of `whole`, which is computed by `expand` when a column
    is first read.
    """

    parts: tuple[Schedule | Rounds, ...]
    expand: Callable[[], Schedule]

    def __init__(
        self,
        ranks: int,
        parts: Sequence[Schedule | Rounds],
        root: int | None,
        expand: Callable[[], Schedule],
    ) -> None:
        attributes = {
            "ranks": ranks,
            "root": root,
            "parts": tuple(parts),
            "expand": expand,
            "node": np.arange(ranks),
        }
        self.__dict__.update(attributes)  # the dataclass is frozen

    def place(self, node: np.ndarray) -> "CompactSchedule":
        parts = [part if isinstance(part, Rounds) else part.place(node) for part in self.parts]
        placed = CompactSchedule(self.ranks, parts, self.root, lambda: self.expand().place(node))
        placed.__dict__["node"] = np.asarray(node)
        return placed

    def with_statistic(self, statistic: Statistic) -> "CompactSchedule":
        stated = CompactSchedule(self.ranks, self.parts, self.root, self.expand)
        stated.__dict__.update(node=self.node, statistic=statistic)
        return stated

    @cached_property
    def whole(self) -> Schedule:
        """The schedule with all messages."""
        check_rows(self.messages)
        return self.expand().with_statistic(self.statistic)

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
        return (
            sum(
                part.count if isinstance(part, Rounds) else part.last_step + 1
                for part in self.parts
            )
            - 1
        )

    @property
    def has_local_work(self) -> bool:
        rounds = (
            part.combines and part.sizes.any() if isinstance(part, Rounds) else part.has_local_work
            for part in self.parts
        )
        return any(rounds)

    @property
    def largest(self) -> np.ndarray:
        return self.extremes()[1][0]

    def longest_work(self, kind: str) -> np.ndarray:
        combined = [
            part.sizes.max() for part in self.parts if isinstance(part, Rounds) and part.combines
        ]
        other_parts = [
            part.longest_work(kind).max(initial=0)
            for part in self.parts
            if not isinstance(part, Rounds)
        ]
        return np.max([0.0, *(combined if kind == "reduce" else ()), *other_parts], keepdims=True)

    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        lengths = [
            part.sizes if isinstance(part, Rounds) else part.bytes
            for part in self.parts
            if part.messages
        ]
        return np.array([min(sizes.min() for sizes in lengths)]), np.array(
            [max(sizes.max() for sizes in lengths)]
        )

    def has_same_structure(self, other: Schedule) -> bool:
        return False  # schedules of different sizes are not stacked, but predicted separately

    def resize(self, bytes: np.ndarray, work_bytes: np.ndarray) -> Schedule:
        return self.whole.resize(bytes, work_bytes)

    step, src, dst, bytes, work, contents, nonblocking = map(
        _make_column, ("step", "src", "dst", "bytes", "work", "contents", "nonblocking")
    )


def sample_rounds(pattern: Schedule) -> Iterator[tuple[int, Schedule]]:
    """Yield parts of a pattern with their counts. If there are more than MAX_EVALUATED_ROUNDS
    rounds, the middle one represents all."""
    for part in pattern.parts if isinstance(pattern, CompactSchedule) else (pattern,):
        if isinstance(part, Rounds):
            sampled = (
                range(part.count) if part.count <= MAX_EVALUATED_ROUNDS else (part.count // 2,)
            )
            yield from (
                (part.count // len(sampled), part.round(number, pattern.node)) for number in sampled
            )
        elif part.messages:
            yield 1, part
