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


def read_sheet(book, name, title=""):
    """Return the rows of a table of a sheet, by its headers: of the first table, or of that with a
    title."""
    lines = [list(row) for row in book[name].iter_rows(values_only=True)]
    start = next(at for at, row in enumerate(lines) if title in row) if title else 0
    is_head = [row[0] in ("operation", "model", "file") for row in lines]
    first = is_head.index(True, start)
    names = [name for name in lines[first] if name]
    rows = []
    for row in lines[first + 1 :]:
        if not row[0]:
            break
        rows.append(dict(zip(names, row, strict=False)))
    return rows


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


def test_the_largest_number_of_ranks_of_each_operation_is_held_out(written):
    book = openpyxl.load_workbook(written[0])
    rows = read_sheet(book, "Predictions", "Held-out points")
    assert {(row["model"], row["operation"], row["ranks"]) for row in rows} == {
        ("MPI default", "allreduce", 32),
        ("hockney", "bcast", 8),
        ("loggp", "bcast", 8),
    }


def test_the_mpi_default_is_predicted_on_more_ranks(written):
    book = openpyxl.load_workbook(written[0])
    rows = read_sheet(book, "Predictions", "Beyond the measurements")
    assert {(row["alternative"], row["ranks"], row["layout"]) for row in rows} == {
        ("MPI default", 64, "block:4"),
        ("MPI default", 128, "block:4"),
    }
    for row in rows:
        assert row["low [µs]"] < row["predicted [µs]"] < row["high [µs]"]
        assert row["validity"].startswith("extrapolated: ")
    assert "64 ranks, predicted" in written[1].read_text()


def test_a_table_of_the_mpi_default_alone_has_a_report(tmp_path):
    imported = make_runs(tmp_path, with_algorithms=False)
    (imported / "files.csv").unlink()
    files = report_imported(imported, tmp_path / "report", None, False)
    assert "MPI default" in openpyxl.load_workbook(files[0]).sheetnames


def test_times_of_a_known_library_name_the_algorithm_of_its_rules(tmp_path):
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "osu_4n-1ppn.out").write_text(HEAD + "8 4.2\n1048576 900.0\n")
    commodel.import_folder(runs, tmp_path / "imported", library="Open MPI 5.0.3")
    files = commodel.report(tmp_path / "imported", tmp_path / "report").files
    book = openpyxl.load_workbook(files[0])
    rows = read_sheet(book, "MPI default", "Times of MPI default")
    named = [row["by default rules"] for row in rows]
    assert named == ["ring or recursive-doubling, depending on the datatype", "rabenseifner"]


def test_options_of_results_are_refused_for_imported_measurements(tmp_path):
    imported = make_runs(tmp_path, with_algorithms=False)
    with pytest.raises(UserError, match="found 'samples', wanted results"):
        commodel.report(imported, samples=True)
    (imported / "table.csv").write_text((imported / "table.csv").read_text().partition("\n")[0])
    with pytest.raises(UserError, match="found no"):
        commodel.report(imported, tmp_path / "report")
