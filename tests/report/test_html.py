"""The page: parsed, compared with the report, and looked through for anything that reaches out."""

import json
import re

import pandas as pd
import pytest

from commodel.report import build, html, write_html
from commodel.report.shape import show


@pytest.fixture(scope="module")
def text(report):
    return html.page(report)


@pytest.fixture(scope="module")
def page(text, parse):
    return parse(text)


def test_tables_show_the_report(page, report):
    tables = [table for section in report.sections for table in section.tables]
    assert len(page.tables) == len(tables)
    for (head, *rows), table in zip(page.tables, tables, strict=True):
        assert head == [column.header for column in table.columns]
        kinds = [column.kind for column in table.columns]
        listed = table.rows[: html.MOST_ROWS]
        assert rows == [[show(kind, value) for kind, value in zip(kinds, row, strict=True)] for row in listed]


def test_nothing_is_loaded_from_elsewhere(page, text):
    assert all(link.startswith("#") for link in page.links)
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


def test_page_without_charts_has_no_bokeh(comparison):
    text = html.page(build(comparison.iloc[:0], experiment="none"))
    assert len(text) < 50_000
    assert "Bokeh" not in text


def test_equal_reports_are_equal_bytes(inputs, text, tmp_path):
    write_html(build(**inputs), tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == text
    assert [path.name for path in tmp_path.iterdir()] == ["again.html"]


def test_long_tables_are_capped_with_a_word(comparison, parse):
    many = pd.concat([comparison.assign(layout=f"layout {copy}") for copy in range(2)])
    text = html.page(build(many, experiment="many"))
    assert "First 1,000 of 3,564 rows; the workbook (.xlsx) has all of them." in text
    assert max(len(table) for table in parse(text).tables) == 1001
    assert len(text.encode()) < 4_000_000


@pytest.mark.parametrize("value", [0.0, 0.7, 1.0, 1.13, 1.25, 1.3, 2.0, 40.0])
def test_every_shade_has_its_rule(value):
    from commodel.report.shape import ERROR, MU, REGRET

    rules = html.shades()
    for scale in (MU, ERROR, REGRET):
        for name in html.shade(scale, value):
            assert f"td.{name}{{".replace("s-", "s\\-") in rules


def test_crowded_charts_are_thinned_with_a_word(report, monkeypatch, parse):
    monkeypatch.setattr(html.html_charts, "MOST_DOTS", 100)
    text = html.page(report)
    assert "points drawn; the workbook&#x27;s chart has all." in text
    parse(text)
