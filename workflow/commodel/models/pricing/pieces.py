"""Rounds that repeat, a few of them at a time: thousands of rounds of thousands of messages would not fit at once."""

from dataclasses import dataclass

import numpy as np

from commodel.patterns.repeated import Long, Rounds
from commodel.patterns.schedule import Schedule
from commodel.patterns.work import Work

PIECE_MESSAGES = 1 << 17  # messages


@dataclass(frozen=True)
class Piece:
    """Some rounds, or what is none."""

    part: Schedule | Rounds
    first: int = 0
    count: int = 0

    @property
    def messages(self) -> int:
        return self.count * self.part.ranks if isinstance(self.part, Rounds) else self.part.messages

    def written(self, node: np.ndarray) -> Schedule:
        if not isinstance(self.part, Rounds):
            return self.part.placed(node)
        step, source = np.divmod(np.arange(self.messages), self.part.ranks)
        target, bytes = self.part.sent(self.first + step, source)
        work = Work.reduce(step, target, bytes) if self.part.combines else None
        return Schedule.of(self.part.ranks, step, source, target, bytes, work=work).placed(node)


def pieces(schedule: Long) -> list[Piece]:
    """What is done one after the other."""
    at_once, cut = max(PIECE_MESSAGES // schedule.ranks, 1), []
    for part in schedule.parts:
        if isinstance(part, Rounds):
            cut += [Piece(part, first, min(at_once, part.count - first)) for first in range(0, part.count, at_once)]
        else:
            cut.append(Piece(part))
    return cut
