"""Whether an edited workbook and an edited result are found out."""

import shutil
import subprocess
from importlib import import_module

import openpyxl
import pytest
from click.testing import CliRunner

from commodel.cli.report import report as verb
from commodel.errors import UserError
from commodel.reports import stored, write_xlsx
from commodel.reports.verify import REPACKED, letters, verify


@pytest.fixture
def known(original, monkeypatch):
    """For a test that edits the workbook alone: the one that its results give was made before. Without this, it is made
    again, as in the tests that edit results."""
    module = import_module("commodel.reports.verify")
    monkeypatch.setattr(module, "stored", lambda folder, **how: None)
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
    findings, remark = verify(path, folder)
    assert set(verdicts(findings).values()) == {"same"}
    assert {"comparison.csv", "raw/ether16-1n-0", "sheet Comparison", "sheet Inputs"} <= set(verdicts(findings))
    assert remark == ""


def test_an_anonymous_workbook_is_the_same_too(folder, tmp_path):
    write_xlsx(stored(folder, anonymous=True), tmp_path / "a.xlsx")
    assert set(verdicts(verify(tmp_path / "a.xlsx", folder)[0]).values()) == {"same"}


@pytest.mark.usefixtures("known")
def test_saved_again_without_a_change_is_the_same(path, folder):
    findings, remark = verify(edited(path, lambda book: None), folder)
    assert set(verdicts(findings).values()) == {"same"}
    assert remark == REPACKED


@pytest.mark.usefixtures("known")
def test_saved_by_libreoffice_is_the_same(path, folder, tmp_path):
    if not shutil.which("soffice"):
        pytest.skip("no LibreOffice here")
    command = ["soffice", f"-env:UserInstallation=file://{tmp_path}/profile", "--headless", "--convert-to", "xlsx"]
    subprocess.run([*command, "--outdir", tmp_path / "again", path], check=True, capture_output=True, timeout=900)
    findings, remark = verify(tmp_path / "again" / "trees.xlsx", folder)
    assert [finding for finding in findings if finding.verdict != "same"] == []
    assert remark == REPACKED


def change_number(book):
    cell = next(cell for cell in book["Comparison"]["P"] if isinstance(cell.value, float))
    cell.value *= 1.0001


def change_sentence(book):
    cell = next(cell for cell in book["Summary"]["A"] if str(cell.value).startswith("•"))
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
    findings, _ = verify(edited(path, lambda book: [change(book) for change in edits.values()]), folder)
    odd = [finding for finding in findings if finding.verdict != "same"]
    assert sorted(finding.name for finding in odd) == sorted(f"sheet {name}" for name in edits)


@pytest.mark.usefixtures("known")
def test_a_text_that_became_a_formula_is_found(path, folder):
    """The experiment's title starts with =, and is a text; as a formula it would read the same."""

    def change(book):
        cell_of(book, "Inputs", "title: =1+1  # <script>").value = '="title: =1+1  # <script>"'

    findings, _ = verify(edited(path, change), folder)
    assert verdicts(findings)["sheet Inputs"] == "differs"


def test_an_edited_result_is_found(path, folder):
    (folder / "raw/ether16-1n-0/0123456789ab.csv").write_text("id,pass\n1,1\n")
    table = folder / "comparison.csv"
    table.write_text(table.read_text().replace(",ok,", ",extrapolated,", 1))
    by_name = verdicts(verify(path, folder)[0])
    odd = {name for name, verdict in by_name.items() if verdict == "differs"}
    assert {"comparison.csv", "raw/ether16-1n-0", "sheet Comparison", "sheet Provenance"} <= odd
    assert by_name["summary.csv"] == "same"


def test_a_lost_result_is_missing(path, folder):
    (folder / "fitted/ether16/loggp.yaml").unlink()
    by_name = verdicts(verify(path, folder)[0])
    assert by_name["fitted/ether16/loggp.yaml"] == "missing"
    assert by_name["sheets"] == "skipped"


@pytest.mark.usefixtures("known")
def test_digests_taken_out_of_the_workbook_are_missing(path, folder):
    def change(book):
        cell_of(book, "Provenance", "comparison.csv").value = "../../etc/passwd"

    findings, _ = verify(edited(path, change), folder)
    by_name = verdicts(findings)
    assert by_name["comparison.csv"] == by_name["../../etc/passwd"] == "missing"


def test_of_another_version_only_the_comparison_is_looked_at(path, folder):
    def older(book):
        row = [cell.row for cell in book["Provenance"]["A"] if cell.value == "code_digest"][-1]
        book["Provenance"].cell(row, 2).value = "0" * 12
        book["Comparison"].insert_rows(1)  # other code may put things elsewhere

    findings, remark = verify(edited(path, older), folder)
    by_name = verdicts(findings)
    assert by_name["sheet Comparison"] == "same"
    assert by_name["sheet Summary"] == "skipped"
    assert "another version" in remark
    findings, _ = verify(edited(path, change_number), folder)
    assert verdicts(findings)["sheet Comparison"] == "differs"


def test_the_exit_code_says_whether_all_is_the_same(path, folder):
    run = CliRunner().invoke(verb, ["--verify", str(path), "--in", str(folder)])
    assert run.exit_code == 0
    assert "same     sheet Summary\n" in run.output
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
        verify(tmp_path / "x.xlsx", folder)


def test_letters_of_columns():
    assert [letters(place) for place in (0, 25, 26, 701, 702)] == ["A", "Z", "AA", "ZZ", "AAA"]


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("value", "verdict", "detail"),
    [(2, "same", "its formulas; a reader has changed 1 of its cells"), ("=1+1", "differs", "found the formula '=1+1'")],
)
def test_a_calculator_may_be_used_but_no_formula_changed(path, folder, value, verdict, detail):
    def change(book):
        sheet = book["Calculator"]
        sheet[sheet.defined_names["ranks"].attr_text.rpartition("!")[2].replace("$", "")] = value

    edited(path, change)
    finding = next(entry for entry in verify(path, folder)[0] if entry.name == "sheet Calculator")
    assert finding.verdict == verdict
    assert detail in finding.detail
