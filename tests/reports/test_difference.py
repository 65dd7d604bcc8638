"""commodel diff on a folder of results and an edited copy of it."""

import json
import re
import shutil

import openpyxl
import pandas as pd
import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.reports.workbooks import HEADERS

JSON = "--format", "json"


def called(*arguments):
    return CliRunner().invoke(main, [*map(str, arguments)])


@pytest.fixture
def slower(folder, tmp_path):
    """Return a copy of the results in which reductions take 30 % longer."""
    copy = shutil.copytree(folder, tmp_path / "later")
    table = pd.read_csv(copy / "comparison.csv")
    columns = ["measured", "measured_low", "measured_high"]
    table.loc[table["operation"] == "reduce", columns] *= 1.3
    table.to_csv(copy / "comparison.csv", index=False)
    return copy


def test_the_same_results_did_not_change(folder):
    result = called("diff", folder, folder, "--fail-above", "1%")
    assert result.exit_code == 0, result.output
    assert re.match(r"None of \d+ points and parameters changed", result.stdout)
    assert "simulated, not measured on hardware: fattree" in result.stdout


def test_a_slower_network_fails_and_stands_in_all_formats(folder, slower, tmp_path):
    result = called(
        "diff",
        folder,
        slower,
        "--fail-above",
        "10%",
        "--format",
        "json",
        "--out",
        tmp_path / "d.xlsx",
    )
    assert result.exit_code == 1
    assert "changed by more than 10% beyond their intervals" in result.stderr
    rows = json.loads(result.stdout)
    changed = [row for row in rows if row["verdict"] == "slower"]
    assert changed
    assert all(
        row["name"].startswith("reduce") and row["ratio"] == pytest.approx(1.3) for row in changed
    )
    book = openpyxl.load_workbook(tmp_path / "d.xlsx")
    assert book.sheetnames == ["Summary", "Points", "Parameters", "Provenance"]
    points = [row[0].value for row in book["Points"].iter_rows() if row[-1].value == "slower"]
    assert len(points) == len(changed)
    units = {row[1].value: row[2].value for row in book["Parameters"].iter_rows(min_row=5)}
    assert (units["loggp L"], units["loggp G"]) == ("µs", "ns/B")
    assert called("diff", folder, slower, "--fail-above", "40%").exit_code == 0


def test_tables_and_sets_are_taken_too(folder, slower):
    tables = [path / "comparison.csv" for path in (folder, slower)]
    assert called("diff", *tables, "--fail-above", "10%").exit_code == 1
    parameters = folder / "fitted" / "ether16" / "loggp.yaml"
    assert "parameters: " in called("diff", parameters, parameters).stdout


def test_diff_of_two_workbooks_equals_diff_of_the_results_folders(folder, slower, tmp_path):
    """Values agree to the digits of a cell; provenance is not compared."""
    books = []
    for results in (folder, slower):
        (tmp_path / "mailed" / results.name).mkdir(parents=True)
        assert (
            called("report", "--in", results, "--out", tmp_path / "mailed" / results.name).exit_code
            == 0
        )
        books += (tmp_path / "mailed" / results.name).glob("*.xlsx")
    own, mailed, mixed = (
        {
            (row["platform"], row["name"]): row
            for row in json.loads(called("diff", *pair, *JSON).stdout)
            # whose short names `alpha` the report has in full, `alpha.a`
            if not row["name"].startswith("hockney")
        }
        for pair in ((folder, slower), books, (folder, books[1]))
    )
    assert any(row["verdict"] == "slower" for row in own.values())
    for other in (mailed, mixed):
        assert {key: row["verdict"] for key, row in other.items()} == {
            key: row["verdict"] for key, row in own.items()
        }
        for key, row in own.items():
            numbers = [
                (row[name], other[key][name]) for name in ("old", "new", "ratio", "low", "high")
            ]
            assert all(one == two or two == pytest.approx(one, rel=1e-9) for one, two in numbers)
    assert "simulated, not measured on hardware: fattree" in called("diff", *books).stdout
    assert "1. " in called("diff", *books, books[0]).stdout


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (
            ("measured [µs]", "=1+1"),
            "Comparison, row 2, measured [µs]: found '=1+1', wanted a number",
        ),
        (("ranks", -1), "Comparison, row 2, ranks: found '-1', wanted a number"),
        (
            ("measured high [µs]", True),
            "Comparison, row 2, measured high [µs]: found 'True', wanted a number",
        ),
        (("bytes [B]", None), "Comparison: found no column 'bytes [B]' in it"),
        (("", None), "found no sheet Comparison in it, wanted a report's workbook"),
    ],
)
def test_a_workbook_that_is_no_report_is_refused_in_one_line(tmp_path, edit, said):
    head, value = edit
    row = dict.fromkeys(HEADERS.values(), 1) | {head: value}
    book = openpyxl.Workbook()
    book.active.title = "Comparison" if head else "Other"
    for line in zip(
        *((head, value) for head, value in row.items() if value is not None), strict=True
    ):
        book.active.append(line)
    book.save(tmp_path / "e.xlsx")
    result = called("diff", tmp_path / "e.xlsx", tmp_path / "e.xlsx")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert said in result.stderr


def test_a_history_is_a_table_and_charts(folder, slower, tmp_path):
    result = called("diff", folder, slower, folder, "--out", tmp_path / "h.xlsx")
    assert result.exit_code == 0, result.output
    sheet = openpyxl.load_workbook(tmp_path / "h.xlsx")["Summary"]
    rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
    (reduce,) = (row for row in rows if row[:3] == ["point", "ether16", "reduce"])
    assert reduce[3:6] == pytest.approx([1.0, 1.3, 1.0], rel=0.2)
    assert len(sheet._charts) == 2
    drawn = [
        cell.value
        for row in openpyxl.load_workbook(tmp_path / "h.xlsx")["Chart data"]
        for cell in row
    ]
    operations = [
        text
        for text in drawn
        if text in {f"{row[1]} {row[2]}" for row in rows if row[0] == "point"}
    ]
    assert operations[0] in ("ether16 reduce", "fattree reduce")  # what changed most comes first


def test_a_history_has_a_table_for_the_terminal_and_all_for_programs(folder, slower):
    result = called("diff", folder, slower, folder)
    assert result.exit_code == 0, result.output
    answer, table, _ = result.stdout.split("\n\n")
    head, first = table.splitlines()[:2]
    assert re.match(r"\d+ of \d+ numbers changed by more than 1 %", answer)
    assert head.split() == ["kind", "platform", "what", "1", "2", "3"]
    assert first.split()[0] == "point"
    assert first.split()[2:] == ["reduce", "1.000", "1.300", "1.000"]
    assert "simulated, not measured on hardware: fattree" in result.stdout
    rows = json.loads(called("diff", folder, slower, folder, "--format", "json").stdout)
    assert {row["what"] for row in rows if row["2"] > 1.01} == {"reduce"}
    assert len(rows) > 10
    assert called("diff", folder, folder, folder).stdout.startswith("None of ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["diff", "nowhere.txt", "nowhere.txt"],
            "wanted a folder of results, a report (.xlsx), a comparison",
        ),
        (
            ["diff", "alone", "--out", "h.xlsx"],
            "found one result, alone; wanted two or more to compare",
        ),
        (["diff"], "found no results; wanted two or more"),
        (["diff", "one", "two", "three", "--out", "h.pdf"], "wanted a name that ends with .xlsx"),
        (
            ["diff", "one", "two", "three", "--fail-above", "10%"],
            "--fail-above: found 3 results, wanted two",
        ),
    ],
)
def test_mistakes_are_one_line(arguments, message):
    result = called(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
