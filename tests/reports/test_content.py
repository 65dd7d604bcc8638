"""What a report says: sentences, marks, and what becomes of missing, empty, hostile and badly typed input."""

import io
import math

import numpy as np
import openpyxl
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reading import sentences

from commodel.reports import build, write_xlsx
from commodel.reports.html.page import page_html
from commodel.reports.shape import number_format, show


def test_trust_names_the_best_family_of_each_platform(report, comparison):
    lines = sentences(report, "Which model to trust")
    for platform, part in comparison.groupby("platform"):
        means = part[part["held_out"]].groupby("family")["mu"].mean().sort_values()
        best, second, third = means.index[:3]
        name = f"{platform} (simulated)" if platform == "fattree" else platform
        (line,) = [line for line in lines if line.startswith(f"{name}: {best} predicts best (mean μ {means[best]:.2f}")]
        assert f"Next: {second} ({means[second]:.2f}) and {third} ({means[third]:.2f})." in line
        everyone = ", ".join(f"{family} {mu:.2f}" for family, mu in means.items() if family != "pram")
        assert f"{name}: All by mean μ: {everyone}, pram ∞." in lines


def test_an_algorithm_and_a_topology_of_one_name_have_errors_of_their_own(report, comparison):
    """`binomial` is how a broadcast runs, and a tree that a reduction runs over."""
    (matrix,) = [table for table in report.section("Errors").tables if table.name == "Mean μ by choice"]
    columns = [matrix.column(key) for key in ("platform", "kind", "choice", "= loggp")]
    errors = {tuple(names): mu for *names, mu in zip(*columns, strict=True)}
    kind = comparison["topology"].map(lambda topology: "topology" if topology else "algorithm")
    rows = comparison[(comparison["family"] == "loggp") & comparison["held_out"]]
    means = rows.groupby(["platform", kind, "choice"])["mu"].mean()
    assert errors == pytest.approx(means.to_dict())
    assert {("ether16", "algorithm", "binomial"), ("ether16", "topology", "binomial")} <= set(errors)


def test_a_family_that_prices_little_is_not_the_best(fewer):
    shy = fewer.copy()
    hidden = (shy["family"] == "plogp") & (shy["bytes"] > 1)
    shy.loc[hidden, ["predicted", "mu", "relative_error"]] = np.nan
    shy.loc[(shy["family"] == "plogp") & ~hidden, "mu"] = 1.0
    lines = sentences(build(shy, experiment="shy"), "Which model to trust")
    assert not any("plogp predicts best" in line for line in lines)


def test_poor_families_are_not_recommended(fewer):
    poor = fewer.assign(mu=fewer["mu"] + 1)
    lines = sentences(build(poor, experiment="poor"), "Which model to trust")
    assert any(line.endswith("poor.") or ": poor." in line for line in lines)
    assert any("bcast: none (best is" in line for line in lines)


def test_use_says_where_the_winner_changes(report):
    lines = sentences(report, "What to use")
    (line,) = [line for line in lines if line.startswith("ether16: allreduce over 64 ranks")]
    assert "recursive-doubling from 1\N{NO-BREAK SPACE}B to 4\N{NO-BREAK SPACE}KiB" in line
    assert "ring at 16\N{NO-BREAK SPACE}KiB" in line
    (use,) = report.section("What to use").tables[:1]
    rows = list(zip(*(use.column(key) for key in ("platform", "operation", "size", "use", "span")), strict=True))
    assert ("ether16", "allreduce", "64 ranks", "ring", "at 16 KiB") in rows
    assert (
        "ether16",
        "allreduce",
        "64 ranks",
        "recursive-doubling",
        "from 1 B to 4 KiB",
    ) in rows


def test_missing_is_counted(report):
    lines = sentences(report, "What is missing")
    assert "fattree (simulated): Its measurements come from a simulator, not from hardware." in lines
    assert "2 of 198 points were not measured: 2 budget (ether16 2)." in lines
    assert any(line.startswith("16 of 1782 predictions missing (hockney 16)") for line in lines)
    assert any("20 of 1782 predictions doubtful" in line for line in lines)
    assert any("20 of 1782 predictions not held out" in line and "(pmnf 20)" in line for line in lines)


def test_best_values_are_marked(report):
    table = next(table for table in report.section("Standings").tables if table.name == "Families")
    keys = [column.key for column in table.columns]
    marked = {(table.rows[row][0], keys[place]): table.rows[row][keys.index("family")] for row, place in table.marks}
    for platform in ("ether16", "fattree"):
        rows = [dict(zip(keys, row, strict=True)) for row in table.rows if row[0] == platform]
        assert marked[platform, "mu_mean"] == min(rows, key=lambda row: row["mu_mean"])["family"] == rows[0]["family"]
        assert (platform, "inside_share") not in marked  # the widest interval would win


def test_selection_agrees_with_the_comparison(report, comparison):
    (table,) = report.section("Selection").tables
    regrets = [value for value in table.column("regret pmnf") if value is not None and not math.isnan(value)]
    expected = comparison[(comparison["family"] == "pmnf") & comparison["chosen"]]["regret"] * 100
    assert sorted(regrets) == pytest.approx(sorted(expected))


def test_picks_name_what_differs_and_nothing_else(report, comparison):
    (table,) = report.section("Picks").tables
    chosen = comparison[comparison["chosen"] & (comparison["regret"] > 0)]
    assert len(table.rows) == chosen["group"].nunique()
    named = sum(isinstance(pick, str) and pick != "" for row in table.rows for pick in row[table.fixed + 2 :])
    assert named == len(chosen)


def test_where_nothing_was_to_be_chosen_there_is_no_table(small, tmp_path, parse):
    """One schedule a job, and no library beside it."""
    single = small[small["choice"] != "library"].assign(chosen=False)
    single = single[single["point"] == single.groupby("group")["point"].transform("first")]
    report = build(single, experiment="kernels")
    for name in ("Selection", "Picks"):
        assert not report.section(name).blocks
        assert "Nothing was to be chosen" in report.section(name).note
    write_xlsx(report, tmp_path / "kernels.xlsx")
    parse(page_html(report))


def test_empty_comparison_says_so(comparison, tmp_path, parse):
    empty = build(comparison.iloc[:0], experiment="nothing")
    assert "holds no points" in sentences(empty, "What is missing")[0]
    write_xlsx(empty, tmp_path / "empty.xlsx")
    assert openpyxl.load_workbook(tmp_path / "empty.xlsx").sheetnames[0] == "Summary"
    parse(page_html(empty))


@pytest.mark.parametrize("column", ["measured", "predicted"])
def test_nothing_to_compare(small, column, tmp_path, parse):
    blank = small.assign(chosen=False, best=False, inside=False)
    gone = [column, f"{column}_low", f"{column}_high", "mu", "relative_error", "regret"]
    blank[gone] = np.nan
    report = build(blank, experiment="blank")
    assert "No point has both a prediction and a measurement" in sentences(report, "Which model to trust")[0]
    write_xlsx(report, tmp_path / "blank.xlsx")
    parse(page_html(report))


def test_a_price_of_zero_is_off_the_chart_and_infinitely_wrong(small, tmp_path, parse):
    free = small.copy()
    of_pmnf = free["family"] == "pmnf"
    free.loc[of_pmnf, ["predicted", "predicted_low", "predicted_high"]] = 0.0
    free.loc[of_pmnf & free["measured"].notna(), ["relative_error", "mu"]] = [-1.0, np.inf]
    report = build(free, experiment="free")
    write_xlsx(report, tmp_path / "free.xlsx")
    assert "∞" in {cell for table in parse(page_html(report)).tables for row in table for cell in row}
    assert all(value > 0 for chart in report.charts for series in chart.series for value in series.y)


def test_a_comparison_read_from_csv_gives_the_same_report(inputs, report):
    again = pd.read_csv(io.StringIO(inputs["comparison"].to_csv(index=False)))
    assert again["algorithm"].isna().any(), "the trap: an empty text comes back as NaN"
    from_csv = build(**inputs | {"comparison": again})
    for direct, other in zip(report.sections, from_csv.sections, strict=True):
        assert repr(direct) == repr(other)
    assert repr(report.fronts) == repr(from_csv.fronts)


def test_points_without_any_price(small):
    bare = small.drop_duplicates("point").assign(
        family=np.nan, validity=np.nan, predicted=np.nan, mu=np.nan, chosen=False
    )
    report = build(bare, experiment="bare")
    assert report.section("Standings").tables[0].rows == ()


@given(
    value=st.floats(-1e300, 1e300),
    kind=st.sampled_from(["number", "percent", "signed", "ratio", "times"]),
)
def test_numbers_read_back(value, kind):
    text = show(kind, value)
    assert len(number_format(kind, value)) < 40
    digits = {"percent": 0.05, "signed": 0.05, "ratio": 0.0005, "times": 0.005}.get(kind, abs(value) * 5.1e-4)
    assert float(text.replace(",", "")) == pytest.approx(value, abs=digits * 1.001 + abs(value) * 1e-3)


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
    assert show(kind, value) == text
