"""The MPI default, from a table of its times to its predictions, as a user types it."""

import subprocess
import sys

import pytest

import commodel
from commodel.files.parameter_sets import read_parameters
from tests.cli.running import read_rows, refused, run

SIZES = tuple(4**number for number in range(3, 10))
HEADER = "operation,algorithm,layout,ranks,bytes,seconds"


def format_row(ranks, size, operation="allreduce", algorithm="library"):
    depth = (ranks - 1).bit_length()
    seconds = depth * (4e-6 + 1e-9 * size) * (1 + 0.01 * ((ranks * 7 + size * 3) % 5 - 2))
    return f"{operation},{algorithm},block:8,{ranks},{size},{seconds:.6g}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of the MPI default alone, one with algorithms, and the set fitted to the first."""
    path = tmp_path_factory.mktemp("default")
    rows = [format_row(ranks, size) for ranks in (16, 32, 64, 128, 256) for size in SIZES]
    (path / "osu.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    others = [format_row(ranks, size, "allreduce", "ring") for ranks in (16, 32) for size in SIZES]
    (path / "both.csv").write_text("\n".join([HEADER, *rows, *others]) + "\n")
    run(f"fit table {path}/osu.csv --out {path}/params.yaml")
    return path


def test_a_table_of_the_mpi_default_alone_is_fitted_and_predicts_more_ranks(folder):
    parameters = read_parameters(folder / "params.yaml")
    assert parameters.model == "library"
    assert parameters.source == "the MPI default at 35 points of osu.csv"
    said = run(
        f"predict --params {folder}/params.yaml --operation allreduce --ranks 512 --bytes 64KiB"
    ).stdout
    sentence, notes = said.splitlines()[0], said
    assert sentence.startswith("MPI default, allreduce over 512 ranks, 64 KiB: ")
    assert sentence.endswith(
        "], extrapolated by 1 doubling of the ranks beyond the measured times."
    )
    assert "layout block:8: that of the measured times of the MPI default" in notes
    (row,) = read_rows(
        f"predict --params {folder}/params.yaml --operation allreduce --algorithm library "
        "--ranks 512 --bytes 64KiB"
    )
    assert row["model"] == row["algorithm"] == "library"
    assert row["layout"] == "block:8"
    exact = 9 * (4e-6 + 1e-9 * 65536)
    assert row["low"] < exact < row["high"]
    assert row["seconds"] == pytest.approx(exact, rel=0.15)
    assert row["validity"].startswith("extrapolated: 1 doubling of the ranks")


def test_python_says_the_same(folder):
    fitted = commodel.fit(folder / "osu.csv")
    assert fitted.parameter_set.values == read_parameters(folder / "params.yaml").values
    of_python = commodel.predict("allreduce", 512, "64KiB", parameters=fitted)
    of_file = commodel.predict("allreduce", 512, "64KiB", parameters=folder / "params.yaml")
    assert of_python.rows == of_file.rows
    assert of_python.sentence.startswith("MPI default, allreduce over 512 ranks")


def test_errors_are_measured_at_the_largest_number_of_ranks(folder):
    (row,) = [
        row
        for row in read_rows(f"fit table {folder}/osu.csv --hold-out", "ranks > 128")
        if row["model"] == "library" and row["alternative"] == "library"
    ]
    assert row["points"] == len(SIZES)
    assert row["mu_median"] < 1.1
    said = run(f"fit table {folder}/osu.csv --hold-out", "ranks > 128").stdout
    assert "nearest point" in said
    assert "allreduce between nodes: 128 ranks, predicted from fewer, are off by a factor" in said


def test_algorithms_and_the_mpi_default_are_predicted_beside_each_other(folder):
    run(f"fit table {folder}/both.csv --model hockney --model library --out {folder}/sets")
    rows = read_rows(
        f"predict --params {folder}/sets --operation allreduce --ranks 512 --bytes 64KiB "
        "--layout block:8"
    )
    of_default = [row for row in rows if row["model"] == "library"]
    assert [row["algorithm"] for row in of_default] == ["library"]
    assert {row["algorithm"] for row in rows if row["model"] == "hockney"} >= {"ring"}
    changed = read_rows(
        f"predict --params {folder}/sets --operation allreduce --ranks 512 --bytes 64KiB "
        "--layout block:8 --set alpha=1us"
    )
    assert {row["model"] for row in changed} == {"hockney", "library"}
    (named,) = read_rows(
        f"predict --params {folder}/sets --model library --operation allreduce --ranks 512 "
        "--bytes 64KiB"
    )
    assert named["model"] == "library"
    only = read_rows(
        f"predict --params {folder}/sets --operation allreduce --ranks 512 --bytes 64KiB "
        "--layout block:8 --algorithm ring"
    )
    assert {row["algorithm"] for row in only} == {"ring"}


def write_hockney(path, alpha):
    path.write_text(f"model: hockney\nparameters: {{alpha: {alpha}, beta: 0.1ns/B}}\n")
    return path


@pytest.mark.parametrize(("alpha", "answer"), [("1us", "use "), ("1ms", "keep the MPI default (")])
def test_advice_compares_the_mpi_default_at_ranks_that_were_never_measured(
    folder, tmp_path, alpha, answer
):
    hockney = write_hockney(tmp_path / "hockney.yaml", alpha)
    command = (
        f"advise --params {folder}/params.yaml --params {hockney} --operation allreduce "
        "--ranks 512 --layout block:8"
    )
    said = run(f"{command} --bytes 64KiB").stdout
    assert said.startswith(f"allreduce over 512 ranks, 64 KiB: {answer}")
    assert "predicted from its measured times on block:8, extrapolated by 1 doubling" in said
    (line,) = [line for line in said.splitlines() if line.startswith("MPI default ")]
    rows = read_rows(f"{command} --bytes 64KiB")
    assert [row["alternative"] for row in rows].count("library") == 1
    of_default = rows[-1]
    assert of_default["low"] < of_default["seconds"] < of_default["high"]
    assert f"{1e6 * of_default['seconds']:.3g}" in line
    advice = commodel.advise(
        "allreduce",
        512,
        "64KiB",
        evidence=[folder / "params.yaml", hockney],
        layouts=["block:8"],
    )
    assert advice.ranking.default.seconds == of_default["seconds"]
    decisions = read_rows(f"{command} --bytes 1KiB,64KiB")
    kept = {row["algorithm"] == "library" for row in decisions}
    assert kept == {answer.startswith("keep")}


def test_advice_needs_alternatives_and_a_narrow_interval(folder, tmp_path):
    line = "--operation allreduce --ranks 512 --bytes 64KiB"
    assert "found only times of the MPI default, wanted also a model" in refused(
        f"advise --params {folder}/params.yaml {line}"
    )
    rows = [format_row(16, size) for size in SIZES]
    (tmp_path / "one.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    run(f"fit table {tmp_path}/one.csv --out {tmp_path}/one.yaml")
    hockney = write_hockney(tmp_path / "hockney.yaml", "1us")
    said = run(f"advise --params {tmp_path}/one.yaml --params {hockney} {line} --layout block:8")
    assert "MPI default: " not in said.stdout
    assert "the MPI default is not compared: its interval is too wide" in said.stdout
    assert "1 number of ranks measured, so that their effect is unknown" in said.stdout


def test_advice_names_the_statistic_of_the_mpi_default(tmp_path):
    rows = [format_row(ranks, size, "bcast") for ranks in (16, 32, 64) for size in SIZES]
    (tmp_path / "osu.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    run(f"fit table {tmp_path}/osu.csv --statistic", "rank mean", "--out", tmp_path / "osu.yaml")
    hockney = write_hockney(tmp_path / "hockney.yaml", "1us")
    command = (
        f"advise --params {tmp_path}/osu.yaml --params {hockney} --operation bcast --ranks 128 "
        "--bytes 4KiB --layout block:8"
    )
    said = run(command).stdout
    assert "times of the MPI default are of statistic 'rank mean': --statistic 'rank mean'" in said
    assert "MPI default: " not in said
    compared = run(f"{command} --statistic", "rank mean").stdout
    assert "predicted from its measured times on block:8" in compared


def test_a_few_numbers_of_ranks_explain_a_wide_interval(tmp_path):
    rows = [format_row(ranks, size) for ranks in (16, 32) for size in SIZES]
    (tmp_path / "few.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    run(f"fit table {tmp_path}/few.csv --out {tmp_path}/few.yaml")
    said = run(
        f"predict --params {tmp_path}/few.yaml --operation allreduce --ranks 512 --bytes 64KiB"
    ).stdout
    note = "WIDE INTERVAL: allreduce between nodes, 2 numbers of ranks measured; 32 ranks"
    assert note in said
    hockney = write_hockney(tmp_path / "hockney.yaml", "1us")
    advised = run(
        f"advise --params {tmp_path}/few.yaml --params {hockney} --operation allreduce --ranks 128 "
        "--bytes 64KiB --layout block:8"
    ).stdout
    assert note in advised


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "--operation bcast --ranks 64 --bytes 8",
            "found no time of the MPI default, bcast between",
        ),
        ("--operation allreduce --ranks 64", "bytes is missing"),
        ("--operation allreduce --ranks 64 --bytes 0", "found 0 bytes, wanted at least 1"),
        ("--operation allreduce --ranks 64 --bytes 8 --algorithm ring", "leave other algorithms"),
        (
            "--operation allreduce --ranks 64 --bytes 8 --algorithm library --waves 4",
            "is predicted for one wave",
        ),
        (
            "--operation allreduce --ranks 64 --bytes 8 --set L=1us",
            "model 'library' predicts the MPI default alone",
        ),
    ],
)
def test_what_cannot_be_predicted_is_refused(folder, line, message):
    assert message in refused(f"predict --params {folder}/params.yaml {line}")


def test_tables_that_do_not_fit_are_refused(folder, tmp_path):
    wanted = "`--model library` predicts the MPI default from them"
    assert wanted in refused(f"fit table {folder}/osu.csv --model hockney")
    assert "found rows of algorithms and no model" in refused(f"fit table {folder}/both.csv")
    ring = [HEADER, format_row(16, 64, "allreduce", "ring")]
    (tmp_path / "ring.csv").write_text("\n".join(ring) + "\n")
    assert "found no row of algorithm 'library'" in refused(
        f"fit table {tmp_path}/ring.csv --model library"
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("log p': {value", "log q': {value", "value 'allreduce between nodes: log q'"),
        ("unit: s/B", "unit: B", "wanted a number of at least 0 in s/B"),
        ("ranks_per_node: 8", "ranks_per_node: x", "ranks_per_node: found 'x'"),
        ("nodes: [256, ", "nodes: [x, ", "provenance.beyond: wanted three numbers"),
    ],
)
def test_a_wrong_set_is_refused(folder, tmp_path, old, new, message):
    text = (folder / "params.yaml").read_text()
    assert old in text
    (tmp_path / "wrong.yaml").write_text(text.replace(old, new, 1))
    line = "--operation allreduce --ranks 64 --bytes 8"
    assert message in refused(f"predict --params {tmp_path}/wrong.yaml {line}")


def test_a_prediction_loads_neither_scipy_nor_pandas(folder):
    program = (
        "import sys, commodel; "
        f"commodel.predict('allreduce', 512, 64, parameters={str(folder / 'params.yaml')!r}); "
        "print({'scipy', 'pandas'} & set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert said.stdout.strip() == "set()", said.stderr


@pytest.mark.parametrize(
    ("library", "note"),
    [
        ("Open MPI 4.1.6", "Open MPI 4.1.6 would run: rabenseifner"),
        (
            "Open MPI 5.0.3",
            "Open MPI 5.0.3 would run: hier:inter=rabenseifner+binomial-near:intra=",
        ),
        ("Intel MPI 2021.9", ""),
    ],
)
def test_the_algorithm_of_a_known_library_is_named(folder, tmp_path, library, note):
    header, *rows = (folder / "osu.csv").read_text().splitlines()
    table = tmp_path / "named.csv"
    table.write_text("\n".join([f"{header},setting", *(f"{row},{library}" for row in rows)]) + "\n")
    run(f"fit table {table} --out {tmp_path}/named.yaml")
    workload = "--operation allreduce --ranks 512 --bytes 64KiB --layout block:8"
    predicted = run(f"predict --params {tmp_path}/named.yaml {workload}").stdout
    hockney = write_hockney(tmp_path / "hockney.yaml", "1us")
    command = f"advise --params {tmp_path}/named.yaml --params {hockney} {workload} --verbose"
    advised = run(command).stdout
    for text in (predicted, advised):
        joined = " ".join(text.split())
        assert (note in joined) if note else ("would run" not in joined)
