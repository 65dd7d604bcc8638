"""Schedules as files: what the native player reads, and the plain table of messages that `commodel schedule` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commodel.files.paths import AnyPath
from commodel.patterns.operations import Operation
from commodel.patterns.schedule import KINDS, Schedule

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("step", "kind", "rank", "peer", "bytes", "seconds", "runs")


def messages(schedule: Schedule) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({name: getattr(schedule, name) for name in ("step", "src", "dst", "bytes")})


def write_play(path: AnyPath, schedule: Schedule, operation: Operation | None = None, size: int = 0) -> None:
    """A step's messages in order, then its local work; at the end, for an operation that combines, where the exact
    result must be; messages of no operation hold anything. `runs` tells what a message holds, as ADDRESS+LENGTH;…"""
    import pandas as pd

    from commodel.files.tables import write_table

    work = schedule.work
    columns = [
        (schedule.step, "send", schedule.src, schedule.dst, schedule.bytes, 0.0, _runs(schedule)),
        (work.step, np.array(KINDS)[work.kind], work.rank, work.rank, work.bytes.astype(np.int64), work.seconds, ""),
    ]
    rows = pd.concat(pd.DataFrame(dict(zip(COLUMNS, part, strict=True))) for part in columns if len(part[0]))
    rows = rows.sort_values("step", kind="stable") if len(columns[1][0]) else rows
    write_table(path, pd.concat([rows, _results(schedule, operation, size, rows["step"].max() + 1)]))


def _runs(schedule: Schedule) -> np.ndarray:
    """What each message holds, as text; nothing where the schedule does not tell."""
    texts = np.full(len(schedule.src), "", dtype=object)
    if schedule.holds is None:
        return texts
    runs = schedule.holds()
    for row, first, length in zip(runs.row.tolist(), runs.first.tolist(), runs.length.tolist(), strict=True):
        texts[row] += f";{first}+{length}" if texts[row] else f"{first}+{length}"
    return texts


def _results(schedule: Schedule, operation: Operation | None, size: int, step: int) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for rank in range(schedule.ranks if operation and operation.reduces and schedule.holds else 0):
        for first, length in operation.wants(rank, schedule.ranks, size):
            rows.append((step, "result", rank, rank, length, 0.0, f"{first}+{length}"))
    return pd.DataFrame(rows, columns=COLUMNS)
