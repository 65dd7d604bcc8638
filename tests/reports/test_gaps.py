"""What was not measured: listed with its reason, counted in the answer, and in no family's score."""

import numpy as np
import pandas as pd
import pytest
from tests.reading import sentences

from commodel.compare.comparison import summarize
from commodel.files.tables import UNMEASURED, names
from commodel.reports import build

GONE = ["measured", "measured_low", "measured_high", "relative_error", "mu", "regret", "skew"]


def without(comparison, statuses):
    """The comparison and the list of gaps, had these points of the real platform not been measured."""
    whole = comparison[comparison["measurement"] == "ok"]
    frame, lines = whole.copy(), []
    frame[["chosen", "best"]] = frame[["chosen", "best"]].astype(object)
    points = whole[whole["platform"] == "ether16"].drop_duplicates("point").iloc[::8]
    for (_, point), status in zip(points.iterrows(), statuses, strict=False):
        of_point = frame["point"] == point["point"]
        frame.loc[of_point, GONE] = np.nan
        frame.loc[of_point, ["inside", "chosen", "best"]] = False
        frame.loc[of_point, "measurement"] = f"not measured: {status}"
        about = [point["point"], "b-0", "ether16", False, "point", point["operation"], point["choice"], "block"]
        lines.append([*about, point["ranks"], 16, 0, point["bytes"], np.nan, status, f"why {status} = {len(lines)}"])
    return whole, frame, pd.DataFrame(lines, columns=names(UNMEASURED))


def test_gaps_are_counted_and_listed(small):
    _, frame, gaps = without(small, ["budget", "crash", "budget"])
    report = build(frame, experiment="gaps", unmeasured=gaps)
    lines = sentences(report, "What is missing")
    total = frame["point"].nunique()
    assert f"3 of {total} points were not measured: 2 budget and 1 crash (ether16 3)." in lines
    assert any(line.startswith("In ") and "the fastest of those that have" in line for line in lines)
    (table,) = report.section("Not measured").tables
    assert sorted(table.column("reason")) == sorted(gaps["reason"])
    assert sorted(table.column("id")) == sorted(gaps["id"])


def test_nothing_missing_is_no_section(small):
    whole, _, gaps = without(small, [])
    for unmeasured in (None, gaps):
        report = build(whole, experiment="whole", unmeasured=unmeasured)
        assert "Not measured" not in [section.name for section in report.sections]
        assert not any("not measured" in line for line in sentences(report, "What is missing"))


def test_gaps_touch_no_score(small):
    """The same figures as if these points had never been planned."""
    whole, frame, _ = without(small, ["budget", "timeout", "crash", "unfinished"])
    never = whole[~whole["point"].isin(frame.loc[frame["measured"].isna(), "point"])]
    assert len(never) == len(whole) - 4 * small["family"].nunique()
    by = ["platform", "family"]
    pd.testing.assert_frame_equal(summarize(frame, by), summarize(never, by))
    tables = {}
    for name, part in (("gaps", frame), ("never", never)):
        tables[name] = build(part, experiment=name).section("Standings").tables[0]
    assert tables["gaps"].column("mu_mean") == tables["never"].column("mu_mean")


def test_points_with_some_of_their_passes_are_told(small):
    whole, _, _ = without(small, [])
    few = whole["point"].isin(whole["point"].unique()[:2])
    frame = whole.assign(measurement=whole["measurement"].mask(few, "ok, 2 of 3 passes"))
    (line,) = (line for line in sentences(build(frame, experiment="some"), "What is missing") if "passes" in line)
    assert line.startswith("2 points have some passes only, 2 with 2 of 3 passes: in the others ")
    for reason in ("every sample came late", "the time of the batch was over", "three cases in a row had failed"):
        assert reason in line


@pytest.mark.parametrize("waves", [np.nan, 50])
def test_waves_are_told_where_a_stream_was_not_measured(small, waves):
    _, frame, gaps = without(small, ["budget", "crash"])
    report = build(frame, experiment="gaps", unmeasured=gaps.assign(waves=[waves, np.nan]))
    (table,) = report.section("Not measured").tables
    keys = [column.key for column in table.columns]
    assert ("waves" in keys) == (waves == 50)
    assert waves != 50 or 50 in table.column("waves")


@pytest.mark.parametrize("number", [1, 2])
def test_probe_cases_without_samples_are_told(small, number):
    probe = [
        "c",
        "b-0",
        "fattree",
        True,
        "probe",
        "pingpong",
        "",
        "block:1",
        2,
        2,
        np.nan,
        8,
        np.nan,
        "timeout",
        "hung",
    ]
    gaps = pd.DataFrame([probe] * number, columns=names(UNMEASURED))
    report = build(small, experiment="probes", unmeasured=gaps)
    words = {1: "1 probe case was", 2: "2 probe cases were"}[number]
    expected = f"{words} not measured: {number} timeout (pingpong {number}); the fits saw the others only."
    assert expected in sentences(report, "What is missing")
    (table,) = report.section("Not measured").tables
    assert table.column("leaves") == [None] * number


@pytest.mark.parametrize("number", [1, 2])
def test_probe_cases_with_some_of_their_passes_are_told(inputs, small, number):
    raw, asked = inputs["raw"].assign(passes=3), {"ether16": 3, "fattree": 1}
    some = raw.index[(raw["kind"] == "probe") & (raw["platform"] == "ether16")][:number]
    raw.loc[some, "passes"] = 2
    (line,) = (
        line
        for line in sentences(build(small, raw=raw, passes=asked, experiment="some"), "What is missing")
        if "probe case" in line
    )
    words = {1: "1 probe case has", 2: "2 probe cases have"}[number]
    names = raw.loc[some, "name"].iloc[0]
    assert line.startswith(f"{words} some passes only ({names} {number}): intervals ")


def test_probe_cases_of_a_simulated_platform_need_one_pass_only(inputs, small):
    raw = inputs["raw"].assign(passes=lambda frame: (frame["platform"] == "ether16") * 2 + 1)
    report = build(small, raw=raw, passes={"ether16": 3, "fattree": 1}, experiment="some")
    assert not [line for line in sentences(report, "What is missing") if "probe case" in line]
