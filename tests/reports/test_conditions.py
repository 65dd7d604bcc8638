"""Anomalies of measurement (caches, other users, more processes than processors), streams of waves,
and missing measurements."""

import re

import numpy as np
import pandas as pd
import pytest

from commodel.api.campaigns import Run
from commodel.compare.comparison import name_streams, summarize_errors
from commodel.compare.model_ranking import rank_models
from commodel.files.tables import COMPARISON, UNMEASURED, add_default_columns, list_columns
from commodel.predictions.validity import Validity, ValidityKind
from commodel.reports import build_stored_report
from commodel.reports.comparison_frame import prepare_comparison
from commodel.reports.sections import measurement_conditions
from tests.reading import sentences
from tests.reports.reading import make_report

BEST_MODEL, MISSING = "Which model predicts best", "What is missing"


def describe_missing(comparison, platform="ether16"):
    """Return all findings about missing measurements on a platform; the Summary has only the first
    ones."""
    frame = prepare_comparison(comparison)
    return measurement_conditions.describe_missing(
        frame[frame["platform"] == platform], simulated=False
    )


def make_real_comparison(comparison, operation, ratio=2.0):
    """Return the comparison with ether16 as a real platform, whose points are of an operation and
    take `ratio` times the predictions."""
    there = comparison["platform"] == "ether16"
    frame = comparison.assign(batch="ether16-1")
    frame.loc[there, ["operation", "simulated"]] = operation, False
    for key in ("measured", "measured_low", "measured_high"):
        frame.loc[there, key] = ratio * frame.loc[there, "seconds"]
    return add_default_columns(frame, COMPARISON)


@pytest.mark.parametrize(("at_work", "number"), [(1.7, 1), (0.1, 0), (None, 0), ("1.7", 0)])
def test_a_machine_in_use_is_an_anomaly(small, at_work, number):
    about = {"ether16-1": {"cores": 2, **({} if at_work is None else {"at_work": at_work})}}
    lines = measurement_conditions.describe_conditions(make_real_comparison(small, "bcast"), about)
    assert [line.platform for line in lines] == ["ether16"] * number
    assert all("other processes occupied 1.7 of 2 processors" in line.text for line in lines)


def test_levels_missing_in_the_platform_file_are_one_anomaly_a_platform(small):
    """Any model may have the flag; the flag "placement not modelled" names no missing levels."""
    small = add_default_columns(small, COMPARISON)
    unnamed = Validity(
        ValidityKind.UNNAMED_LEVELS,
        "nodes are up to 2.1 times as far from each other as those probed",
    ).text
    blind = Validity(
        ValidityKind.PLACEMENT, "ranks in different leaf groups are predicted as nearer ones"
    ).text
    there = small["platform"] == "ether16"
    frame = small.assign(
        validity=small["validity"].mask(there & (small["model"] == "hockney"), unnamed)
    )
    (line,) = measurement_conditions.list_anomalies(frame, {})
    assert line.platform == "ether16"
    for part in (
        "Nodes are up to 2.1 times as far",
        "`probes: [auto, nodepairs]`",
        "`commodel show network EXPERIMENT --levels`",
    ):
        assert part in line.text
    (other,) = measurement_conditions.list_anomalies(
        frame.assign(validity=frame["validity"].mask(there, blind)), {}
    )
    assert "--levels" not in other.text


@pytest.mark.parametrize(
    ("paired", "hint"), [((), measurement_conditions.NETWORK_HINT), (("ether16",), "")]
)
def test_flagged_predictions_of_the_best_model_are_an_anomaly(small, paired, hint):
    small = add_default_columns(small, COMPARISON)
    crowded = Validity(
        ValidityKind.CONTENTION,
        "messages of all nodes at once took up to 9.5 times as long as predicted",
    ).text
    there = small["platform"] == "ether16"
    best = rank_models(small[there])["model"].iloc[0]
    its = there & (small["model"] == best)
    points = small.loc[its & small["mu"].notna(), "point"]
    some = its & small["point"].isin(points[: len(points) // 2])
    (line,) = measurement_conditions.list_anomalies(
        small.assign(validity=small["validity"].mask(some, crowded)), {}, paired
    )
    assert line.platform == "ether16"
    assert line.text.startswith(
        f"{some.sum()} of {len(points)} predictions of the best model, {best}, are flagged"
    )
    assert line.text.endswith(f": {some.sum()} {crowded}.{hint}")
    one = its & small["point"].isin(points[:1])
    not_probed = Validity(ValidityKind.NOT_PROBED, "ranks in same node").text
    mixed = small.assign(validity=small["validity"].mask(some, crowded).mask(one, not_probed))
    (line,) = measurement_conditions.list_anomalies(mixed, {}, paired)
    assert f": {some.sum() - one.sum()} {crowded}; {one.sum()} {not_probed}." in line.text
    others = there & (small["model"] != best)
    assert not measurement_conditions.list_anomalies(
        small.assign(validity=small["validity"].mask(others, crowded)), {}, paired
    )


def print_outcome(folder):
    """Return the lines that a run prints, without the files of its report."""
    *lines, _blank, _workbook, _page = Run(folder).text().splitlines()
    return lines


def test_the_terminal_prints_the_anomalies_of_the_report_below_the_outcome(folder):
    without_anomalies = print_outcome(folder)
    frame = pd.read_csv(folder / "comparison.csv")
    frame.loc[frame["platform"] == "ether16", "measured_high"] *= 3
    frame.to_csv(folder / "comparison.csv", index=False)
    *shown, blank, anomaly = print_outcome(folder)
    # Uncertain times correct the recommended prediction less, so its numbers differ.
    assert [line[:28] for line in shown] == [line[:28] for line in without_anomalies]
    assert blank == ""
    anomaly = anomaly.removeprefix("1. ")
    assert anomaly.startswith("ether16: ")
    assert "uncertain by more than a factor of 2" in anomaly
    assert anomaly in sentences(build_stored_report(folder), BEST_MODEL)


def test_the_terminal_has_the_best_five_models_and_counts_the_others(folder):
    frame = pd.read_csv(folder / "comparison.csv")
    first = frame[frame["model"] == frame["model"].iloc[0]]
    worse = [first.assign(model=f"m{number}", mu=10.0 + number) for number in range(7)]
    pd.concat([frame, *worse]).to_csv(folder / "comparison.csv", index=False)
    rows = print_outcome(folder)
    (others,) = (line for line in rows if line.startswith("other models, with higher errors: "))
    for platform in frame["platform"].unique():
        assert len([line for line in rows if line.startswith(platform)]) == 6
        assert re.search(rf"[1-9] on {platform}", others)


def test_the_terminal_does_not_name_a_prediction_to_use_where_all_are_far_off(folder):
    frame = pd.read_csv(folder / "comparison.csv")
    off = frame["platform"] == "ether16"
    frame.loc[off, ["measured", "measured_low", "measured_high"]] *= 50 ** (
        1 + frame.loc[off, "bytes"] % 3
    )
    frame.loc[off, "mu"] = 50.0
    frame.to_csv(folder / "comparison.csv", index=False)
    first = print_outcome(folder)[0]
    assert "Prediction to use: " in first
    used, _, useless = first.partition("No prediction is within a factor of 2 on average: best ")
    assert "on ether16" not in used
    assert "on ether16" in useless


GONE = ["measured", "measured_low", "measured_high", "relative_error", "mu", "regret", "skew"]


def remove_measurements(comparison, statuses):
    """Return the comparison, the same with gaps at some points of the real platform, and the list
    of these gaps."""
    whole = comparison[comparison["measurement"] == "ok"]
    frame, lines = whole.copy(), []
    frame[["chosen", "best"]] = frame[["chosen", "best"]].astype(object)
    points = whole[whole["platform"] == "ether16"].drop_duplicates("point").iloc[::8]
    for (_, point), status in zip(points.iterrows(), statuses, strict=False):
        of_point = frame["point"] == point["point"]
        frame.loc[of_point, GONE] = np.nan
        frame.loc[of_point, ["covered", "chosen", "best"]] = False
        frame.loc[of_point, "measurement"] = f"not measured: {status}"
        about = [
            point["point"],
            "b-0",
            "ether16",
            False,
            "point",
            point["operation"],
            point["alternative"],
            "block",
        ]
        lines.append(
            [
                *about,
                point["ranks"],
                16,
                0,
                point["bytes"],
                np.nan,
                status,
                f"why {status} = {len(lines)}",
            ]
        )
    return whole, frame, pd.DataFrame(lines, columns=list_columns(UNMEASURED))


def test_gaps_are_counted_and_listed(small):
    _, frame, gaps = remove_measurements(small, ["budget", "crash", "budget"])
    report = make_report(frame, experiment="gaps", unmeasured=gaps)
    total = frame.loc[frame["platform"] == "ether16", "point"].nunique()
    first, second, *_ = describe_missing(frame)
    assert first == f"3 of {total} points were not measured: 2 budget and 1 crash."
    assert f"ether16: {first}" in sentences(report, MISSING)
    assert second.startswith("3 workloads lack an alternative")
    (table,) = report.section("Not measured").tables
    assert sorted(table.column("reason")) == sorted(gaps["reason"])
    assert sorted(table.column("id")) == sorted(gaps["id"])


def list_gaps(unmeasured):
    """Return the sections of a report on missing points."""
    prepared = measurement_conditions.prepare_unmeasured(unmeasured)
    return measurement_conditions.list_unmeasured(prepared)


def test_nothing_missing_is_no_section(small):
    whole, _, gaps = remove_measurements(small, [])
    for unmeasured in (None, gaps):
        assert not list_gaps(unmeasured)
    assert not any("not measured" in line for line in describe_missing(whole))


def test_gaps_touch_no_score(small):
    """The scores are the same as if these points had never been planned."""
    whole, frame, _ = remove_measurements(small, ["budget", "timeout", "crash", "unfinished"])
    never = whole[~whole["point"].isin(frame.loc[frame["measured"].isna(), "point"])]
    assert len(never) == len(whole) - 4 * small["model"].nunique()
    by = ["platform", "model"]
    pd.testing.assert_frame_equal(summarize_errors(frame, by), summarize_errors(never, by))
    for platform in ("ether16", "fattree"):
        with_gaps, without = (
            rank_models(part[part["platform"] == platform]) for part in (frame, never)
        )
        pd.testing.assert_frame_equal(with_gaps, without)


def test_points_with_only_some_passes_are_counted(small):
    whole, _, _ = remove_measurements(small, [])
    few = whole["point"].isin(whole["point"].unique()[:2])
    frame = whole.assign(measurement=whole["measurement"].mask(few, "ok, 2 of 3 passes"))
    (line,) = (line for line in describe_missing(frame) if "passes" in line)
    assert line.startswith("2 points have only some passes (2 with 2 of 3 passes).")


@pytest.mark.parametrize("waves", [np.nan, 50])
def test_the_table_of_unmeasured_points_has_waves_if_a_stream_is_missing(small, waves):
    _, _, gaps = remove_measurements(small, ["budget", "crash"])
    (section,) = list_gaps(gaps.assign(waves=[waves, np.nan]))
    (table,) = section.tables
    keys = [column.key for column in table.columns]
    assert ("waves" in keys) == (waves == 50)
    assert waves != 50 or 50 in table.column("waves")


def test_probe_cases_without_samples_are_counted():
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
    ]
    probe += ["timeout", "hung"]
    no_samples = pd.DataFrame(columns=["kind", "platform", "passes"])
    for number, words in ((1, "1 probe case was"), (2, "2 probe cases were")):
        gaps = pd.DataFrame([probe] * number, columns=list_columns(UNMEASURED))
        (line,) = measurement_conditions.describe_unmeasured_probes(gaps, no_samples, {})
        expected = f"{words} not measured: {number} timeout (pingpong {number})."
        assert (line.platform, line.text) == ("fattree", expected)
    (section,) = list_gaps(gaps)
    (table,) = section.tables
    assert table.column("leaves") == [None] * number


def test_probe_cases_with_only_some_passes_are_counted(inputs, small):
    """The real platform has three passes, the simulated one has one."""
    raw = inputs["raw"].assign(passes=lambda frame: (frame["platform"] == "ether16") * 2 + 1)
    gaps, passes = pd.DataFrame(columns=list_columns(UNMEASURED)), {"ether16": 3, "fattree": 1}
    assert not measurement_conditions.describe_unmeasured_probes(gaps, raw, passes)
    probes = raw.index[(raw["kind"] == "probe") & (raw["platform"] == "ether16")]
    for number, subject in ((1, "1 probe case has"), (2, "2 probe cases have")):
        raw.loc[probes[:number], "passes"] = 2
        (line,) = measurement_conditions.describe_unmeasured_probes(gaps, raw, passes)
        assert line.platform == "ether16"
        assert line.text.startswith(
            f"{subject} only some passes ({raw.loc[probes[0], 'name']} {number})."
        )
    report = make_report(small, raw=raw, passes=passes, experiment="some")
    assert [text for text in sentences(report, MISSING) if "probe case" in text] == [
        f"ether16: {line.text}"
    ]


def share_processors(comparison, processes):
    """Return the comparison with ether16 measured with this number of processes on two
    processors."""
    there = comparison["platform"] == "ether16"
    return comparison.assign(
        processes=np.where(there, processes, np.nan), processors=np.where(there, 2, np.nan)
    )


def test_oversubscribed_hosts_come_first(small):
    frame = share_processors(small, 65)
    about = (
        {name: {"hosts": ["a1"]} for name in frame["batch"].unique()} if "batch" in frame else {}
    )
    report = make_report(frame, experiment="crowd", provenance=about)
    points = frame.loc[
        (frame["platform"] == "ether16") & frame["measured"].notna(), "point"
    ].nunique()
    line = sentences(report, BEST_MODEL)[0]
    assert line.startswith("ether16: 65 processes share 2 processors on ")
    assert f"at {points} points." in line
    (table,) = report.section("Comparison").tables
    assert set(table.column("processes")) == {65, None}
    assert set(table.column("processors")) == {2, None}


def test_a_processor_for_each_process_is_no_anomaly(small, report):
    for shown in (report, make_report(share_processors(small, 2), experiment="room")):
        assert not any("processors" in line for line in sentences(shown, BEST_MODEL))
        (table,) = shown.section("Comparison").tables
        assert "processors" not in [column.key for column in table.columns]


def test_the_algorithm_of_the_mpi_default_is_shown_where_it_is_known(small, report):
    first = small["point"] == small["point"].iloc[0]
    known = small.assign(default_algorithm=np.where(first, "ring", ""))
    (table,) = make_report(known, experiment="known").section("Comparison").tables
    assert set(table.column("default_algorithm")) == {"ring", ""}
    (table,) = report.section("Comparison").tables
    assert "default_algorithm" not in [column.key for column in table.columns]


ALWAYS = ("ranks", "leaves", "bytes", "fan_in")


@pytest.fixture(scope="module")
def streamed(fewer):
    """Return a report in which every reduction was also measured as a stream, whose waves take a
    fifth of the time."""
    waves = fewer[fewer["operation"] == "reduce"].copy()
    for name in ("point", "workload"):
        waves[name] = waves[name] + " 50 waves"
    for name in ("measured", "measured_low", "measured_high", "seconds", "low", "high"):
        waves[name] = waves[name] / 5
    waves = waves.assign(waves=50, first=5 * waves["measured"], last=6 * waves["measured"])
    together = fewer.assign(waves=1, first=np.nan, last=np.nan)
    return make_report(
        type(waves)(np.concatenate([together, waves]), columns=together.columns),
        experiment="streams",
    )


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
    (table,) = streamed.section("Comparison").tables
    headers = {column.header for column in table.columns}
    assert {"waves", "first wave [µs]", "last wave [µs]"} <= headers


def test_a_stream_of_waves_is_reported_as_a_separate_operation(streamed, report):
    operations = set(rows_of(streamed)["operation"])
    assert operations == {*rows_of(report)["operation"], "stream of reduce"}
    (errors,) = [
        table for table in streamed.section("Errors").tables if table.name == "Mean μ by operation"
    ]
    assert "stream of reduce" in errors.column("operation")
    (regrets,) = streamed.section("Selection").tables
    assert any(size.endswith(" leaves, 50 waves") for size in regrets.column("size"))
    (uses,) = (
        table
        for table in streamed.section("What to use").tables
        if table.name == "Fastest alternatives"
    )
    assert "stream of reduce" in uses.column("operation")


def test_a_comparison_without_the_column_waves_has_one_wave_a_point(comparison):
    named = name_streams(add_default_columns(comparison, COMPARISON))
    assert set(named["waves"]) == {1}
    assert named["operation"].equals(comparison["operation"])
