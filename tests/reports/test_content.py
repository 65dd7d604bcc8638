"""Sentences and marks of a report, and reports of missing, empty, hostile and badly typed input."""

import io
import math
import re

import numpy as np
import openpyxl
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.reports import write_xlsx
from commodel.reports.comparison_frame import prepare_comparison
from commodel.reports.elements import (
    AnsweredQuestion,
    Remark,
    choose_number_format,
    format_error,
    format_value,
)
from commodel.reports.evaluated_campaign import evaluate_campaign
from commodel.reports.html.page import format_page
from commodel.reports.sections import measurement_conditions, summary
from tests.reading import sentences
from tests.reports.reading import make_report

BEST_MODEL, WHAT_TO_USE, MISSING = "Which model predicts best", "What to use", "What is missing"


def test_the_best_model_of_each_platform_is_named(report, comparison):
    lines = sentences(report, BEST_MODEL)
    (table,) = [
        table for table in report.section("Standings").tables if table.name == "Errors by model"
    ]
    errors = list(
        zip(*(table.column(key) for key in ("platform", "model", "mu_mean")), strict=True)
    )
    for platform, part in comparison.groupby("platform"):
        held_out = part[part["held_out"] & part["mu"].notna()]
        means = held_out.groupby("model")["mu"].mean().sort_values()
        best, second, third = means.index[:3]
        points = (held_out["model"] == best).sum()
        name = f"{platform} (simulated)" if platform == "fattree" else platform
        first, others = [line for line in lines if line.startswith(name)]
        is_tied = "Statistically tied" in others
        verdict = "has the lowest mean error," if is_tied else "predicts best: mean error"
        assert first.startswith(
            f"{name}: {best} {verdict} {format_error(means[best])} on {points} "
        )
        assert f"{second} ({format_error(means[second])})" in others
        assert f"{third} ({format_error(means[third])})" in others
        assert [entry[1:] for entry in errors if entry[0] == platform] == list(means.items())


def questions(report):
    """Return question, platform and sentences of the Summary's answers."""
    asked = tuple(summary.MAX_SENTENCES)
    answers = [
        block for block in report.section("Summary").blocks if isinstance(block, AnsweredQuestion)
    ]
    parts = [(answer.question.partition(": "), answer.sentences) for answer in answers]
    return [
        (question, platform, lines) for (question, _, platform), lines in parts if question in asked
    ]


def test_a_platform_has_at_most_fourteen_sentences_and_measured_platforms_come_first(small):
    flagged = small["validity"].mask(
        small["platform"] == "ether16", "extrapolated: 2.0 doublings beyond"
    )
    asked = questions(make_report(small.assign(validity=flagged), experiment="short"))
    assert [platform for _, platform, _ in asked] == ["ether16"] * 5 + ["fattree (simulated)"] * 5
    assert [question for question, *_ in asked] == 2 * list(summary.MAX_SENTENCES)
    for name in ("ether16", "fattree (simulated)"):
        assert 5 <= sum(len(lines) for _, platform, lines in asked if platform == name) <= 14


@pytest.mark.parametrize("number", [1, 2, 5])
def test_further_findings_are_counted_and_the_answer_stays(small, number):
    frame = prepare_comparison(small)
    frame = frame[frame["platform"] == "ether16"]
    remarks = [Remark("ether16", f"Anomaly {place}.") for place in range(number)]
    others = [Remark("fattree", "Elsewhere.")]
    campaign, no_uses = evaluate_campaign(frame), frame.iloc[:0]
    found = summary.find_answers(campaign, no_uses, {BEST_MODEL: [*remarks, *others]})
    shown = found[0].summarize(set())
    assert shown.question == f"{BEST_MODEL}: ether16"
    assert shown.sentences[0] == "Anomaly 0."
    assert re.search(
        r" (predicts best: mean error|has the lowest mean error,) ", shown.sentences[1]
    )
    assert len(shown.sentences) == 3
    without_remarks = summary.find_answers(campaign, no_uses, {})[0].sentences
    hidden = len(without_remarks) + number - 2
    if hidden > 1:
        assert shown.sentences[2] == f"{hidden} more findings: see Findings."
    assert {remark.text for remark in remarks} <= set(found[0].sentences)
    # A platform that has only probes, and so no row of the comparison, keeps its remark.
    assert found[-1] == summary.Findings("fattree", BEST_MODEL, ("Elsewhere.",))


def test_all_findings_have_a_sheet_if_the_summary_has_only_some(report):
    (findings,) = report.section(summary.FINDINGS).tables
    columns = (findings.column(key) for key in ("platform", "question", "finding"))
    every = set(zip(*columns, strict=True))
    for question, platform, lines in questions(report):
        shown = {(platform.removesuffix(" (simulated)"), question, line) for line in lines}
        assert all(" more findings: see Findings." in line for _, _, line in shown - every)


def test_an_algorithm_and_a_topology_of_one_name_have_errors_of_their_own(report, comparison):
    """`binomial` is how a broadcast runs, and a tree that a reduction runs over."""
    (matrix,) = [
        table for table in report.section("Errors").tables if table.name == "Mean μ by alternative"
    ]
    columns = [matrix.column(key) for key in ("platform", "kind", "alternative", "= loggp")]
    errors = {tuple(names): mu for *names, mu in zip(*columns, strict=True)}
    kind = comparison["topology"].map(lambda topology: "topology" if topology else "algorithm")
    rows = comparison[(comparison["model"] == "loggp") & comparison["held_out"]]
    means = rows.groupby(["platform", kind, "alternative"])["mu"].mean()
    assert errors == pytest.approx(means.to_dict())
    assert {("ether16", "algorithm", "binomial"), ("ether16", "topology", "binomial")} <= set(
        errors
    )


def test_a_model_with_few_predictions_is_not_the_best(fewer):
    sparse = fewer.copy()
    hidden = (sparse["model"] == "plogp") & (sparse["bytes"] > 1)
    sparse.loc[hidden, ["seconds", "mu", "relative_error"]] = np.nan
    sparse.loc[(sparse["model"] == "plogp") & ~hidden, "mu"] = 1.0
    lines = sentences(make_report(sparse, experiment="sparse"), BEST_MODEL)
    assert any("mean error" in line for line in lines)
    assert not any(re.search("plogp (predicts best|has the lowest)", line) for line in lines)


def test_poor_models_are_not_recommended(fewer):
    lines = sentences(make_report(fewer.assign(mu=fewer["mu"] + 1), experiment="poor"), BEST_MODEL)
    assert any(line.endswith("(poor).") for line in lines)
    assert any(
        re.search(r"No model predicts .*bcast \(best: \w+, factor [2-9]\.\d\d\).* well\.$", line)
        for line in lines
    )


def test_use_names_the_sizes_of_an_alternative(report):
    line = "ether16: Use ring for allreduce on 64 ranks at 16\N{NO-BREAK SPACE}KiB."
    assert line in sentences(report, WHAT_TO_USE)
    (use,) = report.section("What to use").tables[:1]
    rows = list(
        zip(
            *(use.column(key) for key in ("platform", "operation", "size", "fastest", "span")),
            strict=True,
        )
    )
    assert ("ether16", "allreduce", "64 ranks", "ring", "at 16 KiB") in rows
    assert ("ether16", "allreduce", "64 ranks", "recursive-doubling", "from 1 B to 4 KiB") in rows


def test_missing_is_counted(report, comparison):
    frame, lines = prepare_comparison(comparison), {}
    for platform, simulated in (("ether16", False), ("fattree", True)):
        lines[platform] = measurement_conditions.describe_missing(
            frame[frame["platform"] == platform], simulated
        )
    first, *others = lines["ether16"]
    assert first == "2 of 114 points were not measured: 2 budget."
    shown = [line for line in sentences(report, MISSING) if line.startswith("ether16: ")]
    assert shown == [f"ether16: {first}", f"ether16: {len(others)} more findings: see Findings."]
    for platform, predictions in (("ether16", 1026), ("fattree", 756)):
        assert f"8 of {predictions} predictions are missing (hockney 8)." in lines[platform]
        assert (
            f"10 of {predictions} predictions are not held out (pmnf 10): not counted."
            in lines[platform]
        )
    flagged = "20 of 756 predictions are flagged (hockney extrapolated 10, loggp extrapolated 10)."
    assert flagged in lines["fattree"]


def test_best_values_are_marked(report):
    table = next(
        table for table in report.section("Standings").tables if table.name == "Errors by model"
    )
    keys = [column.key for column in table.columns]
    marked = {
        (table.rows[row][0], keys[place]): table.rows[row][keys.index("model")]
        for row, place in table.marks
    }
    for platform in ("ether16", "fattree"):
        rows = [dict(zip(keys, row, strict=True)) for row in table.rows if row[0] == platform]
        assert (
            marked[platform, "mu_mean"]
            == min(rows, key=lambda row: row["mu_mean"])["model"]
            == rows[0]["model"]
        )
        assert (platform, "covered_share") not in marked  # the widest interval would win


def test_selection_agrees_with_the_comparison(report, comparison):
    (table,) = report.section("Selection").tables
    regrets = [
        value
        for value in table.column("regret pmnf")
        if value is not None and not math.isnan(value)
    ]
    expected = comparison[(comparison["model"] == "pmnf") & comparison["chosen"]]["regret"] * 100
    assert sorted(regrets) == pytest.approx(sorted(expected))


def test_choices_by_model_lists_exactly_the_choices_with_regret(report, comparison):
    (table,) = report.section("Choices by model").tables
    chosen = comparison[comparison["chosen"] & (comparison["regret"] > 0)]
    assert len(table.rows) == chosen["workload"].nunique()
    named = sum(
        isinstance(pick, str) and pick != ""
        for row in table.rows
        for pick in row[table.fixed + 2 :]
    )
    assert named == len(chosen)


def test_without_a_choice_there_is_no_table(small, tmp_path, parse):
    """There is one alternative a workload and no MPI default."""
    single = small[small["alternative"] != "library"].assign(chosen=False)
    single = single[single["point"] == single.groupby("workload")["point"].transform("first")]
    report = make_report(single, experiment="kernels")
    for name in ("Selection", "Choices by model"):
        assert not report.section(name).blocks
        assert "There was no choice" in report.section(name).note
    write_xlsx(report, tmp_path / "kernels.xlsx")
    parse(format_page(report))


def test_an_empty_comparison_is_reported(comparison, tmp_path, parse):
    empty = make_report(comparison.iloc[:0], experiment="nothing")
    assert "no points" in sentences(empty, MISSING)[0]
    write_xlsx(empty, tmp_path / "empty.xlsx")
    assert openpyxl.load_workbook(tmp_path / "empty.xlsx").sheetnames[0] == "What to use"
    parse(format_page(empty))


@pytest.mark.parametrize("column", ["measured", "seconds"])
def test_nothing_to_compare(small, column, tmp_path, parse):
    blank = small.assign(chosen=False, best=False, covered=False)
    gone = [column, f"{column}_low", f"{column}_high", "mu", "relative_error", "regret"]
    blank[gone] = np.nan
    report = make_report(blank, experiment="blank")
    assert "No point has both a prediction and a measurement" in sentences(report, BEST_MODEL)[0]
    write_xlsx(report, tmp_path / "blank.xlsx")
    parse(format_page(report))


def test_a_prediction_of_zero_is_off_the_chart_and_infinitely_wrong(small, tmp_path, parse):
    free = small.copy()
    of_pmnf = free["model"] == "pmnf"
    free.loc[of_pmnf, ["seconds", "low", "high"]] = 0.0
    free.loc[of_pmnf & free["measured"].notna(), ["relative_error", "mu"]] = [-1.0, np.inf]
    report = make_report(free, experiment="free")
    write_xlsx(report, tmp_path / "free.xlsx")
    assert "∞" in {
        cell for table in parse(format_page(report)).tables for row in table for cell in row
    }
    assert all(
        value > 0 for chart in report.charts for series in chart.series for value in series.y
    )


def test_a_comparison_read_from_csv_gives_the_same_report(inputs, small):
    report = make_report(**inputs | {"comparison": small})
    again = pd.read_csv(io.StringIO(small.to_csv(index=False)))
    assert again["algorithm"].isna().any(), "the trap: an empty text comes back as NaN"
    from_csv = make_report(**inputs | {"comparison": again})
    for direct, other in zip(report.sections, from_csv.sections, strict=True):
        assert repr(direct) == repr(other)
    assert repr(report.screens) == repr(from_csv.screens)


def test_points_without_any_prediction(small):
    bare = small.drop_duplicates("point").assign(
        model=np.nan, validity=np.nan, seconds=np.nan, mu=np.nan, chosen=False
    )
    report = make_report(bare, experiment="bare")
    assert report.section("Standings").tables[0].rows == ()


@given(
    value=st.floats(-1e300, 1e300),
    kind=st.sampled_from(["number", "percent", "signed", "ratio", "times"]),
)
def test_numbers_read_back(value, kind):
    text = format_value(kind, value)
    assert len(choose_number_format(kind, value)) < 40
    digits = {"percent": 0.05, "signed": 0.05, "ratio": 0.0005, "times": 0.005}.get(
        kind, abs(value) * 5.1e-4
    )
    assert float(text.replace(",", "")) == pytest.approx(
        value, abs=digits * 1.001 + abs(value) * 1e-3
    )


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("number", 0.0, "0.000"),
        ("number", 344.112, "344.1"),
        ("number", 2860.944, "2,861"),
        ("number", 2.4e-4, "2.400E-04"),
        ("number", -15.5, "-15.50"),
        ("signed", 3.04, "+3.0"),
        ("percent", 1225.2, "1,225.2"),
        ("count", 1048576, "1,048,576"),
        ("ratio", 1.0417, "1.042"),
        ("number", math.nan, "n/a"),
        ("number", math.inf, "∞"),
        ("flag", True, "yes"),
        ("text", None, ""),
    ],
)
def test_how_values_read(kind, value, text):
    assert format_value(kind, value) == text


def test_the_main_chart_has_the_interval_of_each_recommended_prediction(report):
    for screen in report.screens:
        of_models = {series.name: series for series in screen.scatter.series}
        recommended = of_models.pop("recommended")
        assert len(recommended.low) == len(recommended.y) > 0
        intervals = zip(recommended.low, recommended.y, recommended.high, strict=True)
        assert all(low <= seconds <= high for low, seconds, high in intervals)
        assert not any(series.low for series in of_models.values())
