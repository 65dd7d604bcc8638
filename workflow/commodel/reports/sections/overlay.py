"""Counts of the processes of an overlay network, by the depth of its trees."""

from collections.abc import Sequence

import pandas as pd

from commodel.files.results_folder import Results
from commodel.records import Plan
from commodel.reports.comparison_frame import PLATFORM_COLUMNS
from commodel.reports.elements import (
    MICRO,
    Column,
    Section,
    format_simulated,
    make_table,
    select_columns,
    to_plain_value,
)
from commodel.results.process_counts import find_counts_file, read_counts

COLUMNS = [*PLATFORM_COLUMNS, *(Column(key, key) for key in ("name", "settings")), *select_columns("Overlay processes")]
NOTE = (
    "Sums over the processes at each depth while the case was sampled, of all passes. Depth 0 is the front-end. "
    "Processor time includes what is not sampled in between. The kernel estimates the round trip to the parent."
)


def make_sections(plan: Plan, results: Results, summary: pd.DataFrame) -> Sequence[Section]:
    """Return the section, if any case has counts. `summary` is the raw summary."""
    case_of_id = {row["id"]: row for row in summary[["id", "name", "settings"]].to_dict("records")}
    parts = []
    for batch in plan.batches:
        head = {
            "platform": to_plain_value(batch.platform),
            "simulated": format_simulated(plan.platforms[batch.platform].simulated),
        }
        for case in batch.ids:
            path = find_counts_file(results.raw(batch.name), case)
            if case in case_of_id and path.exists():
                rows = read_counts(path)
                rows["round_trip"] *= MICRO
                rows[["filter_seconds", "cpu_seconds"]] *= 1000
                parts.append(
                    rows.assign(**head, **{key: to_plain_value(value) for key, value in case_of_id[case].items()})
                )
    if not parts:
        return ()
    frame = pd.concat(parts, ignore_index=True)
    return (
        Section("Overlay processes", NOTE, (make_table("Processes", "Counts at each depth", COLUMNS, frame, fixed=5),)),
    )
