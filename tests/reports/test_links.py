"""Links from the report to samples: batch and path of the raw file of every number."""

import json
import re
import shutil
from pathlib import Path

import openpyxl
import pytest
from click.testing import CliRunner

from commodel.cli.report import report as verb
from commodel.files.tables import COMPARISON, SUMMARY, read_table, write_table
from commodel.reports import build_stored_report, write_xlsx
from commodel.reports.elements import make_raw_link
from commodel.reports.sections.provenance_tables import RESULTS_KEY
from commodel.reports.stored_results import find_relative_results
from commodel.results.provenance import ExperimentProvenance
from tests.reports.reading import make_report

SHEETS = {"Comparison": "T_Comparison", "Raw summary": "T_Raw"}


def read_links(path, sheet):
    """Return (batch, text, target of the link or None) of every row."""
    sheet = openpyxl.load_workbook(path)[sheet]
    head, *rows = sheet[sheet.tables[SHEETS[sheet.title]].ref]
    names = [cell.value for cell in head]
    at, batch = names.index("raw file"), names.index("batch")
    return [
        (row[batch].value, row[at].value, row[at].hyperlink and row[at].hyperlink.target)
        for row in rows
    ]


def find_raw_links(page):
    """Return the links to raw files in the markup and in the data of long tables."""
    links = re.findall(r'href="([^"#][^"]*)"', page)
    for text in re.findall(
        r'<script type="application/json" id="rows-\d+">(.*?)</script>', page, re.DOTALL
    ):
        links += [
            cell[2] for column in json.loads(text) for cell in column["cells"] if len(cell) > 2
        ]
    return set(links)


TABLES = {"comparison.csv": COMPARISON, "summary.csv": SUMMARY}


@pytest.fixture
def project(folder, tmp_path):
    """Return a project with results/trees, which has every raw file that a table names."""
    results = Path(shutil.move(folder, tmp_path / "project/results/trees"))
    for name, schema in TABLES.items():
        for text in read_table(results / name, schema)["raw"]:
            if text:
                (results / text).write_text(f"samples of {text}")
    return tmp_path / "project"


def reported(project, *options, out="reports/trees"):
    run = CliRunner().invoke(
        verb,
        ["--in", str(project / "results/trees"), "--out", str(project / out), *options],
        catch_exceptions=False,
    )
    assert run.exit_code == 0, run.output
    return project / out / "trees.xlsx"


@pytest.mark.parametrize("out", ["results/trees/report", "elsewhere"])
def test_every_measured_row_links_to_the_raw_sample_file(project, out):
    path = reported(project, out=out)
    for sheet in SHEETS:
        rows = read_links(path, sheet)
        assert any(text for _, text, _ in rows)
        for batch, text, target in rows:
            if text is None:
                assert target is None
                continue
            assert text.startswith(f"raw/{batch}/")
            there = path.parent / target.replace("\\", "/")
            assert there.read_text() == f"samples of {text}"
    targets = {
        target.replace("\\", "/")
        for sheet in SHEETS
        for _, _, target in read_links(path, sheet)
        if target
    }
    assert find_raw_links((path.parent / "index.html").read_text(encoding="utf-8")) == targets


def test_folders_outside_of_the_project_are_not_linked(project, tmp_path):
    path = reported(project, out="../../somewhere/of/mine")
    assert all(
        text is None or target is None
        for sheet in SHEETS
        for _, text, target in read_links(path, sheet)
    )
    page = (path.parent / "index.html").read_text(encoding="utf-8")
    assert find_raw_links(page) == set()
    assert str(tmp_path) not in page
    assert "project/results" not in page


def test_an_anonymous_report_links_nowhere_and_names_no_machine(project):
    for name, schema in TABLES.items():
        table = read_table(project / "results/trees" / name, schema)
        table["raw"] = table["raw"].str.replace("ether16-1n-0", "n001")
        table["batch"] = table["batch"].str.replace("ether16-1n-0", "n001")
        write_table(project / "results/trees" / name, table)
    path = reported(project, "--anonymous")
    page = (path.parent / "index.html").read_text(encoding="utf-8")
    assert find_raw_links(page) == set()
    assert "n001" not in page
    rows = [row for sheet in SHEETS for row in read_links(path, sheet)]
    assert all(target is None for _, _, target in rows)
    assert any(re.match(r"raw/machine-\d+/", text or "") for _, text, _ in rows)
    assert "n001" not in str(rows)


FAR = "../" * 21


@pytest.mark.parametrize(
    "text", ["raw/b/../../c.csv", "raw/b/c.exe", "/raw/b/c.csv", "raw/b/c.csv#x", "raw/.b/c.csv"]
)
def test_a_path_that_is_not_a_raw_file_gets_no_link(text):
    assert make_raw_link("../../results/e", "raw/b/c.csv") == "../../results/e/raw/b/c.csv"
    assert make_raw_link("../../results/e", text) == ""


@pytest.mark.parametrize(
    "way", ["", "/etc", "http://x", "results/../..", "a/b/c", "//x/y", "file:", "a b", f"{FAR}r"]
)
def test_a_way_that_we_did_not_write_is_not_gone(way):
    assert make_raw_link(way, "raw/b/c.csv") == ""


def test_the_way_to_the_results_ends_at_the_project():
    assert find_relative_results(Path("reports/e"), Path("results/e")) == "../../results/e"
    assert find_relative_results(Path("results/e"), Path("results/e")) == "."
    assert find_relative_results(Path("/tmp/r"), Path("/home/someone/project/results/e")) == ""


def test_a_workbook_may_not_choose_where_links_lead(small, tmp_path):
    """The workbook's provenance names a URL as results folder; the report has no links then."""
    tools = {RESULTS_KEY: "http://example.org/results"}
    write_xlsx(
        make_report(small, experiment="e", run_provenance=ExperimentProvenance({}, (), {}, tools)),
        tmp_path / "e.xlsx",
    )
    assert all(target is None for _, _, target in read_links(tmp_path / "e.xlsx", "Comparison"))


def test_without_a_place_for_the_report_there_are_no_links(project):
    assert build_stored_report(project / "results/trees").results == ""
