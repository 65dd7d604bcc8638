"""A report of a results folder: provenance without names of machines, and detection of an edited workbook or edited
results."""

import html
import shutil
import subprocess
from dataclasses import replace
from importlib import import_module

import openpyxl
import pytest
from click.testing import CliRunner

from commodel.cli.report import report as verb
from commodel.errors import UserError
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
from commodel.reports.verify import NOT_COMPARED, verify_workbook
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
    return [dict(zip((column.header for column in table.columns), row, strict=True)) for row in table.rows]


def test_input_files_appear_verbatim_in_workbook_and_page(book, stored_report):
    column = [cell.value for cell in book["Inputs"]["A"]]
    page = format_page(stored_report)
    for name, text in INPUTS.items():
        at = column.index(name)
        lines = text.splitlines()
        assert column[at + 1 : at + 1 + len(lines)] == lines
        assert f'<pre tabindex="0">{html.escape(text.rstrip())}</pre>' in page
    assert all(cell.data_type != "f" for cell in book["Inputs"]["A"])


def test_provenance_common_to_all_batches_of_a_platform_appears_once(report):
    values = {(row["platform"], row["key"]): row["value"] for row in entries(report, "Common by platform")}
    assert values["ether16", "mpi"] == "MPICH 5.0.2"
    assert values["fattree", "cpu"] == "simulated"
    of_all = {row["key"] for row in entries(report, "Common")}
    assert {"experiment", "commit"} <= of_all
    assert not of_all & {key for _, key in values}
    heads = {key for row in entries(report, "Batches") for key in row}
    assert {"batch", "simulated", "platform", "hosts", "date", "seed"} == heads


def test_attempts_name_hosts_jobs_and_ends(stored_report):
    first, second, *_ = entries(stored_report, "Attempts")
    assert (first["host"], first["Slurm job"], first["outcome"]) == ("n001", "41", "ended without a message")
    assert (second["started"], second["ended"]) == ("2026-10-02 11:03:20 UTC", "2026-10-02 12:00:41 UTC")
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
    assert {"commodel", "code_digest", "python", "numpy", "pandas", "scipy", "snakemake", "vl-convert-python"} <= set(
        tools
    )
    files = {row["file"]: row["SHA-256"] for row in entries(stored_report, "Files")}
    assert {"plan.json", "comparison.csv", "raw/ether16-1n-0", "inputs/experiments/trees.yaml"} <= set(files)
    assert all(len(digest) == 64 for digest in files.values())


def test_the_date_is_that_of_the_measurement(stored_report, book):
    assert stored_report.measured == "measured on 2026-10-02"
    assert "experiment trees, measured on 2026-10-02" in format_page(stored_report)
    assert book.properties.created.isoformat() == "2026-10-02T00:00:00"
    assert book["Summary"]["A3"].value == "experiment trees, measured on 2026-10-02"


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
    assert shorten_machine_names({"nodes": "n1, n2", "hosts": [7]}) == {"hosts": ["7"]}  # whatever a folder says


def test_names_are_replaced_as_whole_words():
    hide = make_anonymizer({"n1", "n1-ib", "a.b"})
    assert hide({"x": ["n1, n1-ib and n11", "a.b aXb"]}) == {"x": ["machine-2, machine-3 and n11", "machine-1 aXb"]}
    assert make_anonymizer(set())("n1") == "n1"


def test_machines_that_only_an_error_names_are_found_by_their_likeness():
    messages = [
        "rank 3 should be on n002, but is on n017",
        "error on n4.example.org: 12 of 16 cases",
        "n-1, login, x17",
    ]
    assert find_similar_names({"n002", "n001", "login"}, messages) == {"n002", "n017", "n4.example.org"}
    assert find_similar_names({"login.example.org"}, ["login2 and loginA"]) == set()


@pytest.fixture
def known(original, monkeypatch):
    """Use the workbook made before instead of making it again, for tests that edit only the workbook."""
    module = import_module("commodel.reports.verify")
    monkeypatch.setattr(module, "build_stored_report", lambda folder, **how: None)
    monkeypatch.setattr(module, "write_xlsx", lambda report, path: shutil.copy(original.parent / "trees.xlsx", path))


def verdicts(findings):
    return {finding.name: finding.verdict for finding in findings}


def edited(path, change):
    book = openpyxl.load_workbook(path)
    change(book)
    book.save(path)
    return path


def cell_of(book, sheet, text):
    return next(cell for row in book[sheet].iter_rows() for cell in row if cell.value == text)


def test_the_same_is_the_same(path, folder):
    findings, remark = verify_workbook(path, folder)
    assert set(verdicts(findings).values()) == {"same"}
    assert {"comparison.csv", "raw/ether16-1n-0", "sheet Comparison", "sheet Inputs"} <= set(verdicts(findings))
    assert remark == ""


def test_an_anonymous_workbook_is_the_same_too(folder, tmp_path):
    write_xlsx(build_stored_report(folder, anonymous=True), tmp_path / "a.xlsx")
    assert set(verdicts(verify_workbook(tmp_path / "a.xlsx", folder)[0]).values()) == {"same"}


@pytest.mark.usefixtures("known")
def test_saved_again_without_a_change_is_the_same(path, folder):
    findings, remark = verify_workbook(edited(path, lambda book: None), folder)
    assert set(verdicts(findings).values()) == {"same"}
    assert remark == NOT_COMPARED


@pytest.mark.usefixtures("known")
def test_saved_by_libreoffice_is_the_same(path, folder, tmp_path):
    if not shutil.which("soffice"):
        pytest.skip("no LibreOffice here")
    command = ["soffice", f"-env:UserInstallation=file://{tmp_path}/profile", "--headless", "--convert-to", "xlsx"]
    subprocess.run([*command, "--outdir", tmp_path / "again", path], check=True, capture_output=True, timeout=900)
    findings, remark = verify_workbook(tmp_path / "again" / "trees.xlsx", folder)
    assert [finding for finding in findings if finding.verdict != "same"] == []
    assert remark == NOT_COMPARED


def change_number(book):
    cell = next(cell for cell in book["Comparison"]["P"] if isinstance(cell.value, float))
    cell.value *= 1.0001


def change_sentence(book):
    cell = next(cell for cell in book["Summary"]["A"] if "predicts best" in str(cell.value))
    cell.value = cell.value.replace("predicts best", "is poor")


def compute(book):
    cell = next(cell for cell in book["Comparison"]["P"] if isinstance(cell.value, float))
    cell.value = f"={cell.value}"


def add_note(book):
    book["Errors"]["T3"] = "all is well"


EDITS = (
    {
        "Comparison": change_number,
        "Summary": change_sentence,
        "Errors": add_note,
        "More": lambda book: book.create_sheet("More"),
    },
    {"Comparison": compute, "Errors": lambda book: book.remove(book["Errors"])},
)


@pytest.mark.parametrize("edits", EDITS)
@pytest.mark.usefixtures("known")
def test_every_edit_is_found_and_nothing_else(path, folder, edits):
    findings, _ = verify_workbook(edited(path, lambda book: [change(book) for change in edits.values()]), folder)
    odd = [finding for finding in findings if finding.verdict != "same"]
    assert sorted(finding.name for finding in odd) == sorted(f"sheet {name}" for name in edits)


@pytest.mark.usefixtures("known")
def test_a_text_that_became_a_formula_is_found(path, folder):
    """The experiment's title starts with = and is a text. As a formula it would show the same text."""

    def change(book):
        cell_of(book, "Inputs", "title: =1+1  # <script>").value = '="title: =1+1  # <script>"'

    findings, _ = verify_workbook(edited(path, change), folder)
    assert verdicts(findings)["sheet Inputs"] == "differs"


def test_an_edited_result_is_found(path, folder):
    (folder / "raw/ether16-1n-0/0123456789ab.csv").write_text("id,pass\n1,1\n")
    table = folder / "comparison.csv"
    table.write_text(table.read_text().replace(",valid,", ",extrapolated,", 1))
    by_name = verdicts(verify_workbook(path, folder)[0])
    odd = {name for name, verdict in by_name.items() if verdict == "differs"}
    assert {"comparison.csv", "raw/ether16-1n-0", "sheet Comparison", "sheet Provenance"} <= odd
    assert by_name["summary.csv"] == "same"


def test_a_lost_result_is_missing(path, folder):
    (folder / "fitted/ether16/loggp.yaml").unlink()
    by_name = verdicts(verify_workbook(path, folder)[0])
    assert by_name["fitted/ether16/loggp.yaml"] == "missing"
    assert by_name["sheets"] == "skipped"


@pytest.mark.usefixtures("known")
def test_digests_taken_out_of_the_workbook_are_missing(path, folder):
    def change(book):
        cell_of(book, "Provenance", "comparison.csv").value = "../../etc/passwd"

    findings, _ = verify_workbook(edited(path, change), folder)
    by_name = verdicts(findings)
    assert by_name["comparison.csv"] == by_name["../../etc/passwd"] == "missing"


def test_of_another_version_only_the_comparison_is_looked_at(path, folder):
    def older(book):
        row = [cell.row for cell in book["Provenance"]["A"] if cell.value == "code_digest"][-1]
        book["Provenance"].cell(row, 2).value = "0" * 12
        book["Comparison"].insert_rows(1)  # other code may put things elsewhere

    findings, remark = verify_workbook(edited(path, older), folder)
    by_name = verdicts(findings)
    assert by_name["sheet Comparison"] == "same"
    assert by_name["sheet Summary"] == by_name["sheet Choices by model"] == "skipped"
    assert "another version" in remark
    findings, _ = verify_workbook(edited(path, change_number), folder)
    assert verdicts(findings)["sheet Comparison"] == "differs"


def test_the_exit_code_is_1_if_anything_differs(path, folder):
    run = CliRunner().invoke(verb, ["--verify", str(path), "--in", str(folder)])
    assert run.exit_code == 0
    assert "same     sheet Summary\n" in run.output
    assert "same     sheet Sets\n" in run.output
    edited(path, change_number)
    run = CliRunner().invoke(verb, ["--verify", str(path), "--in", str(folder)])
    assert run.exit_code == 1
    assert "differs  sheet Comparison: found " in run.output


def test_a_renamed_workbook_needs_the_results_named(path):
    renamed = path.replace(path.with_name("from a friend.xlsx"))
    run = CliRunner().invoke(verb, ["--verify", str(renamed)])
    assert run.exit_code == 2
    assert "wanted --in FOLDER" in run.output


def test_another_workbook_is_no_report(tmp_path, folder):
    openpyxl.Workbook().save(tmp_path / "x.xlsx")
    with pytest.raises(UserError, match="no digests"):
        verify_workbook(tmp_path / "x.xlsx", folder)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("value", "verdict", "detail"),
    [(2, "same", "formulas unchanged; input cells edited: 1"), ("=1+1", "differs", "found the formula '=1+1'")],
)
def test_a_calculator_may_be_used_but_no_formula_changed(path, folder, value, verdict, detail):
    name = next(name for name in openpyxl.load_workbook(path).sheetnames if name.startswith("Calculator"))

    def change(book):
        sheet = book[name]
        sheet[sheet.defined_names["ranks"].attr_text.rpartition("!")[2].replace("$", "")] = value

    edited(path, change)
    finding = next(entry for entry in verify_workbook(path, folder)[0] if entry.name == f"sheet {name}")
    assert finding.verdict == verdict
    assert detail in finding.detail
