"""The page: it is parsed, compared with the report, and checked for external references; terms are
explained at their first use; the commands that it names run."""

import json
import re
import shlex
from dataclasses import replace

import openpyxl
import pandas as pd
import pytest
from markupsafe import Markup

from commodel.files.parameter_sets import write_parameters
from commodel.reports import write_html, write_xlsx
from commodel.reports.elements import Cell, format_value
from commodel.reports.glossary import explain_terms, read_glossary
from commodel.reports.html import page as html_page
from commodel.reports.html.page import TermMarkup, format_page, list_terms
from commodel.reports.pictures import specifications
from commodel.reports.pictures.specifications import SCHEMA, choose_decade_ticks
from commodel.reports.report_builder import LATENCY_QUESTION, list_commands
from commodel.units import parse_bytes
from tests.cli.running import run
from tests.documented import ROOT
from tests.reports.reading import make_report


@pytest.fixture(scope="module")
def text(report):
    return format_page(report)


@pytest.fixture(scope="module")
def page(text, parse):
    return parse(text)


def texts(table):
    """Return all rows of a table as formatted on the page."""
    kinds = [column.kind for column in table.columns]
    return [
        [format_value(kind, value) for kind, value in zip(kinds, row, strict=True)]
        for row in table.rows
    ]


def data_of(text):
    """Return the rows of every table whose rows are all stored as data, in order."""
    blocks = re.findall(
        r'<script type="application/json" id="rows-\d+">(.*?)</script>', text, re.DOTALL
    )
    tables = []
    for columns in map(json.loads, blocks):
        shown = [[column["cells"][number][0] for number in column["rows"]] for column in columns]
        tables.append([list(row) for row in zip(*shown, strict=True)])
    return tables


def in_order(report):
    """Return the tables in the page's order: the Comparison, which the first screen filters, is
    first."""
    return sorted(report.tables, key=lambda table: table.name != "Comparison")


def test_tables_show_the_report(page, text, report):
    tables = in_order(report)
    assert len(page.tables) == len(tables)
    data = iter(data_of(text))
    for (head, *rows), table in zip(page.tables, tables, strict=True):
        assert head == [column.header for column in table.columns]
        assert rows == texts(table)[: html_page.MAX_MARKUP_ROWS]
        if len(table.rows) > html_page.MAX_MARKUP_ROWS or table.name == "Comparison":
            assert next(data) == texts(table)
    assert not list(data)


def test_nothing_is_loaded_from_elsewhere(page, text):
    # this report does not know where its results are
    assert all(link.startswith("#") for link in page.links)
    assert {link[1:] for link in page.links} <= set(page.ids)
    outside = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    outside = outside.replace(SCHEMA, "")  # a name, which nothing asks for
    assert "http:" not in outside
    assert "https:" not in outside
    assert "@import" not in outside
    assert set(re.findall(r"url\((.)", outside)) <= {"#"}


def test_the_page_starts_with_the_simulation_banner_and_the_answers(page, report):
    words = "".join(page.text)
    answers = [block for block in report.sections[0].blocks if hasattr(block, "question")]
    assert (
        words.index("SIMULATED")
        < words.index(answers[0].sentences[0])
        < words.index(report.section("Standings").tables[-1].title)
    )
    assert all(sentence in words for answer in answers for sentence in answer.sentences)


def test_every_chart_is_drawn_has_words_and_can_be_drawn_again(page, text, report):
    specifications = json.loads(re.search(r'id="charts">(.*?)</script>', text, re.DOTALL)[1])
    assert len(specifications) == len(report.charts) + 2 * len(report.screens)
    assert set(specifications) <= set(page.ids)
    assert len(page.ids) == len(set(page.ids)), "of clip paths too"
    for place in specifications:
        drawn = re.search(
            rf'<div class="plot" id="{place}" role="img" tabindex="0" aria-label="[^"]+"><svg.*?</svg></div>',
            text,
        )
        assert "<text" in drawn[0]
    assert text.count("window.vegaEmbed=") + text.count("window.vegaEmbed =") == 1


def test_numbers_stand_below_charts(page, report):
    series = {line.name for chart in report.charts for line in chart.series}
    named = {row[0] for head, *rows in page.numbers if head[0] == "series" for row in rows}
    assert len(named) > 10
    assert named <= series
    grids = [table for table in page.numbers if table[0][0] != "series"]
    assert len(grids) == 2 * len(report.screens)


def test_page_without_charts_has_no_library(comparison):
    text = format_page(make_report(comparison.iloc[:0], experiment="none"))
    assert len(text) < 65_000
    assert "window.vegaEmbed" not in text


def test_equal_reports_are_equal_bytes(inputs, small, tmp_path):
    reports = [make_report(**inputs | {"comparison": small}) for _ in range(2)]
    write_html(reports[0], tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == format_page(reports[1])
    for report, name in zip(reports, ("one.xlsx", "two.xlsx"), strict=True):
        write_xlsx(report, tmp_path / name)
    assert (tmp_path / "one.xlsx").read_bytes() == (tmp_path / "two.xlsx").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"again.html", "one.xlsx", "two.xlsx"}


def test_every_row_of_a_long_table_is_on_the_page(comparison, parse):
    """A `</script>` in a name does not end the data. Rows of real platforms precede simulated ones,
    as a page without JavaScript shows only the first."""
    many = pd.concat([comparison.assign(layout=f"layout </script>{copy}") for copy in range(2)])
    report = make_report(many, experiment="many")
    text = format_page(report)
    (rows, *_) = data_of(text)
    (table,) = report.section("Comparison").tables
    assert len(many) == 3564 < len(rows)
    assert rows == texts(table)
    shown = f"First {html_page.MAX_MARKUP_ROWS} of {len(rows):,} rows"
    assert f"{shown}: the rest needs JavaScript, or the workbook (.xlsx)." in text
    page = parse(text)
    assert max(len(rows) for rows in page.tables) == 1 + html_page.MAX_MARKUP_ROWS
    flags = table.column("simulated")
    assert flags == sorted(flags)
    assert {"no", "simulated"} == set(flags)
    assert len(text.encode()) < 3_500_000


def test_too_many_rows_leave_the_first_screens_and_state_where_the_rest_is(
    report, parse, monkeypatch
):
    monkeypatch.setattr(html_page, "MAX_DATA_ROWS", 1000)
    text = format_page(report)
    count = len(report.section("Comparison").tables[0].rows)
    wanted = (
        f"First 200 of {count:,} rows, which are too many for a page: a Parquet file beside the "
        "workbook has all."
    )
    assert wanted in text
    assert all(len(rows) <= 1000 for rows in data_of(text))
    assert not re.search("<table[^>]* data-filtered", text), "the script looks for all rows there"
    page = parse(text)
    for screen in report.screens:
        assert text.count(f'data-platform="{screen.platform}"') == 1
        assert all(tile.sentence in "".join(page.text) for tile in screen.tiles)
    assert max(len(rows) for rows in page.tables) == 1 + html_page.MAX_MARKUP_ROWS


@pytest.mark.parametrize("value", [0.0, 0.7, 1.0, 1.13, 1.25, 1.3, 2.0, 40.0])
def test_every_cell_shade_has_a_css_rule(value):
    from commodel.reports.elements import MU_SCALE, REGRET_SCALE

    rules = html_page.format_shade_rules()
    for scale in (MU_SCALE, REGRET_SCALE):
        for name in html_page.choose_shade_class(scale, value):
            assert f"td.{name}{{".replace("s-", "s\\-") in rules


def test_crowded_charts_are_thinned_with_a_word(report, monkeypatch, parse):
    monkeypatch.setattr(specifications, "MAX_DOTS", 100)
    text = format_page(replace(report, sections=report.sections[:1]))
    assert "points drawn; the workbook&#39;s chart has all." in text
    parse(text)


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.95, 1.35), (40.0, 110.0), (3e-6, 9e-6), (1e3, 1.04e3), (1.0, 1e3), (0.9, 8.0)],
)
def test_a_logarithmic_axis_has_at_least_three_ticks_inside_the_range(low, high):
    ticks = choose_decade_ticks(low, high)
    assert len(ticks) >= 3
    assert ticks == sorted(set(ticks))
    assert low * 0.99 <= ticks[0]
    assert ticks[-1] <= high * 1.01


def test_a_term_is_explained_once_and_the_text_stays():
    text = 'Of 7 workloads, a workload & <b>"lop"</b>: loppy, held-out-ish; regret, regrets'
    markup = TermMarkup(explain_terms() | {"lop": "<\"lop's"})(text)
    assert re.findall(r'<abbr title="[^"]*">([^<]*)</abbr>', markup) == [
        "workloads",
        "lop",
        "regret",
    ]
    assert Markup(re.sub("</?abbr[^>]*>", "", markup)).unescape() == text
    assert 'title="&lt;&#34;lop&#39;s"' in markup


def test_the_page_explains_terms_and_models_in_tooltips(report):
    page = format_page(report)
    assert {"μ", "workloads", "Regret", "MPI default"} <= set(
        re.findall(r'<abbr title="[^"]+">([^<]*)</abbr>', page)
    )
    assert list_terms(report)["loggp"].startswith("Loggp: T(m) = L")
    assert re.search(r'<th [^>]*title="max\(p/m, m/p\)[^>]*>μ</th>', page)


def test_documentation_workbook_and_page_have_the_same_definitions(report):
    glossary = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    (table,) = report.section("Glossary").tables
    terms = read_glossary()
    assert table.column("term") == [term.term for term in terms]
    assert all(f"| {term.term} | {term.symbol} | {term.meaning} |" in glossary for term in terms)
    meanings = set(table.column("meaning"))
    assert all(meaning in meanings for meaning in explain_terms().values())
    assert {"workload", "alternative", "MPI default", "Regret", "Statistically tied", "μ"} <= set(
        explain_terms()
    )


def test_the_doubled_latency_command_of_the_report_runs_in_the_project(
    report, inputs, tmp_path, monkeypatch
):
    (screen,) = [screen for screen in report.screens if screen.platform == "ether16"]
    command = dict(list_commands(report, screen))[LATENCY_QUESTION]
    verb, *words = shlex.split(command.removeprefix("commodel "))
    file = tmp_path / words[words.index("--params") + 1]
    (used,) = [
        entry
        for entry in inputs["parameter_sets"]
        if (entry.platform, entry.model) == ("ether16", file.stem)
    ]
    (written,) = re.findall(r"--set L=(\S+)us", command)
    assert float(written) * 1e-6 == 2 * used.values["L"].value
    file.parent.mkdir(parents=True)
    write_parameters(file, used)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params/platforms").mkdir(parents=True)
    (tmp_path / "params/platforms/ether16.yaml").write_text(
        "launcher: slurm\nnodes: 16\ncores: 1\n"
    )
    assert words[words.index("--platform") + 1] == "ether16"
    assert "in place of" in run(verb, *words).stdout
    worst = replace(screen.errors, rows=(("", "pmnf"), ("", "pmnf"), ("", file.stem)))
    assert LATENCY_QUESTION not in dict(list_commands(report, replace(screen, errors=worst)))


def test_the_doubled_latency_command_asks_for_a_size_within_the_probed_range(report):
    (screen,) = [screen for screen in report.screens if screen.platform == "ether16"]
    measured = {int(dict(cell.filters)["bytes"]) for cell in screen.fastest.cells}
    for probed in sorted(measured):
        sets = tuple(replace(parameters, bytes_range=(1, probed)) for parameters in report.sets)
        command = dict(list_commands(replace(report, sets=sets), screen))[LATENCY_QUESTION]
        assert parse_bytes(command.split("--bytes ")[1]) <= probed


@pytest.mark.parametrize(
    ("rows", "sizes", "workload"),
    [
        (
            [("bcast", "2–8"), ("reduce", "16 leaves")],
            [1024, 65536],
            "reduce --leaves 16 --bytes 3KiB",
        ),
        ([("gather", "64")], [0, 1], "gather --ranks 64 --bytes 1B"),
        ([("reduce", "16 leaves")], [8192, 65536], "reduce --leaves 16 --bytes 48KiB"),
        (
            [("stream of reduce", "512 leaves, 50 waves")],
            [1024],
            "reduce --leaves 512 --bytes 1KiB",
        ),
        (
            [("reduce", "8 leaves"), ("unpredicted", "64 leaves")],
            [1024],
            "reduce --leaves 8 --bytes 1KiB",
        ),
        ([("unpredicted", "64 leaves")], [1024], None),
    ],
)
def test_the_command_for_another_workload_has_predictions(report, rows, sizes, workload):
    screen = report.screens[0]
    cells = [
        Cell(row, 0, "", "", "", filters=(("bytes", str(size)),))
        for row in range(len(rows))
        for size in sizes
    ]
    names = tuple(operation for operation, _ in rows if operation != "unpredicted")
    screen = replace(
        screen,
        fastest=replace(screen.fastest, rows=tuple(rows), cells=tuple(cells)),
        errors=replace(screen.errors, columns=names),
    )
    options = [
        command.partition("--operation ")[2]
        for _, command in list_commands(report, screen)
        if "advise" in command
    ]
    assert options == ([workload] if workload else [])


def test_page_and_workbook_have_the_commands(report, workbook):
    """A workbook with a calculator has no command for the latency, but a link to the calculator's
    cell for L."""
    sheets, page = openpyxl.load_workbook(workbook, read_only=True).worksheets, format_page(report)
    for sheet, screen in zip(sheets, report.screens, strict=False):
        cells = {cell for row in sheet.iter_rows(values_only=True) for cell in row}
        listed = list_commands(report, screen)
        assert LATENCY_QUESTION in dict(listed)
        for question, command in listed:
            assert command in page
            assert (command in cells) == (question != LATENCY_QUESTION)
