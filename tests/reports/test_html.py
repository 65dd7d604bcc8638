"""The page: parsed, compared with the report, and looked through for anything that reaches out."""

import json
import re
from dataclasses import replace

import pandas as pd
import pytest

from commodel.reports import build, write_html
from commodel.reports.html import tables as html_tables
from commodel.reports.html.page import page_html
from commodel.reports.pictures import specifications
from commodel.reports.pictures.specifications import SCHEMA, decade_ticks
from commodel.reports.values import show


@pytest.fixture(scope="module")
def text(report):
    return page_html(report)


@pytest.fixture(scope="module")
def page(text, parse):
    return parse(text)


def texts(table):
    """All rows of a table as a reader should see them."""
    kinds = [column.kind for column in table.columns]
    return [[show(kind, value) for kind, value in zip(kinds, row, strict=True)] for row in table.rows]


def data_of(text):
    """The rows of every table of which all are data, in order."""
    blocks = re.findall(r'<script type="application/json" id="rows-\d+">(.*?)</script>', text, re.DOTALL)
    tables = []
    for columns in map(json.loads, blocks):
        shown = [[column["cells"][number][0] for number in column["rows"]] for column in columns]
        tables.append([list(row) for row in zip(*shown, strict=True)])
    return tables


def in_order(report):
    """The tables as the page has them: first that which the first screen filters."""
    return sorted(report.tables, key=lambda table: table.name != "Comparison")


def test_tables_show_the_report(page, text, report):
    tables = in_order(report)
    assert len(page.tables) == len(tables)
    data = iter(data_of(text))
    for (head, *rows), table in zip(page.tables, tables, strict=True):
        assert head == [column.header for column in table.columns]
        assert rows == texts(table)[: html_tables.MOST_ROWS]
        if len(table.rows) > html_tables.MOST_ROWS or table.name == "Comparison":
            assert next(data) == texts(table)
    assert not list(data)


def test_nothing_is_loaded_from_elsewhere(page, text):
    assert all(link.startswith("#") for link in page.links)  # this report does not know where its results are
    assert {link[1:] for link in page.links} <= set(page.ids)
    outside = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    outside = outside.replace(SCHEMA, "")  # a name, which nothing asks for
    assert "http:" not in outside
    assert "https:" not in outside
    assert "@import" not in outside
    assert set(re.findall(r"url\((.)", outside)) <= {"#"}


def test_answers_come_first_and_banner_before_them(page, report):
    words = "".join(page.text)
    answers = [block for block in report.sections[0].blocks if hasattr(block, "question")]
    assert (
        words.index("SIMULATED") < words.index(answers[0].sentences[0]) < words.index("How well each family predicts")
    )
    assert all(sentence in words for answer in answers for sentence in answer.sentences)


def test_every_chart_is_drawn_has_words_and_can_be_drawn_again(page, text, report):
    specifications = json.loads(re.search(r'id="charts">(.*?)</script>', text, re.DOTALL)[1])
    assert len(specifications) == len(report.charts) + 2 * len(report.fronts)
    assert set(specifications) <= set(page.ids)
    assert len(page.ids) == len(set(page.ids)), "of clip paths too"
    for place in specifications:
        drawn = re.search(
            rf'<div class="plot" id="{place}" role="img" tabindex="0" aria-label="[^"]+"><svg.*?</svg></div>', text
        )
        assert "<text" in drawn[0]
    assert text.count("window.vegaEmbed=") + text.count("window.vegaEmbed =") == 1


def test_numbers_stand_below_charts(page, report):
    series = {line.name for chart in report.charts for line in chart.series}
    named = {row[0] for head, *rows in page.numbers if head[0] == "series" for row in rows}
    assert len(named) > 10
    assert named <= series
    grids = [table for table in page.numbers if table[0][0] != "series"]
    assert len(grids) == 2 * len(report.fronts)


def test_page_without_charts_has_no_library(comparison):
    text = page_html(build(comparison.iloc[:0], experiment="none"))
    assert len(text) < 60_000
    assert "window.vegaEmbed" not in text


def test_equal_reports_are_equal_bytes(inputs, text, tmp_path):
    write_html(build(**inputs), tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == text
    assert [path.name for path in tmp_path.iterdir()] == ["again.html"]


def test_every_row_of_a_long_table_is_on_the_page(comparison, parse):
    """Whatever its script says, and what was measured on a machine comes first where there is no script."""
    many = pd.concat([comparison.assign(layout=f"layout </script>{copy}") for copy in range(2)])
    report = build(many, experiment="many")
    text = page_html(report)
    (rows, *_) = data_of(text)
    (table,) = report.section("Comparison").tables
    assert len(rows) == len(many) == 3564
    assert rows == texts(table)
    assert f"First {html_tables.MOST_ROWS} of 3,564 rows: the rest needs JavaScript, or the workbook (.xlsx)." in text
    page = parse(text)
    assert max(len(rows) for rows in page.tables) == 1 + html_tables.MOST_ROWS
    flags = table.column("simulated")
    assert flags == sorted(flags)
    assert {"no", "simulated"} == set(flags)
    assert len(text.encode()) < 3_500_000


def test_too_many_rows_leave_the_first_screens_and_say_where_the_rest_is(report, parse, monkeypatch):
    monkeypatch.setattr(html_tables, "MOST_DATA", 1000)
    text = page_html(report)
    assert "First 200 of 1,782 rows, which are too many for a page: the workbook (.xlsx) has them." in text
    assert all(len(rows) <= 1000 for rows in data_of(text))
    assert not re.search("<table[^>]* data-explored", text), "the script looks for all rows there"
    page = parse(text)
    for front in report.fronts:
        assert text.count(f'data-platform="{front.platform}"') == 1
        assert all(tile.sentence in "".join(page.text) for tile in front.tiles)
    assert max(len(rows) for rows in page.tables) == 1 + html_tables.MOST_ROWS


@pytest.mark.parametrize("value", [0.0, 0.7, 1.0, 1.13, 1.25, 1.3, 2.0, 40.0])
def test_every_shade_has_its_rule(value):
    from commodel.reports.shape import MU, REGRET

    rules = html_tables.shades()
    for scale in (MU, REGRET):
        for name in html_tables.shade(scale, value):
            assert f"td.{name}{{".replace("s-", "s\\-") in rules


def test_crowded_charts_are_thinned_with_a_word(report, monkeypatch, parse):
    monkeypatch.setattr(specifications, "MOST_DOTS", 100)
    text = page_html(replace(report, sections=report.sections[:1]))
    assert "points drawn; the workbook&#39;s chart has all." in text
    parse(text)


@pytest.mark.parametrize(
    ("low", "high"), [(0.95, 1.35), (40.0, 110.0), (3e-6, 9e-6), (1e3, 1.04e3), (1.0, 1e3), (0.9, 8.0)]
)
def test_a_logarithmic_axis_has_ticks_however_narrow_it_is(low, high):
    ticks = decade_ticks(low, high)
    assert len(ticks) >= 3
    assert ticks == sorted(set(ticks))
    assert low * 0.99 <= ticks[0]
    assert ticks[-1] <= high * 1.01
