"""More processes than processors: said at once, and in every row."""

import numpy as np
from tests.reading import sentences

from commodel.reports import build

TRUST = "Which model to trust"


def shared(comparison, processes):
    """The comparison, had all of ether16 been measured with so many processes on two processors."""
    there = comparison["platform"] == "ether16"
    return comparison.assign(processes=np.where(there, processes, np.nan), processors=np.where(there, 2, np.nan))


def test_the_first_sentence_says_that_processes_take_turns(small):
    frame = shared(small, 65)
    about = {name: {"hosts": ["a1"]} for name in frame["batch"].unique()} if "batch" in frame else {}
    report = build(frame, experiment="crowd", provenance=about)
    points = frame.loc[(frame["platform"] == "ether16") & frame["measured"].notna(), "point"].nunique()
    said = sentences(report, TRUST)[0]
    assert said.startswith("ether16: 65 processes share 2 processors on ")
    assert said.endswith(f"take turns; models that let them go on at the same time are too low ({points} points).")
    (table,) = report.section("Comparison").tables
    assert set(table.column("processes")) == {65, None}
    assert set(table.column("processors")) == {2, None}


def test_where_each_has_a_processor_nothing_is_said(small):
    for frame in (small, shared(small, 2)):
        report = build(frame, experiment="room")
        assert not any("take turns" in line for line in sentences(report, TRUST))
        (table,) = report.section("Comparison").tables
        assert "processors" not in [column.key for column in table.columns]
