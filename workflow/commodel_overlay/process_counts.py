"""Counts of the processes of an overlay network by depth, taken while a case is sampled: a table
CASE.levels beside the samples of each pass (`read_counts`), and their sum beside the raw file
(`join_counts`)."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

from commodel.errors import UserError
from commodel.files.atomic import write_text
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import read_bytes

if TYPE_CHECKING:
    import pandas as pd

COUNTS_SUFFIX = ".levels"
MAX_BYTES = 1 << 20
SUMMED_COLUMNS = [
    "packets_up",
    "packets_down",
    "bytes_up",
    "bytes_down",
    "waves",
    "filter_seconds",
    "cpu_seconds",
]
COLUMNS = ["depth", "processes", *SUMMED_COLUMNS, "round_trip"]


def find_counts_file(folder: AnyPath, case: str) -> AnyPath:
    return folder / f"{case}{COUNTS_SUFFIX}"


def read_counts(path: AnyPath) -> pd.DataFrame:
    """Return one row for each depth; times are in seconds, `round_trip` is a mean over
    processes."""
    import pandas as pd  # slow to load, and measuring needs it only for overlay networks

    try:
        table = pd.read_csv(
            io.BytesIO(read_bytes(path, MAX_BYTES, "the counts of one case")), dtype=float
        )
    except (ValueError, UnicodeDecodeError):
        table = pd.DataFrame()
    if (
        list(table.columns) != COLUMNS
        or table.isna().to_numpy().any()
        or (table < 0).to_numpy().any()
    ):
        raise UserError(f"wanted numbers in the columns {', '.join(COLUMNS)}", file=path)
    return table


def join_counts(folders: Iterable[AnyPath], folder: AnyPath, case: str) -> None:
    """Write the sum of the counts over all passes that have counts; nothing if none has."""
    paths = [
        path
        for path in (find_counts_file(pass_folder, case) for pass_folder in folders)
        if path.exists()
    ]
    if not paths:
        return
    import pandas as pd  # as above

    passes = pd.concat([read_counts(path) for path in paths])
    groups = passes.groupby("depth")
    joined = (
        groups[["processes"]]
        .max()
        .join(groups[SUMMED_COLUMNS].sum())
        .join(groups[["round_trip"]].mean())
        .reset_index()
    )
    write_text(
        find_counts_file(folder, case), joined[COLUMNS].to_csv(index=False, float_format="%.9g")
    )
