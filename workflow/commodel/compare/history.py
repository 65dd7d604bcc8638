"""Several snapshots in a row, each beside the first."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from commodel.compare.difference import CHANGED, SAME, changes
from commodel.compare.snapshot import POINT, Snapshot


class Line(NamedTuple):
    """Ratios to the first snapshot: of points the geometric mean of all that an operation has in common with it."""

    kind: str
    platform: str
    name: str
    ratios: list[float]  # NaN: nothing in common with the first

    @property
    def change(self) -> float:
        """How far from 1 its ratios go."""
        return max(abs(math.log(ratio)) for ratio in self.ratios if not math.isnan(ratio))


def history(snapshots: Sequence[Snapshot]) -> list[Line]:
    first, *later = snapshots
    lines: dict[tuple[str, str, str], Line] = {}
    for number, snapshot in enumerate(later, 1):
        logs: dict[tuple[str, str, str], list[float]] = {}
        for change in changes(first, snapshot):
            if change.ratio > 0 and change.verdict in (SAME, *CHANGED):
                name = change.name.partition(" ")[0] if change.kind == POINT else change.name
                logs.setdefault((change.kind, change.platform, name), []).append(math.log(change.ratio))
        for key, several_logs in logs.items():
            line = lines.setdefault(key, Line(*key, [1.0] + [math.nan] * len(later)))
            line.ratios[number] = math.exp(sum(several_logs) / len(several_logs))
    return list(lines.values())
