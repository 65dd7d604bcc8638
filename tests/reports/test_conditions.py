"""What a report says of how points were measured: caches, other users, more processes than processors, streams of
waves; and of what was not measured.
"""

import numpy as np
import pandas as pd
import pytest
from tests.reading import sentences

from commodel.cli.run import print_outcome
from commodel.compare.comparison import name_streams, summarize
from commodel.compare.model_ranking import rank_models
from commodel.files.results_folder import Results
from commodel.files.tables import COMPARISON, UNMEASURED, names, with_defaults
from commodel.predictions.validity import Validity, ValidityKind
from commodel.reports import build, stored
from commodel.reports.sections import conditions

TRUST = "Which model to trust"


def on_this_machine(comparison, operation="summa:n=16:grid=1x2", ratio=2.0):
    """A platform of it, as if it were real, its points a kernel's that took so many times their predictions."""
    there = comparison["platform"] == "ether16"
    frame = comparison.assign(batch="ether16-1")
    frame.loc[there, ["operation", "simulated"]] = operation, False
    for key in ("measured", "measured_low", "measured_high"):
        frame.loc[there, key] = ratio * frame.loc[there, "predicted"]
    return frame


@pytest.mark.parametrize(("ratio", "said"), [(2.0, True), (1.0, False)])
def test_kernels_find_their_memory_cold(small, ratio, said):
    lines = sentences(build(on_this_machine(small, ratio=ratio), experiment="cold"), TRUST)
    cold = [line for line in lines if line.startswith("ether16: Kernels took ")]
    assert len(cold) == said
    assert all("took 2 times their predictions" in line and "may then leave memory" in line for line in cold)


def test_nothing_is_said_of_what_does_not_compute_or_is_simulated(small):
    assert not conditions.describe_conditions(on_this_machine(small, "bcast"), {})
    assert not conditions.describe_conditions(on_this_machine(small).assign(simulated=True), {})


@pytest.mark.parametrize(("at_work", "said"), [(1.7, True), (0.1, False), (None, False), ("1.7", False)])
def test_a_busy_machine_is_said_to_be_busy(small, at_work, said):
    about = {"ether16-1": {"cores": 2, **({} if at_work is None else {"at_work": at_work})}}
    lines = conditions.describe_conditions(on_this_machine(small, "bcast"), about)
    assert len(lines) == said
    assert all("others kept 1.7 of its 2 processors at work" in line for line in lines)


def test_medians_that_nobody_knows_are_counted_and_say_nothing_of_caches(small):
    frame = on_this_machine(small)
    points = frame.loc[frame["platform"] == "ether16", "point"].unique()
    frame.loc[frame["point"].isin(points[:3]), "measured_high"] *= 3
    frame.loc[frame["point"] == points[0], "measured_low"] /= 400
    line, cold = conditions.describe_conditions(frame, {})
    known = "measured medians are known to a factor of 2 at best, of 1,200 at worst"
    assert line.startswith(f"ether16: 3 of {len(points)} {known}: samples scatter or passes differ")
    assert f"({len(points) - 3} points," in cold


def test_levels_that_nobody_named_are_told_once_a_platform(small):
    """Whichever family was found to be blind to them, and nothing of one that is blind for another reason."""
    small = with_defaults(small, COMPARISON)
    doubt = Validity(
        ValidityKind.UNNAMED_LEVELS, "round trips between nodes are up to 2.1 times those of the probed nodes"
    ).text
    blind = Validity(ValidityKind.PLACEMENT, "ranks in different leaf groups are predicted as nearer ranks").text
    there = small["platform"] == "ether16"
    frame = small.assign(validity=small["validity"].mask(there & (small["family"] == "hockney"), doubt))
    (line,) = conditions.list_anomalies(frame, {})
    assert line.startswith(
        "ether16: round trips between nodes are up to 2.1 times those of the probed nodes, and the platform"
    )
    help = "file names no levels: `commodel show network EXPERIMENT --levels` tells them, after "
    help += "`probes: [auto, nodepairs]`"
    assert help in line
    (other,) = conditions.list_anomalies(frame.assign(validity=frame["validity"].mask(there, blind)), {})
    assert "names no levels" not in other


@pytest.mark.parametrize(("paired", "hint"), [((), conditions.LOOK), (("ether16",), "")])
def test_what_the_best_family_doubts_is_told(small, paired, hint):
    small = with_defaults(small, COMPARISON)
    crowded = Validity(
        ValidityKind.CONTENTION, "messages of all nodes at once took up to 9.5 times as long as predicted"
    ).text
    there = small["platform"] == "ether16"
    best = rank_models(small[there])["family"].iloc[0]
    its = there & (small["family"] == best)
    points = small.loc[its & small["mu"].notna(), "point"]
    some = its & small["point"].isin(points[: len(points) // 2])
    (line,) = conditions.list_anomalies(small.assign(validity=small["validity"].mask(some, crowded)), {}, paired)
    doubted = f"ether16: the best family, {best}, doubts {some.sum()} of {len(points)} predictions: {crowded}{hint}."
    assert line == doubted
    others = there & (small["family"] != best)
    assert not conditions.list_anomalies(small.assign(validity=small["validity"].mask(others, crowded)), {}, paired)


def test_the_terminal_says_below_its_table_what_the_report_says(folder, capsys):
    def outcome(results):
        print_outcome(results)
        return capsys.readouterr().out

    alone = outcome(Results.of(folder))
    frame = pd.read_csv(folder / "comparison.csv")
    frame.loc[frame["platform"] == "ether16", "measured_high"] *= 3
    frame.to_csv(folder / "comparison.csv", index=False)
    *shown, blank, said = outcome(Results.of(folder)).splitlines()
    assert (shown, blank) == (alone.splitlines(), "")
    said = said.removeprefix("1. ")
    assert said.startswith("ether16: ")
    assert "are known to a factor of 2 at best, of " in said
    assert said in sentences(stored(folder), TRUST)


GONE = ["measured", "measured_low", "measured_high", "relative_error", "mu", "regret", "skew"]


def without(comparison, statuses):
    """The comparison and the list of gaps, had these points of the real platform not been measured."""
    whole = comparison[comparison["measurement"] == "valid"]
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
    raw, requested = inputs["raw"].assign(passes=3), {"ether16": 3, "fattree": 1}
    some = raw.index[(raw["kind"] == "probe") & (raw["platform"] == "ether16")][:number]
    raw.loc[some, "passes"] = 2
    (line,) = (
        line
        for line in sentences(build(small, raw=raw, passes=requested, experiment="some"), "What is missing")
        if "probe case" in line
    )
    words = {1: "1 probe case has", 2: "2 probe cases have"}[number]
    names = raw.loc[some, "name"].iloc[0]
    assert line.startswith(f"{words} some passes only ({names} {number}): intervals ")


def test_probe_cases_of_a_simulated_platform_need_one_pass_only(inputs, small):
    raw = inputs["raw"].assign(passes=lambda frame: (frame["platform"] == "ether16") * 2 + 1)
    report = build(small, raw=raw, passes={"ether16": 3, "fattree": 1}, experiment="some")
    assert not [line for line in sentences(report, "What is missing") if "probe case" in line]


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
    named = name_streams(with_defaults(comparison, COMPARISON))
    assert set(named["waves"]) == {1}
    assert named["operation"].equals(comparison["operation"])
