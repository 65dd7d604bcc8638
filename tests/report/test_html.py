"""The page: parsed, compared with the report, and looked through for anything that reaches out."""

import json
import math
import re
from dataclasses import replace

import pandas as pd
import pytest
from bokeh.document import Document

from commodel.report import build, write_html
from commodel.report.html import charts
from commodel.report.html import tables as html_tables
from commodel.report.html.document import document, fields
from commodel.report.html.page import page_html
from commodel.report.shape import Axis, Chart, Series, show


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
    """The rows of every long table, in order, from the data on the page."""
    found = re.findall(r'<script type="application/json" id="rows-\d+">(.*?)</script>', text, re.DOTALL)
    tables = []
    for columns in map(json.loads, found):
        shown = [[column["cells"][number][0] for number in column["rows"]] for column in columns]
        tables.append([list(row) for row in zip(*shown, strict=True)])
    return tables


def test_tables_show_the_report(page, text, report):
    assert len(page.tables) == len(report.tables)
    data = iter(data_of(text))
    for (head, *rows), table in zip(page.tables, report.tables, strict=True):
        assert head == [column.header for column in table.columns]
        assert rows == texts(table)[: html_tables.MOST_ROWS]
        if len(table.rows) > html_tables.MOST_ROWS:
            assert next(data) == texts(table)
    assert not list(data)


def test_nothing_is_loaded_from_elsewhere(page, text):
    assert all(link.startswith("#") for link in page.links)  # this report does not know where its results are
    assert {link[1:] for link in page.links} <= set(page.ids)
    outside = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert "http:" not in outside
    assert "https:" not in outside
    assert "@import" not in outside
    assert "url(" not in outside


def test_answers_come_first_and_banner_before_them(page, report):
    words = "".join(page.text)
    answers = [block for block in report.sections[0].blocks if hasattr(block, "question")]
    assert (
        words.index("SIMULATED") < words.index(answers[0].sentences[0]) < words.index("How well each family predicts")
    )
    assert all(sentence in words for answer in answers for sentence in answer.sentences)


def test_bokeh_is_on_the_page_once_and_has_every_chart(page, text, report):
    assert text.count("Bokeh.embed.embed_item") == 1
    items = json.loads(re.search(r'<script type="application/json" id="charts">(.*?)</script>', text, re.DOTALL)[1])
    assert len(items) == len(report.charts)
    assert {item["target_id"] for item in items} <= set(page.ids)


SERIES = [
    Series("dots", (1.0, 300.0), (2.0, 3.0), labels=("first", "$$second")),
    Series("bars", (1.0, 300.0), (2.0, 3.0), "both", 12, low=(1.0, 2.0), high=(3.0, 4.0)),
    Series("dashes", (1.0, 16.0, 300.0), (2.0, math.nan, 4.0), "dashed", -1),
    Series("line", (1.0, 300.0), (5.0, 6.0), "line", 9),
]
AXES = [
    (Axis("size [B]", bytes=True), Axis("time [µs]")),
    (Axis("of 1", log=False, low=0.0, high=1.0), Axis("time [µs]", low=2.0, high=1000.0)),
    (Axis("size [B]", log=False, bytes=True), Axis("\\[x\\]", log=False)),
]


@pytest.mark.parametrize("axes", AXES)
def test_bokeh_would_write_the_same_chart(axes):
    """Its own models read it, which checks every property, and are written again: without `x` and `y` of glyphs, which
    are Bokeh's defaults, but which its plotting functions write."""
    item = document(charts.draw(Chart("chart", "title", *axes, tuple(SERIES))), "place", "c0")
    written = json.dumps(item["doc"])
    read = Document.from_json(json.loads(written))
    read.validate()
    assert item["root_id"] == read.roots[0].id
    places = json.dumps(fields(x="x", y="y"))[1:-1]
    again = json.dumps(read.to_json(deferred=False))
    assert json.loads(again) == json.loads(written.replace(f"{places}, ", ""))


def test_page_without_charts_has_no_bokeh(comparison):
    text = page_html(build(comparison.iloc[:0], experiment="none"))
    assert len(text) < 50_000
    assert "Bokeh" not in text


def test_equal_reports_are_equal_bytes(inputs, text, tmp_path):
    write_html(build(**inputs), tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == text
    assert [path.name for path in tmp_path.iterdir()] == ["again.html"]


def test_every_row_of_a_long_table_is_on_the_page(comparison, parse):
    """Whatever its script says, and what was measured on a machine comes first where there is no script."""
    many = pd.concat([comparison.assign(layout=f"layout </script>{copy}") for copy in range(2)])
    report = build(many, experiment="many")
    text = page_html(report)
    (rows,) = data_of(text)
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


@pytest.mark.parametrize("value", [0.0, 0.7, 1.0, 1.13, 1.25, 1.3, 2.0, 40.0])
def test_every_shade_has_its_rule(value):
    from commodel.report.shape import ERROR, MU, REGRET

    rules = html_tables.shades()
    for scale in (MU, ERROR, REGRET):
        for name in html_tables.shade(scale, value):
            assert f"td.{name}{{".replace("s-", "s\\-") in rules


def test_crowded_charts_are_thinned_with_a_word(report, monkeypatch, parse):
    monkeypatch.setattr(charts, "MOST_DOTS", 100)
    text = page_html(replace(report, sections=report.sections[:1]))
    assert "points drawn; the workbook&#x27;s chart has all." in text
    parse(text)
