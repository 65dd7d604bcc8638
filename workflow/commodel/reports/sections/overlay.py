"""Counts of the processes of an overlay network, by the depth of its trees."""

from collections.abc import Sequence

import pandas as pd

from commodel.files.results_folder import Results
from commodel.records import Plan
from commodel.reports.elements import MICRO, Section, make_table
from commodel.results.process_counts import find_counts_file, read_counts

NOTE = (
    "Sums over the processes at each depth while the case was sampled, of all passes. Depth 0 is the front-end. "
    "Processor time includes what is not sampled in between. The kernel estimates the round trip to the parent."
)


def make_sections(plan: Plan, results: Results, summary: pd.DataFrame) -> Sequence[Section]:
    """Return the section, if any case has counts. `summary` is the raw summary."""
    case_of_id = {row["id"]: row for row in summary[["id", "name", "settings"]].to_dict("records")}
    parts = []
    for batch in plan.batches:
        head = {"platform": batch.platform, "simulated": plan.platforms[batch.platform].simulated}
        for case in batch.ids:
            path = find_counts_file(results.raw(batch.name), case)
            if case in case_of_id and path.exists():
                rows = read_counts(path)
                rows["round_trip"] *= MICRO
                rows[["filter_seconds", "cpu_seconds"]] *= 1000
                parts.append(rows.assign(**head, **case_of_id[case]))
    if not parts:
        return ()
    table = make_table("Processes", "Counts at each depth", pd.concat(parts, ignore_index=True), fixed=5)
    return (Section("Overlay processes", NOTE, (table,)),)
