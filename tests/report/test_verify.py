"""Whether an edited workbook, an edited result and a stranger's file are found out."""

import shutil
import subprocess
import zipfile

import openpyxl
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.report.results import write_results

from commodel.cli.report import report as verb
from commodel.errors import UserError
from commodel.report import stored, write_xlsx
from commodel.report.received import received, rows
from commodel.report.verify import REPACKED, letters, verify


@pytest.fixture(scope="module")
def original(inputs, tmp_path_factory):
    folder = write_results(tmp_path_factory.mktemp("results") / "trees", inputs)
    write_xlsx(stored(folder), folder.parent / "trees.xlsx")
    return folder


@pytest.fixture
def folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "trees")


@pytest.fixture
def path(original, tmp_path):
    return shutil.copy(original.parent / "trees.xlsx", tmp_path / "trees.xlsx")


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


def test_saved_again_without_a_change_is_the_same(path, folder):
    findings, remark = verify(edited(path, lambda book: None), folder)
    assert set(verdicts(findings).values()) == {"same"}
    assert remark == REPACKED


def test_saved_by_libreoffice_is_the_same(path, folder, tmp_path):
    if not shutil.which("soffice"):
        pytest.skip("no LibreOffice here")
    command = ["soffice", f"-env:UserInstallation=file://{tmp_path}/profile", "--headless", "--convert-to", "xlsx"]
    subprocess.run([*command, "--outdir", tmp_path / "again", path], check=True, capture_output=True, timeout=300)
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


@pytest.mark.parametrize(
    ("change", "sheet"),
    [
        (change_number, "Comparison"),
        (change_sentence, "Summary"),
        (compute, "Comparison"),
        (add_note, "Errors"),
        (lambda book: book.remove(book["Errors"]), "Errors"),
        (lambda book: book.create_sheet("More"), "More"),
    ],
)
def test_an_edited_cell_is_found(path, folder, change, sheet):
    findings, _ = verify(edited(path, change), folder)
    odd = [finding for finding in findings if finding.verdict != "same"]
    assert [finding.name for finding in odd] == [f"sheet {sheet}"]


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
    found = verdicts(verify(path, folder)[0])
    odd = {name for name, verdict in found.items() if verdict == "differs"}
    assert {"comparison.csv", "raw/ether16-1n-0", "sheet Comparison", "sheet Provenance"} <= odd
    assert found["summary.csv"] == "same"


def test_a_lost_result_is_missing(path, folder):
    (folder / "fitted/ether16/loggp.yaml").unlink()
    found = verdicts(verify(path, folder)[0])
    assert found["fitted/ether16/loggp.yaml"] == "missing"
    assert found["sheets"] == "skipped"


def test_digests_taken_out_of_the_workbook_are_missing(path, folder):
    def change(book):
        cell_of(book, "Provenance", "comparison.csv").value = "../../etc/passwd"

    findings, _ = verify(edited(path, change), folder)
    found = verdicts(findings)
    assert found["comparison.csv"] == found["../../etc/passwd"] == "missing"


def test_of_another_version_only_the_comparison_is_looked_at(path, folder):
    def older(book):
        label = cell_of(book, "Provenance", "code_digest")
        for cell in book["Provenance"]["B"]:
            if cell.row >= label.row:
                cell.value = "0" * 12 if cell.row == cell_of_tools(book) else cell.value
        book["Comparison"].insert_rows(1)  # other code may put things elsewhere

    def cell_of_tools(book):
        return [cell.row for cell in book["Provenance"]["A"] if cell.value == "code_digest"][-1]

    findings, remark = verify(edited(path, older), folder)
    found = verdicts(findings)
    assert found["sheet Comparison"] == "same"
    assert found["sheet Summary"] == "skipped"
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


def pack(path, parts):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def parts_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><x>&b;</x>'


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("xl/sharedStrings.xml", LAUGHS.encode()),
        ("xl/sharedStrings.xml", LAUGHS.encode("utf-16")),
        ("xl/workbook.xml", b"<?xml version='1.0' encoding='cp037'?>" + LAUGHS.encode("cp037")),
        ("xl/styles.xml", b" " * (65 << 20)),
        ("xl/workbook.xml", b"<workbook"),
        ("[Content_Types].xml", b""),
    ],
)
def test_hostile_parts_are_refused_in_one_line(path, folder, name, data):
    pack(path, parts_of(path) | {name: data})
    run = CliRunner().invoke(verb, ["--verify", str(path), "--in", str(folder)])
    assert run.exit_code == 2
    assert run.output.count("\n") == 1
    assert "trees.xlsx" in run.output


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_workbook_is_refused_in_one_line(content, tmp_path, folder):
    (tmp_path / "x.xlsx").write_bytes(content)
    run = CliRunner().invoke(verb, ["--verify", str(tmp_path / "x.xlsx"), "--in", str(folder)])
    assert run.exit_code == 2
    assert run.output.count("\n") == 1


def test_another_workbook_is_no_report(tmp_path, folder):
    openpyxl.Workbook().save(tmp_path / "x.xlsx")
    with pytest.raises(UserError, match="no digests"):
        verify(tmp_path / "x.xlsx", folder)


def test_rows_far_away_cost_nothing(tmp_path):
    """A sheet that says it goes on to the last row that a number can name."""
    book = openpyxl.Workbook()
    book.active["A1"] = 1
    book.save(tmp_path / "far.xlsx")
    parts = parts_of(tmp_path / "far.xlsx")
    far = b'<row r="4000000000"><c r="XFD4000000000"><v>1</v></c></row></sheetData>'
    parts["xl/worksheets/sheet1.xml"] = parts["xl/worksheets/sheet1.xml"].replace(b"</sheetData>", far)
    with received(pack(tmp_path / "far.xlsx", parts)) as book:
        assert len(list(rows(book.active, 50, 10, tmp_path))) <= 50


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_workbooks_are_read_or_refused(original, tmp_path, data):
    """Bytes of one part are overwritten: never another exception than the one that a user can cause."""
    parts = parts_of(original.parent / "trees.xlsx")
    name = data.draw(st.sampled_from(sorted(parts)))
    at = data.draw(st.integers(0, len(parts[name]) - 1))
    junk = data.draw(st.binary(min_size=1, max_size=8) | st.sampled_from([b"<", b"</row>", b"999999999", b"&#0;"]))
    parts[name] = parts[name][:at] + junk + parts[name][at + len(junk) :]
    path = pack(tmp_path / "damaged.xlsx", parts)
    try:
        with received(path) as book:
            found = [row for sheet in book.worksheets for row in rows(sheet, 60, 20, path)]
    except UserError as error:
        found = error.message.splitlines()
    assert len(found) >= 1


def test_letters_of_columns():
    assert [letters(place) for place in (0, 25, 26, 701, 702)] == ["A", "Z", "AA", "ZZ", "AAA"]
