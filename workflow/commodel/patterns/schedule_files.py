"""Schedules as files: the player's table (`write_player_table`), and formats that are printed
(`STYLES`).

A row is a message from `rank` to `peer`, or local work of `rank`. The sender posts a message in
`step` and waits for it in `wait`. The receiver posts it in `peer_step` and waits for it in
`peer_wait`. In the plain case all four are equal, and the last three are empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from commodel.files.safe_paths import AnyPath
from commodel.patterns.operations import list_result_extents
from commodel.patterns.schedule import KINDS, Schedule

if TYPE_CHECKING:
    import pandas as pd


COLUMNS = ("step", "wait", "kind", "rank", "peer", "peer_step", "peer_wait", "bytes", "seconds")
PLAYER_COLUMNS = (*COLUMNS, "runs")  # runs: contents of a message, which the player checks


def make_table(schedule: Schedule) -> pd.DataFrame:
    """Return the messages and then the local work of each step, in the order of the steps."""
    import pandas as pd

    work = schedule.work
    wait, *peer_steps = schedule.nonblocking.columns if schedule.nonblocking else ("", "", "")
    messages = (
        schedule.step,
        wait,
        "send",
        schedule.src,
        schedule.dst,
        *peer_steps,
        schedule.bytes,
        0.0,
    )
    kinds = np.array(KINDS)[work.kind]
    works = (
        work.step,
        "",
        kinds,
        work.rank,
        work.rank,
        "",
        "",
        work.bytes.astype(np.int64),
        work.seconds,
    )
    parts = [(messages, len(schedule.src)), (works, len(work.step))]
    frames = [
        pd.DataFrame(dict(zip(COLUMNS, part, strict=True)), index=range(rows))
        for part, rows in parts
    ]
    if not len(work.step):
        return frames[0]
    return pd.concat(frames).sort_values("step", kind="stable") if len(schedule.src) else frames[1]


def write_player_table(
    path: AnyPath, schedule: Schedule, operation: str = "", size: int = 0
) -> None:
    """Write the player's table, with contents of messages as ADDRESS+LENGTH;… and the addresses of
    a reduction's results.

    Contents are empty for messages that belong to no operation.
    """
    import pandas as pd

    from commodel.files.tables import write_table

    rows = make_table(schedule)
    runs = np.full(len(rows), "", dtype=object)
    runs[(rows["kind"] == "send").to_numpy()] = _format_contents(schedule)
    rows = rows.assign(runs=runs)
    write_table(
        path,
        pd.concat([rows, _make_result_rows(schedule, operation, size, schedule.last_step + 1)]),
    )


def _format_contents(schedule: Schedule) -> np.ndarray:
    """Return the contents of each message as text; empty if the schedule has none."""
    texts = np.full(len(schedule.src), "", dtype=object)
    if schedule.contents is None:
        return texts
    runs = schedule.contents()
    for row, first, length in zip(
        runs.row.tolist(), runs.first.tolist(), runs.length.tolist(), strict=True
    ):
        texts[row] += f";{first}+{length}" if texts[row] else f"{first}+{length}"
    return texts


def _make_result_rows(schedule: Schedule, operation: str, size: int, step: int) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for rank, extents in enumerate(
        list_result_extents(operation, schedule.ranks, size) if schedule.contents else ()
    ):
        for first, length in extents:
            rows.append((step, "", "result", rank, rank, "", "", length, 0.0, f"{first}+{length}"))
    return pd.DataFrame(rows, columns=PLAYER_COLUMNS)


def format_csv(schedule: Schedule) -> str:
    return make_table(schedule).to_csv(index=False, lineterminator="\n").rstrip("\n")


def format_dot(schedule: Schedule) -> str:
    edges = zip(schedule.step, schedule.src, schedule.dst, schedule.bytes, strict=True)
    lines = [f'  {src} -> {dst} [label="{step}: {size} B"];' for step, src, dst, size in edges]
    return "\n".join(["digraph schedule {", "  rankdir=LR;", *lines, "}"])


STYLES: dict[str, Callable[[Schedule], str]] = {"csv": format_csv, "dot": format_dot}
