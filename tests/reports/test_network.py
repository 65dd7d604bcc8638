"""The picture of the network in the page and in the workbook."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import openpyxl
import pytest

from commodel.compare.network import make_networks
from commodel.hierarchy import Hierarchy
from commodel.reports.elements import Matrix, Report, Section, format_digits
from commodel.reports.html.page import format_page
from commodel.reports.sections.network import describe_network, make_sections
from commodel.reports.xlsx.workbook import write_xlsx
from tests.compare.pairs import summary

LEAVES = Hierarchy.of({"leaf": [0, 1, 0, 1, 0, 1, 0, 1]})
FLAT = Hierarchy.of({"leaf": [0] * 8})


def seen(hierarchy=LEAVES, count=8, slow=None, **place):
    return make_networks(summary(hierarchy, count, slow), {"p": place})


def report(networks):
    pictures, numbers = make_sections(networks)
    return Report("e", "A network", "", (*pictures, *numbers))


class Drawing(HTMLParser):
    """The SVG elements of a page."""

    def __init__(self, text):
        super().__init__()
        self.seen = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def of(self, tag):
        return [attributes for name, attributes in self.seen if name == tag]


def test_network_matrices_sort_nodes_by_group_with_one_value_per_pair():
    pictures, _ = make_sections(seen())
    latency, bandwidth = [block for block in pictures[0].blocks if isinstance(block, Matrix)]
    assert latency.labels == tuple("02461357")
    assert latency.borders == bandwidth.borders == (4,)
    assert latency.values[0][1] == pytest.approx(1.5)
    assert latency.values[0][4] == pytest.approx(3.0)
    assert bandwidth.unit == "GB/s"
    assert bandwidth.values[0][4] == pytest.approx(262144 / 5e-5 / 1e9)
    assert latency.colour(1.5) == bandwidth.colour(
        max(max(row) for row in np.nan_to_num(bandwidth.values))
    )
    assert latency.colour(3.0) == bandwidth.colour(bandwidth.values[0][4]) != latency.colour(1.5)


def test_the_page_draws_the_network_with_alternative_text():
    page = format_page(report(seen(slow={3: 5.0})))
    drawing = Drawing(page)
    assert len(drawing.of("svg")) == 2
    assert all(svg["role"] == "img" and "slow: 3" in svg["aria-label"] for svg in drawing.of("svg"))
    assert page.count("<title>") >= 2 * 56
    assert "Node 3 is slow: " in page
    assert re.search(r'class="marked"[^>]*>3<', page)


@pytest.mark.parametrize(("count", "numbered"), [(8, True), (20, True), (30, False)])
def test_numbers_stand_in_cells_that_are_wide_enough(count, numbered):
    """A digit is at most 0.6 font sizes wide. A `style` attribute sets the font size, since the
    style sheet overrides other attributes."""
    page = format_page(
        report(seen(Hierarchy.of({"leaf": [node // 5 for node in range(count)]}), count))
    )
    cells = re.findall(
        r'<g><rect [^>]*width="([\d.]+)"[^>]*><title>.*?</rect>(?:<text ([^>]*)>([^<]*)<)?', page
    )
    assert len(cells) > count
    assert all(bool(number) == numbered for _, _, number in cells)
    for width, attributes, number in cells if numbered else ():
        size = float(re.search(r'style="font-size:([\d.]+)px"', attributes)[1])
        assert size >= 8
        assert 0.6 * size * len(number) < float(width)


def test_a_report_on_several_levels_lists_the_network_first():
    whole = report(seen())
    before = [Section(name, "", ()) for name in ("Summary", "Comparison")]
    page = format_page(replace(whole, sections=(*before, *whole.sections)))
    nav = re.search(r"<nav.*?</nav>", page, re.DOTALL)[0]
    assert re.findall(r'href="#([a-z-]*)"', nav)[:3] == ["network", "comparison", "summary"]


def test_the_workbook_has_the_same_numbers_and_colours(tmp_path):
    whole = report(seen(nodes=[f"compute-{node}" for node in range(8)]))
    write_xlsx(whole, tmp_path / "n.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "n.xlsx")["Network"]
    matrix = next(block for block in whole.sections[0].blocks if isinstance(block, Matrix))
    head = next(
        cell.row
        for row in sheet.iter_rows(max_col=1)
        for cell in row
        if str(cell.value).startswith("Latency")
    )
    assert sheet.row_dimensions[head + 1].height >= 5 * len("compute-0")  # the labels are upright
    assert [sheet.cell(head + 1, place + 2).value for place in range(8)] == list(matrix.labels)
    for row in range(8):
        for place in range(8):
            cell = sheet.cell(head + 2 + row, place + 2)
            if row == place:
                assert cell.value is None
                continue
            assert cell.value == pytest.approx(matrix.values[row][place])
            assert cell.fill.start_color.rgb[2:] == matrix.colour(matrix.values[row][place])[1:]


def test_where_all_nodes_are_alike_no_picture_leads_the_report():
    pictures, numbers = make_sections(seen(FLAT))
    assert not pictures
    assert numbers[0].name == "Distances"
    assert make_sections([]) == ([], [])


def test_pairs_that_were_not_measured_are_pale_not_made_up(tmp_path):
    hierarchy = Hierarchy.of({"leaf": [node // 16 for node in range(64)]})
    whole = report(seen(hierarchy, 64))
    latency, matrix = (block for block in whole.sections[0].blocks if isinstance(block, Matrix))
    assert 0.05 < np.isfinite(matrix.values).mean() < 0.2
    assert "pairs were measured" in matrix.note
    assert len(matrix.expected) == 4
    assert matrix.colour(1.5, pale=True) != matrix.colour(1.5)
    write_xlsx(whole, tmp_path / "n.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "n.xlsx")["Network"]
    numbers = sum(
        isinstance(cell.value, float | int) for row in sheet.iter_rows(min_col=2) for cell in row
    )
    assert numbers == sum(np.isfinite(drawn.values).sum() for drawn in (latency, matrix))


def test_of_hundreds_of_nodes_groups_are_drawn():
    hierarchy = Hierarchy.of({"leaf": [node // 30 for node in range(300)]})
    matrix = next(
        block
        for block in make_sections(seen(hierarchy, 300))[0][0].blocks
        if isinstance(block, Matrix)
    )
    assert matrix.labels == tuple(f"group {number}" for number in range(10))
    assert matrix.values[3][3] == pytest.approx(1.5)
    assert matrix.values[3][4] == pytest.approx(3.0)


def test_a_hostile_name_is_text_in_both(tmp_path):
    names = ["=1+1", '"><script>alert(1)</script>', *(f"n{node}" for node in range(6))]
    whole = report(seen(slow={1: 4.0}, nodes=names))
    assert "<script>alert" not in format_page(whole)
    write_xlsx(whole, tmp_path / "n.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "n.xlsx")["Network"]
    assert not [cell for row in sheet.iter_rows() for cell in row if cell.data_type == "f"]


@pytest.mark.parametrize(
    ("levels", "verdict"),
    [
        ({"leaf": LEAVES.group_lists["leaf"]}, "the measured times agree."),
        ({"rack": [0, 0, 0, 0, 1, 1, 1, 1]}, "the measured times give other groups."),
    ],
)
def test_measured_groups_are_compared_with_named_levels(levels, verdict):
    (network,) = seen(levels=levels)
    (name,) = levels
    line = describe_network(network)[-1]
    assert f"2 groups ({name})" in line
    assert line.endswith(verdict)


@pytest.mark.parametrize(
    ("hierarchy", "said", "verdict"),
    [
        (LEAVES, LEAVES, "agrees with the measured times."),
        (FLAT, FLAT, "agrees with the measured times."),
        (
            FLAT,
            LEAVES,
            "differs from the measured times: 2 groups (leaf) by Slurm, none by the times.",
        ),
        (
            LEAVES,
            Hierarchy.of({"leaf": [0, 0, 1, 1, 2, 2, 3, 3]}),
            "differs from the measured times: 4 groups (leaf) by Slurm, 2 groups (leaf) by the times.",
        ),
    ],
)
def test_measured_groups_are_compared_with_slurm_s(hierarchy, said, verdict):
    found = seen(hierarchy, levels=said.group_lists, levels_from="slurm")
    assert describe_network(found[0])[-1] == f"Slurm's topology {verdict}"
    assert bool(make_sections(found)[0]) == (hierarchy is LEAVES or said is LEAVES)


@pytest.mark.parametrize(
    ("value", "text"), [(1.2345, "1.23"), (123.4, "123"), (0.01234, "0.0123"), (np.nan, "n/a")]
)
def test_three_digits(value, text):
    assert format_digits(value) == text
