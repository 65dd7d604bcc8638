"""Schedules as files: what the native player reads, and the plain table of messages that `commodel schedule` prints."""

from pathlib import Path

import numpy as np
import pandas as pd

from commodel.schedule import KINDS, Schedule
from commodel.tables import write_table


def messages(schedule: Schedule) -> pd.DataFrame:
    return pd.DataFrame({name: getattr(schedule, name) for name in ("step", "src", "dst", "bytes")})


def write_play(path: Path, schedule: Schedule) -> None:
    """step,kind,rank,peer,bytes,seconds: a step's messages in order, then its local work."""
    work = schedule.work
    sends = pd.DataFrame(
        {
            "step": schedule.step,
            "kind": "send",
            "rank": schedule.src,
            "peer": schedule.dst,
            "bytes": schedule.bytes,
            "seconds": 0.0,
        }
    )
    local = pd.DataFrame(
        {
            "step": work.step,
            "kind": np.array(KINDS)[work.kind],
            "rank": work.rank,
            "peer": work.rank,
            "bytes": work.bytes.astype(np.int64),
            "seconds": work.seconds,
        }
    )
    rows = pd.concat([sends, local]) if len(local) else sends
    write_table(path, rows.sort_values("step", kind="stable"))
