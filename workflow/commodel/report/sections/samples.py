"""Every single sample, for who has the workbook but not the raw files: a sheet that is written only when it is asked
for."""

from collections.abc import Iterator

import pandas as pd

from commodel.files.results import Results
from commodel.records import Plan
from commodel.report.frames import PLATFORM
from commodel.report.shape import MICRO, Column, Section, table
from commodel.report.values import plain
from commodel.report.words import simulation
from commodel.results.rawfiles import raw_file, read_samples

SHEET = "Samples"
COLUMNS = [
    *PLATFORM,
    *(Column(key, key) for key in ("kind", "name", "settings", "id")),
    Column("pass", "pass", "count"),
    Column("sample", "sample", "count"),
    Column("seconds", "time [µs]", "number"),
    Column("skew", "skew [µs]", "number"),
    Column("valid", "valid", "flag", "no: a rank started late, and the sample counts nowhere"),
]


def section(plan: Plan, results: Results, summary: pd.DataFrame) -> Section:
    about = {row["id"]: row for row in summary[["id", "kind", "name", "settings"]].to_dict("records")}
    parts = list(_cases(plan, results, about))
    keys = [column.key for column in COLUMNS]
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=keys)
    note = "One row per sample, of every pass, as the raw files have them."
    return Section(SHEET, note, (table("Samples", "All samples", COLUMNS, frame, fixed=6),))


def _cases(plan: Plan, results: Results, about: dict[str, dict]) -> Iterator[pd.DataFrame]:
    """Files by the plan's own names. A damaged one is an error, as it is for `collect`."""
    for batch in plan.batches:
        head = {"platform": plain(batch.platform), "simulated": simulation(plan.platforms[batch.platform].simulated)}
        for case in batch.ids:
            if case in about and (path := raw_file(results.raw(batch.name), case)):
                rows = pd.DataFrame(read_samples(path, case), columns=["pass", "sample", "seconds", "skew", "valid"])
                rows[["seconds", "skew"]] *= MICRO
                yield rows.assign(**head, **{key: plain(value) for key, value in about[case].items()})
