"""The report on a folder of imported measurements, which needs no experiment."""

import openpyxl
import pytest

import commodel
from commodel.api.imported_reports import report_imported
from commodel.errors import UserError

HEAD = "# OSU MPI Allreduce Latency Test v7.4\n# Size       Avg Latency(us)\n"
SIZES = (8, 1024, 65536)
ALGORITHMS = "operation,algorithm,ranks,bytes,seconds,statistic\n" + "".join(
    f"bcast,binomial,{2**rounds},{size},{rounds * (2e-6 + 1e-9 * size)},completion\n"
    for rounds in (1, 2, 3)
    for size in (8, 1024, 65536)
)


def make_runs(folder, with_algorithms=True):
    """Write and import runs of OSU on 2, 4 and 8 nodes, and a table of algorithms."""
    runs = folder / "runs"
    runs.mkdir()
    for nodes in (2, 4, 8):
        rows = [f"{size} {nodes + size / 1000:.2f}\n" for size in SIZES]
        (runs / f"osu_{nodes}n-4ppn.out").write_text(HEAD + "".join(rows))
    (runs / "=notes.txt").write_text("nothing\n")
    if with_algorithms:
        (runs / "bcast.csv").write_text(ALGORITHMS)
    commodel.import_folder(runs, folder / "imported")
    return folder / "imported"


def read_sheet(book, name):
    """Return the rows of the last table of a sheet, by its headers."""
    rows = [list(row) for row in book[name].iter_rows(values_only=True)]
    head = next(row for row in rows if row[0] in ("operation", "model", "file"))
    body = rows[rows.index(head) + 1 :]
    names = [name for name in head if name]
    return [dict(zip(names, row, strict=False)) for row in body if row[0]]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("imported")
    imported = make_runs(folder)
    return commodel.report(imported, folder / "report").files


def test_a_workbook_and_a_page_are_written(written):
    assert [path.name for path in written] == ["imported.xlsx", "index.html"]
    page = written[1].read_text()
    assert "Imported measurements: imported" in page
    assert "table of measured collectives imported" in page
    assert "experiment imported" not in page
    assert "on 8 to 32 ranks (3 numbers)" in page


def test_the_workbook_has_times_predictions_and_files(written):
    book = openpyxl.load_workbook(written[0])
    names = book.sheetnames
    assert names[:6] == [
        "Summary",
        "MPI default",
        "Algorithms",
        "Predictions",
        "Parameters",
        "Files",
    ]
    times = read_sheet(book, "MPI default")
    assert len(times) == 9
    first = times[0]
    assert (first["ranks"], first["nodes"], first["layout"]) == (8, 2, "block:4")
    assert (first["statistic"], first["median [µs]"]) == ("rank mean", pytest.approx(2.01))
    files = {row["file"]: row for row in read_sheet(book, "Files")}
    assert files["osu_2n-4ppn.out"]["placement from"] == "file name"
    assert files["bcast.csv"]["rows"] == 9
    assert files["'=notes.txt"]["not used because"] == "no output of a known benchmark"


def test_the_largest_number_of_ranks_is_held_out(written):
    book = openpyxl.load_workbook(written[0])
    held_out = read_sheet(book, "Predictions")
    assert {row["ranks"] for row in held_out} == {8}
    assert {row["model"] for row in held_out} == {"hockney", "loggp"}


def test_a_table_of_the_mpi_default_alone_has_a_report(tmp_path):
    imported = make_runs(tmp_path, with_algorithms=False)
    (imported / "files.csv").unlink()
    files = report_imported(imported, tmp_path / "report", None, False)
    assert "MPI default" in openpyxl.load_workbook(files[0]).sheetnames


def test_options_of_results_are_refused_for_imported_measurements(tmp_path):
    imported = make_runs(tmp_path, with_algorithms=False)
    with pytest.raises(UserError, match="found 'samples', wanted results"):
        commodel.report(imported, samples=True)
    (imported / "table.csv").write_text((imported / "table.csv").read_text().partition("\n")[0])
    with pytest.raises(UserError, match="found no"):
        commodel.report(imported, tmp_path / "report")
