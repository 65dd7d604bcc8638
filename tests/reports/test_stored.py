"""A report of a results folder: provenance without names of machines, and detection of an edited
workbook or edited results."""

import html
import shutil
from dataclasses import replace

import openpyxl
import pytest

from commodel.extensions import INTERFACE, Extension, InstalledExtension, ReportSection
from commodel.files.atomic import write_json
from commodel.plan.planning import load_plan
from commodel.reports import build_stored_report, write_xlsx
from commodel.reports.html.page import format_page
from commodel.reports.stored_results import (
    find_similar_names,
    make_anonymizer,
    shorten_machine_names,
    shorten_to_ranges,
)
from commodel.results.attempts import DAMAGED_OUTCOME
from tests.reports.study import INPUTS, write_results
from tests.results.damages import DAMAGES


@pytest.fixture(scope="module")
def unedited(inputs, tmp_path_factory):
    return write_results(tmp_path_factory.mktemp("results") / "trees", inputs)


@pytest.fixture(scope="module")
def stored_report(unedited):
    return build_stored_report(unedited)


@pytest.fixture(scope="module")
def book(stored_report, tmp_path_factory):
    path = tmp_path_factory.mktemp("book") / "trees.xlsx"
    write_xlsx(stored_report, path)
    return openpyxl.load_workbook(path)


def entries(report, name):
    table = next(table for table in report.section("Provenance").tables if table.name == name)
    return [
        dict(zip((column.header for column in table.columns), row, strict=True))
        for row in table.rows
    ]


def test_input_files_appear_verbatim_in_workbook_and_page(book, stored_report):
    column = [cell.value for cell in book["Provenance"]["A"]]
    page = format_page(stored_report)
    for name, text in INPUTS.items():
        at = column.index(name)
        lines = text.splitlines()
        assert column[at + 1 : at + 1 + len(lines)] == lines
        assert f'<pre tabindex="0">{html.escape(text.rstrip())}</pre>' in page
    assert all(cell.data_type != "f" for cell in book["Provenance"]["A"])


def test_provenance_common_to_all_batches_of_a_platform_appears_once(report):
    values = {
        (row["platform"], row["key"]): row["value"] for row in entries(report, "Common by platform")
    }
    assert values["ether16", "mpi"] == "MPICH 5.0.2"
    assert values["fattree", "cpu"] == "simulated"
    of_all = {row["key"] for row in entries(report, "Common")}
    assert {"experiment", "commit"} <= of_all
    assert not of_all & {key for _, key in values}
    heads = {key for row in entries(report, "Batches") for key in row}
    assert {"batch", "simulated", "platform", "hosts", "date", "seed"} == heads


def test_attempts_name_hosts_jobs_and_ends(stored_report):
    first, second, *_ = entries(stored_report, "Attempts")
    assert (first["host"], first["Slurm job"], first["outcome"]) == (
        "n001",
        "41",
        "ended without a message",
    )
    assert (second["started"], second["ended"]) == (
        "2026-10-02 11:03:20 UTC",
        "2026-10-02 12:00:41 UTC",
    )
    assert second["outcome"] == "error: rank 1 should be on n002, but is on n017"
    assert [row["attempt"] for row in (first, second)] == [1, 2]


def test_attempts_name_their_commits_and_the_nodes_of_their_ranks(stored_report):
    first, second, *_ = entries(stored_report, "Attempts")
    assert (first["commit"], first["nodes"]) == ("4f2a91c", "n00[1-2]")
    assert (second["commit"], second["nodes"]) == ("5e11d07-dirty", "n002, spare-a, spare-b")


def test_a_damaged_story_stops_no_report(folder):
    """There is one batch with each kind of damage to state.json, and one undamaged batch."""
    plan = load_plan(folder / "plan.json")
    whole, other = plan.batches
    damaged = [replace(other, name=f"damaged-{number}") for number in range(len(DAMAGES))]
    write_json(folder / "plan.json", replace(plan, batches=(whole, *damaged)).as_json())
    for batch, state in zip(damaged, DAMAGES.values(), strict=True):
        shutil.copytree(folder / "raw" / other.name, folder / "raw" / batch.name)
        (folder / "raw" / batch.name / "state.json").write_bytes(state)
    rows = entries(build_stored_report(folder), "Attempts")
    assert [row["attempt"] for row in rows if row["batch"] == whole.name] == [1, 2]
    lost = [row for row in rows if row["batch"] != whole.name]
    assert [row["batch"] for row in lost] == [batch.name for batch in damaged]
    assert {(row["outcome"], row["host"], row["nodes"], row["commit"]) for row in lost} == {
        (DAMAGED_OUTCOME, "", "", "")
    }


def test_versions_and_digests_are_listed(stored_report, folder):
    tools = {row["program"]: row["version"] for row in entries(stored_report, "Tools")}
    assert {
        "commodel",
        "code_digest",
        "python",
        "numpy",
        "pandas",
        "scipy",
        "snakemake",
        "vl-convert-python",
    } <= set(tools)
    files = {row["file"]: row["SHA-256"] for row in entries(stored_report, "Files")}
    assert {
        "plan.json",
        "comparison.csv",
        "raw/ether16-1n-0",
        "inputs/experiments/trees.yaml",
    } <= set(files)
    assert all(len(digest) == 64 for digest in files.values())


def test_the_date_is_that_of_the_measurement(stored_report, book):
    assert stored_report.measured == "measured on 2026-10-02"
    assert "experiment trees, measured on 2026-10-02" in format_page(stored_report)
    assert book.properties.created.isoformat() == "2026-10-02T00:00:00"
    assert book.worksheets[0]["A3"].value == "experiment trees, measured on 2026-10-02"


def test_no_folder_of_anybody_is_named(stored_report):
    assert "/home/someone" not in format_page(stored_report)


def test_an_anonymous_report_names_no_machine(folder, stored_report):
    page = format_page(build_stored_report(folder, anonymous=True))
    named = format_page(stored_report)
    for machine in ("n001", "n002", "n009", "n017", "login1", "spare-a", "spare-b"):
        assert machine in named
        assert machine not in page
    assert "machine-1" in page


def test_a_batch_that_never_ran_has_no_provenance(folder, inputs, tmp_path):
    there = write_results(tmp_path / "trees", inputs)
    for path in (there / "raw/ether16-1n-0").iterdir():
        path.unlink()
    rows = entries(build_stored_report(there), "Files")
    assert "raw/ether16-1n-0" not in [row["file"] for row in rows]


def test_hosts_are_shortened_and_none_is_lost():
    assert shorten_to_ranges(["n10", "n2", "n1", "login", "n3", "m7", "n007", "n12"]) == [
        "login",
        "m7",
        "n007",
        "n[1-3,10,12]",
    ]
    assert shorten_to_ranges([f"node-{place}" for place in range(32)]) == ["node-[0-31]"]
    assert shorten_to_ranges([]) == []
    about = {"nodes": ["n2", "n1"], "hosts": [], "machine": "n1"}
    assert shorten_machine_names(about) == {"nodes": ["n[1-2]"]}
    # whatever a folder says
    assert shorten_machine_names({"nodes": "n1, n2", "hosts": [7]}) == {"hosts": ["7"]}


def test_names_are_replaced_as_whole_words():
    hide = make_anonymizer({"n1", "n1-ib", "a.b"})
    assert hide({"x": ["n1, n1-ib and n11", "a.b aXb"]}) == {
        "x": ["machine-2, machine-3 and n11", "machine-1 aXb"]
    }
    assert make_anonymizer(set())("n1") == "n1"


def test_machines_that_only_an_error_names_are_found_by_their_likeness():
    messages = [
        "rank 3 should be on n002, but is on n017",
        "error on n4.example.org: 12 of 16 cases",
        "n-1, login, x17",
    ]
    assert find_similar_names({"n002", "n001", "login"}, messages) == {
        "n002",
        "n017",
        "n4.example.org",
    }
    assert find_similar_names({"login.example.org"}, ["login2 and loginA"]) == set()


SOURCE = """
from commodel.reports.elements import AnsweredQuestion, Section


def make_count(inputs):
    sentence = f"{inputs.plan.experiment}: {len(inputs.comparison)} predictions, {inputs.results.folder.name}."
    return [Section("Count", "Counted.", (AnsweredQuestion("Count", (sentence,)),))]


def make_cables(inputs):
    return [Section("Cables", "Seen.", (AnsweredQuestion("Cables", (f"{sorted(inputs.simulated)} has none.",)),))]


def make_nothing(inputs):
    return []
"""


def test_extensions_make_sections_with_a_place_on_the_page_and_in_the_workbook(
    unedited, tmp_path, monkeypatch
):
    (tmp_path / "strange_sections.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    sections = {
        "Count": ReportSection(
            "strange_sections:make_count", "answers", contents="numbers of rows"
        ),
        "Cables": ReportSection("strange_sections:make_cables", "evidence", sheet="Network"),
        "Nothing": ReportSection("strange_sections:make_nothing"),
    }
    extension = Extension("strange", INTERFACE, sections=sections)
    installed = InstalledExtension(
        "strange", "commodel-strange", "1", "strange_sections", extension
    )
    monkeypatch.setattr("commodel.extensions.list_extensions", lambda: (installed,))
    report = build_stored_report(unedited)
    names = [section.name for section in report.sections]
    assert names.index("Findings") < names.index("Count") < names.index("Comparison")
    assert names.index("Raw summary") < names.index("Cables") < names.index("Provenance")
    assert "Nothing" not in names
    (answer,) = report.section("Count").blocks
    models = next(table for table in report.tables if table.name == "Comparison").column("model")
    assert answer.sentences == (
        f"trees: {len(models) - models.count('recommended')} predictions, trees.",
    )
    write_xlsx(report, tmp_path / "trees.xlsx")
    book = openpyxl.load_workbook(tmp_path / "trees.xlsx")
    assert "Cables" not in book.sheetnames
    texts = [str(cell.value) for row in book["Network"].iter_rows() for cell in row]
    (position,) = [number for number, text in enumerate(texts) if "['fattree'] has none." in text]
    assert texts.index("Latency") < position
    assert book["Count"] is not None
    overview = [cell.value for row in book[book.sheetnames[0]].iter_rows() for cell in row]
    assert "Count: numbers of rows" in overview
