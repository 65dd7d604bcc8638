"""The figures of a paper in a report: printed and predicted values, marks of simulation,
reproducible files."""

import json
import math
import re
from dataclasses import replace

import openpyxl
import pytest

from commodel.errors import UserError
from commodel.predictions.papers import Figure, Line, Numbers, Panel, Paper, PaperEvidence, PaperRow
from commodel.records import PlatformKind
from commodel.reports import build_stored_report, write_xlsx
from commodel.reports.elements import Axis, Chart, Remark, Report, Section, Series
from commodel.reports.html.page import format_page
from commodel.reports.pictures.render import specify_chart
from commodel.reports.sections.papers import make_sections

ROWS = (
    PaperRow(("a", 1500), 100e-6, (150e-6, math.nan)),
    PaperRow(("b <i>", 40), math.nan, (7e-6, math.nan)),
    PaperRow(("c", 0), 0.0, (1e-6, 2e-6)),
)
FIGURE = Figure(
    "Figure 9",
    "something over something",
    "Drawn here.",
    "the machine is another one.",
    (
        Numbers(
            "Times", ("what", "packet [B]"), ("predicted", "simulated"), "printed in the text", ROWS
        ),
    ),
    (
        Panel(
            "p = 4",
            "message size [B]",
            "time [s]",
            (Line("prediction", (0, 1, 10), (1e-6, 2e-6, math.nan)),),
        ),
    ),
    measured=("there",),
)
PAPER = Paper(
    "some", "A. Body, Some paper, 1999", lambda evidence: (FIGURE,), "Nothing else is there."
)


def make_sections_of_paper(simulated=True):
    return make_sections(
        PAPER,
        PaperEvidence(
            None, None, (), {"there": PlatformKind.SIMULATED if simulated else PlatformKind.REAL}
        ),
    )


def test_a_table_has_printed_and_predicted_values_and_their_ratio():
    (table,) = make_sections_of_paper()[1].tables
    heads = [
        "what",
        "packet [B]",
        "paper [µs]",
        "predicted [µs]",
        "predicted / paper",
        "simulated [µs]",
        "simulated / paper",
    ]
    assert [column.header for column in table.columns] == heads
    first, second, third = table.rows
    assert first[:5] == ("a", 1500, pytest.approx(100), pytest.approx(150), pytest.approx(1.5))
    assert first[5:] == (None, None)
    assert second[2:] == (None, pytest.approx(7), None, None, None)
    assert third[2:] == (0, pytest.approx(1), None, pytest.approx(2), None)  # no ratio to 0
    assert table.note == "paper: printed in the text."


def test_a_chart_is_in_microseconds_and_omits_missing_points():
    (chart,) = make_sections_of_paper()[1].charts
    assert (chart.y.label, chart.x.bytes) == ("time [µs]", True)
    assert [(line.x, line.y) for line in chart.series] == [((1,), (pytest.approx(2),))]


def test_a_panel_without_numbers_is_no_chart(tmp_path):
    empty = replace(
        FIGURE, panels=(Panel("p = 4", "size [B]", "time [s]", (Line("none", (1,), (math.nan,)),)),)
    )
    paper = replace(PAPER, figures=lambda evidence: (empty,))
    sections = make_sections(paper, PaperEvidence(None, None, (), {"there": PlatformKind.REAL}))
    assert not sections[1].charts
    write_xlsx(Report("e", "t", "", tuple(sections)), tmp_path / "none.xlsx")


def test_bars_keep_their_places_if_one_is_missing(tmp_path):
    names, left, right = ("one", "two", "three"), (1.5, math.inf, 3.0), (2.0, 1.2, 1.1)
    lines = tuple(
        Line(name, (0, 1, 2), bars, "bars") for name, bars in (("left", left), ("right", right))
    )
    figure = replace(FIGURE, panels=(Panel("p = 4", "model", "error", lines, "", names, 1.0),))
    paper = replace(PAPER, figures=lambda evidence: (figure,))
    _, section = make_sections(
        paper, PaperEvidence(None, None, (), {"there": PlatformKind.SIMULATED})
    )
    (chart,) = section.charts
    assert (chart.x.names, chart.y.low, chart.y.high) == (names, 1.0, pytest.approx(3.2))
    bars = {
        (row["s"], row["t"]): row
        for layer in specify_chart(chart)["layer"]
        for row in layer["data"]["values"]
    }
    assert set(bars) == {("left", "one"), ("left", "three"), *(("right", name) for name in names)}
    for (side, name), bar in bars.items():
        middle = names.index(name)
        ends = (bar["x"], middle) if side == "left" else (middle, bar["x2"])
        assert ends[0] < ends[1]
        assert abs(bar["x"] - middle) < 0.5 > abs(bar["x2"] - middle)
        assert bar["y2"] == 1.0
    report = Report("e", "t", "", (section,))
    write_xlsx(report, tmp_path / "bars.xlsx")
    rows = openpyxl.load_workbook(tmp_path / "bars.xlsx")["Chart data"].iter_rows(values_only=True)
    assert [row for row in rows if row[0] in names] == [
        ("one", 1.5, "one", 2.0),
        ("two", None, "two", 1.2),
        ("three", 3.0, "three", 1.1),
    ]
    assert "<td>three</td>" in format_page(report)


def test_caption_and_chart_mark_simulated_values():
    caption, chart, _ = make_sections_of_paper()[1].blocks
    assert (
        "Simulated values come from a simulator of there, not from hardware." in caption.sentences
    )
    assert chart.title.endswith("(simulated)")
    caption, chart, _ = make_sections_of_paper(simulated=False)[1].blocks
    assert not any("simulat" in sentence for sentence in caption.sentences)
    assert not chart.title.endswith("(simulated)")
    assert "Why they differ: the machine is another one." in caption.sentences


def test_the_first_sheet_lists_the_figures_with_the_spread_of_ratios():
    lead = make_sections_of_paper()[0]
    assert lead.name == "The paper"
    assert lead.tables[0].rows == (
        ("Figure 9", "something over something", 1, *[pytest.approx(1.5)] * 3),
    )


def test_the_first_sheet_names_the_platforms_where_processes_share_processors():
    evidence = PaperEvidence(None, None, (), {"there": PlatformKind.REAL})
    lead, *_ = make_sections(PAPER, evidence, [Remark("there", "65 processes share 2 processors.")])
    assert lead.blocks[0].sentences[-1] == "there: 65 processes share 2 processors."
    assert "there: 65 processes share 2 processors." in format_page(Report("e", "t", "", (lead,)))


@pytest.fixture
def results_with_paper(folder):
    """Return a function that names a paper in the plan of results without measurements of that
    paper."""

    def name(paper):
        plan = json.loads((folder / "plan.json").read_text())
        (folder / "plan.json").write_text(json.dumps(plan | {"paper": paper}))
        return folder

    return name


def test_charts_of_fits_and_figures_of_a_paper_have_different_anchors():
    dots = Series("a", (1.0, 2.0), (1.0, 2.0))
    fit = Chart("Fit 9", "a fit", Axis("x"), Axis("y"), (dots,), number=9)
    report = Report("e", "t", "", (*make_sections_of_paper(), Section("Fits", "", (fit,))))
    places = re.findall(r'\sid="([^"]+)"', format_page(report))
    assert "figure-9" in places
    assert len(places) == len(set(places))


@pytest.mark.parametrize(
    "hostile", ["../../etc", "cluster.py", "__init__", "<script>", "a\nb", "x" * 5000]
)
def test_an_unknown_paper_is_refused_in_one_line_naming_the_key(results_with_paper, hostile):
    with pytest.raises(UserError) as refused:
        build_stored_report(results_with_paper(hostile))
    assert refused.value.message.count("\n") == 0
    assert "plan.json" in refused.value.message
    assert "paper" in refused.value.message
    assert len(refused.value.message) < 700


@pytest.mark.parametrize("hostile", [7, None, ["cluster"], {"name": "cluster"}])
def test_a_paper_that_is_no_text_is_refused(results_with_paper, hostile):
    with pytest.raises(UserError, match=r"plan\.json.*paper"):
        build_stored_report(results_with_paper(hostile))
