"""Counts of the processes of an overlay network, by the depth of its trees."""

from collections.abc import Sequence

import pandas as pd

from commodel.reports.elements import MICRO, Section, make_table
from commodel.reports.report_inputs import SectionInputs
from commodel.reports.sections.evidence import list_case_files
from commodel_overlay.process_counts import find_counts_file, read_counts

NOTE = (
    "Sums over the processes at each depth while the case was sampled, of all passes. Depth 0 is the front-end. "
    "Processor time includes what is not sampled in between. The kernel estimates the round trip to the parent."
)


def make_sections(inputs: SectionInputs) -> Sequence[Section]:
    """Return the section, if any case has counts."""
    parts = []
    for path, case in list_case_files(inputs.plan, inputs.results, inputs.raw, find_counts_file):
        rows = read_counts(path).assign(**case)
        rows["round_trip"] *= MICRO
        rows[["filter_seconds", "cpu_seconds"]] *= 1000
        parts.append(rows)
    if not parts:
        return ()
    table = make_table(
        "Processes", "Counts at each depth", pd.concat(parts, ignore_index=True), fixed=5
    )
    return (Section("Overlay processes", NOTE, (table,)),)
