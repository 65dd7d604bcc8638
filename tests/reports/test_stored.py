"""A report of a folder: where everything comes from, on its sheets; and without the names of machines."""

import html
import shutil
from dataclasses import replace

import openpyxl
import pytest
from tests.reports.results import INPUTS, write_results
from tests.results.damages import DAMAGES

from commodel.files.atomic import write_json
from commodel.plan.planning import load_plan
from commodel.reports import stored, write_xlsx
from commodel.reports.html.page import page_html
from commodel.results.attempts import DAMAGED


@pytest.fixture(scope="module")
def folder(inputs, tmp_path_factory):
    return write_results(tmp_path_factory.mktemp("results") / "trees", inputs)


@pytest.fixture(scope="module")
def made(folder):
    return stored(folder)


@pytest.fixture(scope="module")
def book(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("book") / "trees.xlsx"
    write_xlsx(made, path)
    return openpyxl.load_workbook(path)


def entries(report, name):
    table = next(table for table in report.section("Provenance").tables if table.name == name)
    return [dict(zip((column.header for column in table.columns), row, strict=True)) for row in table.rows]


def test_what_people_wrote_stands_word_for_word(book, made):
    column = [cell.value for cell in book["Inputs"]["A"]]
    page = page_html(made)
    for name, text in INPUTS.items():
        at = column.index(name)
        lines = text.splitlines()
        assert column[at + 1 : at + 1 + len(lines)] == lines
        assert f'<pre tabindex="0">{html.escape(text.rstrip())}</pre>' in page
    assert all(cell.data_type != "f" for cell in book["Inputs"]["A"])


def test_what_all_batches_of_a_platform_have_is_said_once(report):
    values = {(row["platform"], row["key"]): row["value"] for row in entries(report, "Of platforms")}
    assert values["ether16", "mpi"] == "MPICH 5.0.2"
    assert values["fattree", "cpu"] == "simulated"
    of_all = {row["key"] for row in entries(report, "Common")}
    assert {"experiment", "commit"} <= of_all
    assert not of_all & {key for _, key in values}
    heads = {key for row in entries(report, "Batches") for key in row}
    assert {"batch", "simulated", "platform", "hosts", "date", "seed"} == heads


def test_attempts_name_hosts_jobs_and_ends(made):
    first, second, *_ = entries(made, "Attempts")
    assert (first["host"], first["Slurm job"], first["outcome"]) == ("n001", "41", "died without a word")
    assert (second["started"], second["ended"]) == ("2026-10-02 11:03:20 UTC", "2026-10-02 12:00:41 UTC")
    assert second["outcome"] == "error: rank 1 should be on n002, but is on n017"
    assert [row["attempt"] for row in (first, second)] == [1, 2]


def test_attempts_name_their_commits_and_the_nodes_of_their_ranks(made):
    first, second, *_ = entries(made, "Attempts")
    assert (first["commit"], first["nodes"]) == ("4f2a91c", "n00[1-2]")
    assert (second["commit"], second["nodes"]) == ("5e11d07-dirty", "n002, spare-a, spare-b")


def test_a_damaged_story_stops_no_report(folder, tmp_path):
    """Of any kind: as many batches as there are kinds, beside one that is whole."""
    there = shutil.copytree(folder, tmp_path / "trees")
    plan = load_plan(there / "plan.json")
    whole, other = plan.batches
    damaged = [replace(other, name=f"damaged-{number}") for number in range(len(DAMAGES))]
    write_json(there / "plan.json", replace(plan, batches=(whole, *damaged)).as_json())
    for batch, state in zip(damaged, DAMAGES.values(), strict=True):
        shutil.copytree(there / "raw" / other.name, there / "raw" / batch.name)
        (there / "raw" / batch.name / "state.json").write_bytes(state)
    rows = entries(stored(there), "Attempts")
    assert [row["attempt"] for row in rows if row["batch"] == whole.name] == [1, 2]
    lost = [row for row in rows if row["batch"] != whole.name]
    assert [row["batch"] for row in lost] == [batch.name for batch in damaged]
    assert {(row["outcome"], row["host"], row["nodes"], row["commit"]) for row in lost} == {(DAMAGED, "", "", "")}


def test_versions_and_digests_are_listed(made, folder):
    tools = {row["program"]: row["version"] for row in entries(made, "Tools")}
    assert {"commodel", "code_digest", "python", "numpy", "pandas", "scipy", "snakemake", "vl-convert-python"} <= set(
        tools
    )
    files = {row["file"]: row["SHA-256"] for row in entries(made, "Files")}
    assert {"plan.json", "comparison.csv", "raw/ether16-1n-0", "inputs/experiments/trees.yaml"} <= set(files)
    assert all(len(digest) == 64 for digest in files.values())


def test_the_date_is_that_of_the_measurement(made, book):
    assert made.measured == "measured on 2026-10-02"
    assert "experiment trees, measured on 2026-10-02" in page_html(made)
    assert book.properties.created.isoformat() == "2026-10-02T00:00:00"
    assert book["Summary"]["A3"].value == "experiment trees, measured on 2026-10-02"


def test_two_reports_of_a_folder_are_the_same_bytes(folder, tmp_path):
    for name in ("one", "two"):
        write_xlsx(stored(folder), tmp_path / f"{name}.xlsx")
    assert (tmp_path / "one.xlsx").read_bytes() == (tmp_path / "two.xlsx").read_bytes()


def test_no_folder_of_anybody_is_named(made):
    assert "/home/someone" not in page_html(made)


def test_an_anonymous_report_names_no_machine(folder, made):
    page = page_html(stored(folder, anonymous=True))
    named = page_html(made)
    for machine in ("n001", "n002", "n009", "n017", "login1", "spare-a", "spare-b"):
        assert machine in named
        assert machine not in page
    assert "machine-1" in page


def test_a_batch_that_never_ran_has_no_provenance(folder, inputs, tmp_path):
    there = write_results(tmp_path / "trees", inputs)
    for path in (there / "raw/ether16-1n-0").iterdir():
        path.unlink()
    rows = entries(stored(there), "Files")
    assert "raw/ether16-1n-0" not in [row["file"] for row in rows]
