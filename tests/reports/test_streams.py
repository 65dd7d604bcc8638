"""Streams of waves in a report: operations of their own, with columns that a report without them does not have."""

import numpy as np
import pytest
from tests.reading import sentences

from commodel.compare.comparison import named_streams
from commodel.files.tables import COMPARISON, with_defaults
from commodel.reports import build

ALWAYS = ("ranks", "leaves", "bytes", "fan_in")


@pytest.fixture(scope="module")
def streamed(comparison):
    """The study with every reduction measured as a stream, too, in a fifth of the time of a wave."""
    waves = comparison[comparison["operation"] == "reduce"].copy()
    for name in ("point", "group"):
        waves[name] = waves[name] + " 50 waves"
    for name in ("measured", "measured_low", "measured_high", "predicted", "predicted_low", "predicted_high"):
        waves[name] = waves[name] / 5
    waves = waves.assign(waves=50, first=5 * waves["measured"], last=6 * waves["measured"])
    together = comparison.assign(waves=1, first=np.nan, last=np.nan)
    return build(type(waves)(np.concatenate([together, waves]), columns=together.columns), experiment="streams")


def rows_of(report):
    (table,) = report.section("Comparison").tables
    return {column.key: table.column(column.key) for column in table.columns}


def test_the_columns_are_there_where_there_is_a_stream(streamed, report):
    rows = rows_of(streamed)
    columns = (rows[key] for key in ("waves", "first", "last", "measured"))
    for waves, first, last, measured in zip(*columns, strict=True):
        if waves == 50 and measured == measured:
            assert (first, last) == pytest.approx((5 * measured, 6 * measured))
        else:
            assert first != first
    assert set(rows["waves"]) == {1, 50}
    assert set(rows) - set(rows_of(report)) == {"waves", "first", "last"}
    assert "a repetition, which a rank begins" in " ".join(sentences(streamed, "How to read this"))
    assert "a repetition, which a rank begins" not in " ".join(sentences(report, "How to read this"))


def test_a_stream_is_judged_apart_and_named(streamed, report):
    operations = set(rows_of(streamed)["operation"])
    assert operations == {*rows_of(report)["operation"], "stream of reduce"}
    (errors,) = [table for table in streamed.section("Errors").tables if table.name == "Mean μ by operation"]
    assert "stream of reduce" in errors.column("operation")
    (jobs,) = streamed.section("Selection").tables
    assert any(size.endswith(" leaves, 50 waves") for size in jobs.column("size"))
    assert any("stream of reduce over " in line for line in sentences(streamed, "What to use"))


def test_a_comparison_that_knows_no_waves_has_one_of_each(comparison):
    named = named_streams(with_defaults(comparison, COMPARISON))
    assert set(named["waves"]) == {1}
    assert named["operation"].equals(comparison["operation"])
