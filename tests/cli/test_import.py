"""commodel import: files of other tools."""

import csv
import json
import shutil
from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import CliRunner

from commodel.cli import import_, main
from commodel.extensions import list_subcommands
from commodel.files.parameter_sets import read_parameters
from commodel.registry import discover, discover_in_extensions
from tests.cli.running import output, read_rows, refused, run
from tests.interchange.format_reading import SAMPLES
from tests.patterns.goal_files import BINARY, TEXT


def test_every_table_of_times_can_be_imported():
    known = {name for name, entry in discover("interchange", "FORMAT").items() if entry.read_times}
    assert set(import_.TIME_FORMATS) == known - set(discover_in_extensions("FORMAT"))
    brought = list_subcommands("import", ())
    assert set(import_.import_.list_commands(None)) == {*known, "folder", "goal", *brought}


def import_sample(tmp_path, name, given=()):
    """Return the rows of the table imported from a sample of a format, and the result of the
    command."""
    sample = SAMPLES[name]
    (tmp_path / "file.txt").write_text(sample.text)
    options = [
        part
        for key, value in sample.given.items()
        if key != "columns"
        for part in (f"--{key}", str(value))
    ]
    options += [part for column in sample.given.get("columns", ()) for part in ("--column", column)]
    arguments = [
        "import",
        name,
        str(tmp_path / "file.txt"),
        "-o",
        str(tmp_path / "t.csv"),
        *options,
        *given,
    ]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    with (tmp_path / "t.csv").open(newline="") as stream:
        return list(csv.DictReader(stream)), result


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_measured_times_become_a_table(name, tmp_path):
    rows, result = import_sample(tmp_path, name)
    assert f"{len(rows)} times of " in result.stdout
    wanted = SAMPLES[name]
    assert [(row["operation"], row["algorithm"], int(row["ranks"])) for row in rows] == [
        (operation, algorithm, ranks) for operation, algorithm, _, ranks, *_ in wanted.times
    ]
    unknown = any(row["statistic"] == "unknown" for row in rows)
    assert len(result.stderr.splitlines()) == bool(wanted.left_out) + unknown
    assert all(f"{count} {left}" in result.stderr for left, count in wanted.left_out.items())


def test_hockney_is_fitted_to_imported_half_round_trips(tmp_path):
    """Times between two ranks are α + β·m; rows of the library default are left out of the fit."""
    rows = "".join(
        f"{size:<8}{10 + size * 2e-3:>20.2f}\n" for size in (1, 64, 4096, 65536, 1 << 20)
    )
    other = "# OSU MPI Broadcast Latency Test v7.0\n# Size       Avg Latency(us)\n8  20.0\n"
    (tmp_path / "o.txt").write_text(
        f"# OSU MPI Latency Test v7.0\n# Size          Latency (us)\n{rows}{other}"
    )
    output(f"import osu {tmp_path}/o.txt --ranks 4 -o {tmp_path}/t.csv")
    said = output(f"fit table {tmp_path}/t.csv --model hockney --out {tmp_path}/set.yaml")
    assert "left out 1 row of algorithm 'library'" in said
    values = read_parameters(tmp_path / "set.yaml").values
    assert values["alpha.a"].value == pytest.approx(10e-6, rel=1e-3)
    assert values["beta.a"].value == pytest.approx(2e-9, rel=1e-3)


def test_several_files_are_one_table(tmp_path):
    for name, ranks in (("a", 4), ("b", 8)):
        text = (
            f"# Benchmarking Bcast\n# #processes = {ranks}\n#bytes #repetitions t_max[usec]\n8 1 "
            "1.0\n"
        )
        (tmp_path / f"{name}.txt").write_text(text)
    said = output(
        f"import imb {tmp_path}/a.txt {tmp_path}/b.txt --algorithm binomial -o {tmp_path}/t"
    )
    assert "2 times of bcast (last rank)" in said
    assert [line.split(",")[-1] for line in (tmp_path / "t").read_text().splitlines()[1:]] == [
        "a.txt:4",
        "b.txt:4",
    ]
    (tmp_path / "b.txt").write_text("")
    said = output(f"import imb {tmp_path}/a.txt {tmp_path}/b.txt -o {tmp_path}/u", code=2)
    assert "b.txt: found no time of a known operation and algorithm" in said
    assert not (tmp_path / "u").exists()


OSU_ALLREDUCE = "# OSU MPI Allreduce Latency Test v7.4\n# Size  Avg Latency(us)\n8  10.0\n"


def write_osu(folder, *names):
    """Write a file of OSU output for each name, and return the paths as one text."""
    for name in names:
        (folder / name).write_text(OSU_ALLREDUCE)
    return " ".join(str(folder / name) for name in names)


def import_ranks(line, out):
    """Run an import, and return the numbers of ranks in the table and the messages."""
    result = run(f"import {line} -o {out}")
    with out.open(newline="") as stream:
        return [int(row["ranks"]) for row in csv.DictReader(stream)], result.stderr


def test_each_file_has_the_number_of_ranks_of_its_name_its_output_or_its_option(tmp_path):
    out = tmp_path / "t.csv"
    named = write_osu(tmp_path, "a_32.txt", "a_64.txt", "a_128.txt")
    ranks, said = import_ranks(f"osu {named}", out)
    assert ranks == [32, 64, 128]
    assert said == (
        "commodel: numbers of ranks by the files' names: a_32.txt 32, a_64.txt 64, a_128.txt 128; "
        "if they are wrong, give --ranks for each file\n"
    )
    assert import_ranks(f"osu {named} --ranks 32 --ranks 64 --ranks 128", out) == (
        [32, 64, 128],
        "",
    )
    # The names may be those of nodes with 56 ranks each.
    assert import_ranks(f"osu {named} --ranks 1792 --ranks 3584 --ranks 7168", out) == (
        [1792, 3584, 7168],
        "",
    )
    unnamed = write_osu(tmp_path, "x.txt", "y.txt")
    assert import_ranks(f"osu {unnamed} --ranks 16", out) == ([16, 16], "")
    assert import_ranks(f"osu {unnamed} --ranks 16 --ranks 8", out) == ([16, 8], "")
    runs = (
        "mpirun -np 4 osu_allreduce",
        OSU_ALLREDUCE,
        "mpirun -np 8 osu_allreduce",
        OSU_ALLREDUCE,
    )
    (tmp_path / "job.txt").write_text("\n".join(runs))
    assert import_ranks(f"osu {tmp_path}/job.txt", out) == ([4, 8], "")


def test_numbers_of_ranks_that_contradict_the_file_are_refused(tmp_path):
    """IMB runs on 2, 4, 8, … processes, one block each."""
    blocks = [
        f"# Benchmarking Bcast\n# #processes = {ranks}\n#bytes #repetitions t_max[usec]\n8 1 1.0\n"
        for ranks in (2, 4, 8)
    ]
    (tmp_path / "imb.txt").write_text("\n".join(blocks))
    assert import_ranks(f"imb {tmp_path}/imb.txt", tmp_path / "t.csv") == ([2, 4, 8], "")
    said = refused(f"import imb {tmp_path}/imb.txt --ranks 8 -o {tmp_path}/u")
    assert "imb.txt:4: found 2 ranks in the file and --ranks 8; leave --ranks out" in said
    (tmp_path / "imb.txt").rename(tmp_path / "imb_np8.txt")
    assert import_ranks(f"imb {tmp_path}/imb_np8.txt", tmp_path / "t.csv") == ([2, 4, 8], "")
    (tmp_path / "imb_np8.txt").rename(tmp_path / "imb_np4.txt")
    said = refused(f"import imb {tmp_path}/imb_np4.txt -o {tmp_path}/u")
    assert "imb_np4.txt:12: found 8 ranks in the file and 4 in its name; rename the file" in said
    (tmp_path / "t.csv").write_text("operation,seconds,ranks,bytes\nbcast,1,2,3\n")
    said = refused(f"import csv {tmp_path}/t.csv --ranks 8 -o {tmp_path}/u")
    assert "t.csv:2: found 2 ranks in the file and --ranks 8" in said


def import_statistics(line, out, *options):
    """Run an import, and return the statistics in the table, the summary and the messages."""
    result = run(f"import {line} -o {out}", *options)
    with out.open(newline="") as stream:
        statistics = [(row["statistic"], row["repetitions"]) for row in csv.DictReader(stream)]
    return statistics, result.stdout.strip(), result.stderr


@pytest.mark.parametrize("statistic", ["completion", "last rank", "first rank", "rank mean"])
def test_the_statistic_of_a_table_is_requested_in_one_line_and_stated_by_an_option(
    tmp_path, statistic
):
    table, out = tmp_path / "t.csv", tmp_path / "out.csv"
    table.write_text(
        "operation,algorithm,seconds,ranks,bytes\nreduce,linear,1us,4,8\nreduce,linear,2us,4,16\n"
    )
    statistics, summary, said = import_statistics(f"csv {table}", out)
    assert statistics == [("unknown", "unknown")] * 2
    assert summary.endswith("2 times of reduce (statistic unknown)")
    assert said.startswith(
        "commodel: the statistic of 2 times is unknown; give --statistic 'rank mean' for means over"
    )
    assert said.count("\n") == 1
    statistics, summary, said = import_statistics(f"csv {table}", out, "--statistic", statistic)
    assert statistics == [(statistic, "unknown")] * 2
    assert summary.endswith(f"2 times of reduce ({statistic})")
    assert not said
    assert import_statistics(f"csv {out}", tmp_path / "again.csv")[0] == statistics


def test_a_wrong_statistic_is_refused_with_its_place(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("operation,seconds,ranks,bytes,statistic\nreduce,1us,4,8,slowest\n")
    words = "wanted one of: completion, first rank, last rank, rank mean, unknown"
    assert f"t.csv:2: statistic: found 'slowest', {words}" in refused(
        f"import csv {table} -o {tmp_path}/u"
    )
    said = refused(f"import csv {table} --statistic slowest -o {tmp_path}/u")
    assert (
        "'--statistic': 'slowest' is not one of 'completion', 'last rank', 'first rank', 'rank mean'"
        in said
    )
    assert not (tmp_path / "u").exists()


def test_goal_becomes_a_table_with_the_same_predictions(tmp_path):
    loggp = (
        "--model",
        "loggp",
        *("--set", "L=1us", "--set", "o_s=1us", "--set", "o_r=1us", "--set", "g=1us"),
    )
    (tmp_path / "a.goal").write_text(TEXT)
    (tmp_path / "a.bin").write_bytes(BINARY)
    predictions = []
    for name in ("a.goal", "a.bin"):
        said = output(f"import goal {tmp_path}/{name} -o {tmp_path}/a.csv")
        assert "3 messages of 3 ranks, 5 µs of work\n" in said
        assert "the file has no unit of calc, so 1 ns is assumed" in said
        assert "2 tasks are for a second cpu or nic" in said
        for path in (tmp_path / name, tmp_path / "a.csv"):
            predictions.append(
                output(
                    "predict",
                    *loggp,
                    "--set",
                    "G=1ns",
                    "--operation",
                    f"file:{path}",
                    "--format",
                    "json",
                )
            )
    assert len({json.loads(text)[0]["seconds"] for text in predictions}) == 1
    said = output(f"import goal {tmp_path}/a.bin --unit ps -o {tmp_path}/a.csv")
    assert "5 ns of work" in said
    assert "does not name" not in said


def test_a_file_that_is_not_goal_is_refused_with_file_and_line(tmp_path):
    (tmp_path / "a.csv").write_text("step,kind,rank\n")
    assert "a.csv:1: found 'step,kind,rank', wanted num_ranks N" in output(
        f"import goal {tmp_path}/a.csv -o {tmp_path}/b.csv", code=2
    )


ALLREDUCE = """# OSU MPI Allreduce Latency Test v7.4
# Size       Avg Latency(us)
4                      10.00
1024                   20.00
"""


def read_table(path):
    with Path(path).open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_a_folder_is_imported_in_one_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "old runs"
    folder.mkdir()
    for ranks in (8, 16):
        text = ALLREDUCE.replace("10.00", f"{ranks}.00")
        (folder / f"allreduce_np{ranks}_ppn4.txt").write_text(text)
    (folder / "copy_np32.txt").write_text(text)
    (folder / "readme.md").write_text("notes\n")
    text = output("import", "old runs", "--out", "imported")
    assert text.startswith("imported/table.csv: 4 times of 2 of 4 files added; it has 4 times.")
    assert [row["layout"] for row in read_table("imported/table.csv")] == ["block:4"] * 4
    files = read_table("imported/files.csv")
    assert [row["ranks"] for row in files] == ["16", "8", "", ""]
    assert [row["not used because"] for row in files[2:]] == [
        (
            "it has the times of allreduce_np16_ppn4.txt, but layout none in place of block:4, "
            "ranks 32 in place of 16"
        ),
        "no output of a known benchmark",
    ]
    again = output("import", "folder", "old runs", "--out", "imported/table.csv")
    assert "0 times of 0 of 4 files added; it has 4 times" in again
    assert "in the table already" in again
    # The default table lies in the folder that is imported, and is not read as a measurement.
    assert "0 of 4 files added" in output("import folder .")


def test_a_folder_has_a_row_for_each_file_in_every_format(tmp_path):
    (tmp_path / "runs").mkdir()
    for number in range(60):
        (tmp_path / "runs" / f"np8_run{number}.txt").write_text(
            ALLREDUCE + f"4096 {number + 1}.5\n"
        )
    words = f"import folder {tmp_path}/runs --out {tmp_path}/imported"
    rows = read_rows(words)
    assert len(rows) == 60
    assert {row["rows"] for row in rows} == {3}
    shutil.rmtree(tmp_path / "imported")
    assert "np8_run0.txt and 59 more" in " ".join(output(words).split())


def test_options_state_what_files_and_names_do_not(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "osu_4nodes.txt").write_text(ALLREDUCE)
    table = "operation,algorithm,ranks,bytes,seconds\nbcast,linear,4,8,1e-6\n"
    (tmp_path / "runs" / "bcast.csv").write_text(table)
    words = f"import folder {tmp_path}/runs --out {tmp_path}/imported"
    options = "--ranks-per-node 16 --setting monday --statistic completion --library"
    output(f"{words} {options}", "Open MPI 5.0.3")
    rows = read_table(tmp_path / "imported/table.csv")
    assert [(row["ranks"], row["layout"], row["statistic"]) for row in rows] == [
        ("4", "block:4", "completion"),
        *[("64", "block:16", "rank mean")] * 2,
    ]
    assert {(row["setting"], row["library"]) for row in rows} == {("monday", "Open MPI 5.0.3")}


def test_a_folder_without_a_time_is_refused(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("notes\n")
    text = output(f"import {tmp_path}/notes --out {tmp_path}/imported", code=2)
    assert "found no measured time" in text
    assert not (tmp_path / "imported").exists()
    assert "wanted a folder" in output(f"import folder {tmp_path}/none", code=2)
    long_name = f"import folder {tmp_path}/notes --setting {100 * 'a'}"
    assert "setting: found" in output(long_name, code=2)
    assert "found '1', wanted" in output(f"import folder {tmp_path}/notes --ranks 1", code=2)
    assert "wanted a folder" in output(f"import {tmp_path}/none", code=2)
    assert "No such command" in output("import none", code=2)


def test_a_folder_with_the_name_of_a_format_is_read_by_its_path(tmp_path):
    with chdir(tmp_path):
        assert "import osu: found no file, wanted" in refused("import osu -o t.csv")
        Path("osu").mkdir()
        (Path("osu") / "np8.txt").write_text(ALLREDUCE)
        message = refused("import osu --out imported")
        assert "the folder is read by: commodel import ./osu" in message
        assert "1 of 1 file" in output("import ./osu --out imported")
