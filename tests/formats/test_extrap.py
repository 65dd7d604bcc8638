"""Extra-P's files: parsed by the grammar of Extra-P's documentation, they contain every time
once."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel_formats.extrap import (
    format_json_lines,
    format_text,
    group_equal_points,
    group_times,
    read_measurements,
    write_files,
)

FILE = Path("table.csv")
OBSERVED = pd.DataFrame(
    [
        ("point", "bcast", "linear", "a", "block:1", 4, 8, 1e-5, True),
        ("point", "bcast", "linear", "a", "block:1", 4, 8, 3e-5, True),
        ("point", "bcast", "linear", "a", "block:1", 4, 8, 9e-5, False),
        ("point", "bcast", "binomial", "a", "block:1", 4, 8, 2e-5, True),
        ("point", "reduce", "flat:3", "a", "block:1", 4, 64, 5e-5, True),
        ("probe", "prtt", "", "a", "block:1", 2, 8, 1e-6, True),
    ],
    columns=[
        "kind",
        "name",
        "alternative",
        "platform",
        "layout",
        "ranks",
        "bytes",
        "seconds",
        "valid",
    ],
)


def read_text(written):
    """Return the times of each region by point. By the grammar, a region has a DATA line for every
    point, in order."""
    times_of, points, region = {}, [], None
    for line in filter(None, written.splitlines()):
        word, _, rest = line.partition(" ")
        if word == "POINTS":
            points = [tuple(map(int, pair.split())) for pair in re.findall(r"\(([^()]*)\)", rest)]
        elif word == "REGION":
            region = times_of.setdefault(rest, [])
        elif word == "DATA":
            assert re.fullmatch(r"[0-9]+(\.[0-9]+)?( [0-9]+(\.[0-9]+)?)*", rest)
            region.append([float(number) for number in rest.split()])
        else:
            assert (word, rest) in {("PARAMETER", "p bytes"), ("METRIC", "time")}
    return {region: dict(zip(points, seconds, strict=True)) for region, seconds in times_of.items()}


def read_jsonl(written):
    times_of = {}
    for row in map(json.loads, written.splitlines()):
        assert row["metric"] == "time"
        times_of.setdefault(row["callpath"], {})[row["params"]["p"], row["params"]["bytes"]] = row[
            "value"
        ]
    return times_of


def test_observations_keep_all_valid_samples():
    measured = group_times(OBSERVED, FILE)
    assert measured["bcast->linear"] == {(4, 8): [1e-5, 3e-5]}
    assert set(measured) == {"bcast->linear", "bcast->binomial", "reduce->flat:3"}


def test_a_stream_of_waves_has_a_separate_call_path():
    table = OBSERVED.assign(waves=[1, None, 1, 50, 50, None])
    times = group_times(table, FILE)
    assert times["bcast->linear->1 wave"] == {(4, 8): [1e-5, 3e-5]}
    assert {"bcast->binomial->50 waves", "reduce->flat:3->50 waves"} < set(times)


def test_a_comparison_has_a_median_a_point():
    rows = [("p1", "bcast", "linear", f"{where}", "block:1", 4, 8, 1e-5) for where in ("a", "a")]
    rows += [
        ("p2", "bcast", "linear", "b", "block:1", 4, 8, 2e-5),
        ("p3", "bcast", "linear", "b", "block:1", 8, 8, None),
    ]
    names = [
        "point",
        "operation",
        "alternative",
        "platform",
        "layout",
        "ranks",
        "bytes",
        "measured",
    ]
    measured = group_times(pd.DataFrame(rows, columns=names), FILE)
    assert measured == {"a->bcast->linear": {(4, 8): [1e-5]}, "b->bcast->linear": {(4, 8): [2e-5]}}


def test_an_algorithm_and_a_topology_of_one_name_have_call_paths_of_their_own():
    rows = [
        ("point", "bcast", "binomial:4", "a", "block:1", 16, leaves, 8, 1e-5, True)
        for leaves in (None, 8)
    ]
    rows += [
        ("point", "bcast", "library", "a", "block:1", 9, leaves, 8, 1e-5, True)
        for leaves in (None, 8)
    ]
    observed = pd.DataFrame(rows, columns=[*OBSERVED.columns[:6], "leaves", *OBSERVED.columns[6:]])
    paths = {
        "bcast->algorithm->binomial:4",
        "bcast->topology->binomial:4",
        "bcast->algorithm->library",
    }
    assert set(group_times(observed, FILE)) == paths
    compared = observed.drop(columns=["kind", "valid"]).rename(
        columns={"name": "operation", "seconds": "measured"}
    )
    assert set(group_times(compared.assign(point=range(4)), FILE)) == paths


TIMES = st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=4)
POINTS = st.dictionaries(
    st.tuples(st.integers(2, 999), st.integers(0, 1 << 40)), TIMES, min_size=1, max_size=5
)


@given(
    st.dictionaries(
        st.sampled_from(["bcast->linear", "reduce->flat:3", "gather->ring"]), POINTS, min_size=1
    )
)
def test_all_that_is_written_is_read(written):
    together = {}
    for group in group_equal_points(written):
        for region, times in read_text(format_text(group)).items():
            assert times.keys() == group[region].keys()
            for point, values in times.items():
                assert values == pytest.approx(group[region][point], rel=1e-6, abs=1e-14)
        together |= read_jsonl(format_json_lines(group))
    assert together == written


def test_call_paths_with_other_points_get_other_files(tmp_path):
    names = write_files(group_times(OBSERVED, FILE), "text", tmp_path / "out.txt")
    assert [name.name for name in names] == ["out-1.txt", "out-2.txt"]
    assert set(read_text(names[0].read_text())) == {"bcast->linear", "bcast->binomial"}
    assert [
        name.name
        for name in write_files(group_times(OBSERVED[:4], FILE), "jsonl", tmp_path / "o.jsonl")
    ] == ["o.jsonl"]


def test_tables_without_points_are_refused(tmp_path):
    (tmp_path / "table.csv").write_text("a\n1\n")
    with pytest.raises(
        UserError, match=r"table\.csv: .*wanted observations\.csv or comparison\.csv"
    ):
        read_measurements(tmp_path / "table.csv")
    with pytest.raises(UserError, match=r"table\.csv: found no measured point"):
        group_times(OBSERVED[-1:], FILE)
