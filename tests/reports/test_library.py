"""The MPI library's own collective in a report: what choosing gains over it, and that it is no family anywhere."""

import math

import openpyxl
import pandas as pd
import pytest
from tests.reading import sentences

from commodel.compare.comparison import UNPRICED, with_choices
from commodel.reports import build, write_xlsx
from commodel.reports.frames import prepare
from commodel.reports.html.page import page_html
from commodel.reports.sections.library import against

SLOWER = {"allreduce": 2.0, "reduce": 1.0, "bcast": 0.5}  # the library's time over that of the fastest schedule
ANY = "any layout, 16 nodes"
UNKNOWN = ("predicted", "predicted_low", "predicted_high", "relative_error", "mu", "regret")


def judged(frame):
    return with_choices(frame.reset_index(drop=True))


@pytest.fixture(scope="module")
def studied(comparison):
    """Every job with the library beside it, and fattree's broadcasts of 16 ranks cyclic too, three times as slow."""
    second = comparison[(comparison["platform"] == "fattree") & (comparison["operation"] == "bcast")]
    second = second[second["ranks"] == 16].copy()
    second[["measured", "measured_low", "measured_high"]] *= 3
    second = second.assign(layout="cyclic", point="c" + second["point"])
    every = pd.concat([comparison, second])
    first = every[every["measured"].notna()].sort_values("measured")
    own = first.drop_duplicates(["group", "layout"]).copy()
    times = ["measured", "measured_low", "measured_high"]
    own[times] = own[times].mul(own["operation"].map(SLOWER), axis=0)
    own = own.assign(algorithm="library", topology="", choice="library", family="", status=UNPRICED, inside=False)
    own = own.assign(point="l" + own["point"], fan_in=0, **dict.fromkeys(UNKNOWN, math.nan))
    return judged(pd.concat([every, own]))


@pytest.fixture(scope="module")
def report(studied, inputs):
    return build(**inputs | {"comparison": studied})


def table(report, section, name):
    return next(table for table in report.section(section).tables if table.name == name)


def test_use_says_what_is_gained_over_the_library(report):
    lines = sentences(report, "What to use")
    (line,) = [line for line in lines if line.startswith("ether16: allreduce over 64 ranks")]
    assert line.count("2.00× faster than the library's own") >= 1
    (line,) = [line for line in lines if line.startswith("ether16: reduce over 32 leaves")]
    assert "; as fast as the library's own)" in line or "tied with library" in line
    (line,) = [line for line in lines if line.startswith("ether16: bcast over 64 ranks")]
    assert "block: library from 1\N{NO-BREAK SPACE}B to 64\N{NO-BREAK SPACE}KiB (2.00× faster than" in line
    assert "the library's own" not in line
    (line,) = [line for line in lines if line.startswith("fattree (simulated): bcast over 64 ranks, block")]
    assert "library" in line


def test_how_often_choosing_pays(report, studied):
    """Of the fixture: every allreduce is won by two, every broadcast lost by two, every reduction tied."""
    lines = sentences(report, "What to use")
    for platform, name in (("ether16", "ether16"), ("fattree", "fattree (simulated)")):
        part = studied[(studied["platform"] == platform) & studied["measured"].notna()]
        jobs = part.groupby("operation")["group"].nunique()
        (line,) = [line for line in lines if line.startswith(f"{name}: The fastest schedule beats")]
        assert f"in {jobs['allreduce']} of {jobs.sum()} jobs (by 2.00× on average, 2.00× at most: " in line
        assert f"is tied with it in {jobs['reduce']}; in {jobs['bcast']} the library is best (by 2.00×" in line


def test_the_overview_counts_the_same(report):
    rows = table(report, "What to use", "Library")
    keys = [column.key for column in rows.columns]
    slower = [dict(zip(keys, row, strict=True)) for row in rows.rows]
    assert {row["operation"]: round(row["mean"], 9) for row in slower if row["platform"] == "fattree"} == SLOWER
    for row in slower:
        assert row["faster"] + row["tied"] + row["slower"] == row["jobs"] > 0
        won = {"allreduce": "faster", "reduce": "tied", "bcast": "slower"}[row["operation"]]
        assert row[won] == row["jobs"]
        assert row["simulated"] == ("simulated" if row["platform"] == "fattree" else "no")


def test_the_selection_has_the_library_beside_the_fastest_schedule(report, studied):
    rows = table(report, "Selection", "Selection")
    assert "library" not in {way.split(",")[0] for way in rows.column("best")}
    by = dict(zip(rows.column("operation"), zip(rows.column("gain"), rows.column("outcome"), strict=True), strict=True))
    assert {name: round(gain, 9) for name, (gain, _) in by.items()} == SLOWER
    assert {name: word for name, (_, word) in by.items()} == {
        "allreduce": "schedule",
        "reduce": "tied",
        "bcast": "library",
    }
    assert len(rows.rows) == studied.loc[studied["measured"].notna(), "group"].nunique()


def test_where_layouts_are_alternatives_a_choice_names_its_layout(report):
    rows = table(report, "Selection", "Selection")
    places = {
        (platform, operation, size): (place, best)
        for platform, operation, size, place, best in zip(
            *(rows.column(key) for key in ("platform", "operation", "size", "place", "best")), strict=True
        )
    }
    for (platform, operation, size), (place, best) in places.items():
        both = (platform, operation, size) == ("fattree", "bcast", "16 ranks")
        assert place == (ANY if both else "spread" if operation == "reduce" else "block")
        assert best.endswith(", block") is both
    names = [
        series.name
        for chart in report.charts
        for series in chart.series
        if chart.name == f"Time fattree bcast {ANY} 16 ranks"
    ]
    assert {"library, block", "library, cyclic", "chain, block"} <= set(names)


def test_no_family_is_without_a_name(report, studied):
    families = table(report, "Standings", "Families")
    assert set(families.column("family")) == set(studied["family"]) - {""}
    points = studied[(studied["measured"].notna()) & (studied["family"] != "")].groupby("platform")["point"].nunique()
    assert set(families.column("measured_points")) == set(points)
    for section in ("Errors", "Selection", "Picks"):
        for shown in report.section(section).tables:
            assert "" not in {column.header for column in shown.columns}
            assert not {column.key for column in shown.columns} & {"= ", "regret ", "pick "}
    choices = table(report, "Errors", "Mean μ by choice").column("choice")
    assert "library" not in choices
    for chart in report.charts:
        assert all(series.name for series in chart.series)


def test_what_a_family_s_picks_are_to_the_library(report, studied):
    families = table(report, "Standings", "Choosing")
    keys = zip(families.column("platform"), families.column("family"), strict=True)
    over_library = dict(zip(keys, families.column("over_library"), strict=True))
    for key, choices in studied[studied["chosen"]].groupby(["platform", "family"]):
        ratios = choices["measured"] / choices["library"]
        assert over_library[key] == pytest.approx(math.exp(sum(map(math.log, ratios)) / len(ratios)))
    (line,) = [line for line in sentences(report, "How sure this is") if line.startswith("ether16: Choosing by")]
    assert "the library's own choice" in line


def test_of_the_library_nothing_is_said_that_only_schedules_have(report):
    comparison = table(report, "Comparison", "Comparison")
    keys = [column.key for column in comparison.columns]
    rows = [dict(zip(keys, row, strict=True)) for row in comparison.rows]
    for key in ("fan_in", "chosen", "tie", "best"):
        assert {row[key] for row in rows if row["kind"] == "library"} == {None}
        assert None not in {row[key] for row in rows if row["kind"] != "library"}


def test_what_is_missing_counts_prices_not_the_library(report):
    lines = sentences(report, "What is missing")
    assert any(line.startswith("16 of ") and "(hockney 16)" in line for line in lines)
    assert not any(UNPRICED.split(":")[0] + " " in line and "doubtful" in line for line in lines)
    (line,) = [line for line in lines if "smpi/coll-selector" in line]
    assert line.startswith("fattree (simulated): Its MPI library is SimGrid")


def test_a_real_platform_s_library_is_what_it_is(studied):
    real = studied[studied["platform"] == "ether16"]
    assert not any("coll-selector" in line for line in sentences(build(real, experiment="e"), "What is missing"))


def test_the_library_s_time_is_the_one_at_its_best_layout(studied):
    rows = against(prepare(studied)).set_index("group")
    known = studied[(studied["algorithm"] == "library")].groupby("group")["measured"].min()
    assert rows["library"].to_dict() == known.to_dict()


def test_both_writers_take_it(report, tmp_path, parse):
    write_xlsx(report, tmp_path / "library.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "library.xlsx")["Comparison"]
    cells = {cell.value for row in sheet.iter_rows() for cell in row}
    assert {"library", UNPRICED} <= cells
    page = parse(page_html(report))
    assert any("What choosing gains over the library" in text for text in page.text)


def test_an_experiment_without_the_library_says_nothing_of_it(small):
    bare = build(small, experiment="bare")
    assert not [shown for shown in bare.section("What to use").tables if shown.name == "Library"]
    assert not any("library" in line for line in sentences(bare, "What to use"))
