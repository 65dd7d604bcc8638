"""A matrix priced in one process, in parts by hand, and in jobs of Snakemake: the same bytes."""

import subprocess
import sys

import pandas as pd
import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.files.sets import write_parameters
from tests.models.test_contract import fitted_set

MATRIX = """
platform: nowhere
matrix:
  - axes: {operation: bcast, algorithm: [linear, binomial], ranks: [4, 8, 100], bytes: [1, 1KiB, 64KiB]}
    exclude: [{where: "algorithm == 'linear' and ranks > 50"}]
    include: [{operation: bcast, algorithm: chain, ranks: 5, bytes: 1MiB}]
  - axes: {operation: reduce, topology: ["flat:5", "kary:2^3"], bytes: 1KiB}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "big.yaml").write_text(MATRIX)
    for name in ("loggp", "tan", "plogp"):
        write_parameters(tmp_path / f"{name}.yaml", fitted_set(name, noise=0.03))
    return tmp_path


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


SETS = ("--params", "loggp.yaml", "--params", "tan.yaml", "--params", "plogp.yaml")


def test_csv_and_parquet_hold_the_same(folder):
    run("price", "./big.yaml", *SETS, "--out", "a.csv")
    run("price", "./big.yaml", *SETS, "--out", "a.parquet")
    table = pd.read_parquet("a.parquet")
    assert len(table) == 3 * (5 * 3 + 1 + 2)
    pd.testing.assert_frame_equal(pd.read_csv("a.csv"), table, rtol=0, atol=0, check_dtype=False)
    assert ((table["low"] <= table["seconds"]) & (table["seconds"] <= table["high"])).all()
    assert set(table["status"][table["family"] == "tan"]) != {"ok"}


def test_parts_join_into_the_whole(folder):
    run("price", "./big.yaml", *SETS, "--out", "whole.csv")
    for number in (1, 2, 3):
        run("price", "./big.yaml", *SETS, "--part", f"{number}/3", "--out", f"{number}.parquet")
    run("join", "1.parquet", "2.parquet", "3.parquet", "--out", "joined.csv")
    assert (folder / "joined.csv").read_bytes() == (folder / "whole.csv").read_bytes()


def test_jobs_of_snakemake_give_what_one_process_does(folder):
    for suffix in ("csv", "parquet"):
        run("price", "./big.yaml", *SETS, "--out", f"whole.{suffix}")
        command = [sys.executable, "-m", "commodel", "price", "./big.yaml", *SETS, "--out", f"jobs.{suffix}"]
        done = subprocess.run([*command, "--jobs", "3"], capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (folder / f"jobs.{suffix}").read_bytes() == (folder / f"whole.{suffix}").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--out", "a.xlsx"), "wanted .parquet or .csv"),
        (("--out", "a.csv", "--part", "4/3"), "wanted 1/3 to 3/3"),
        (("--out", "a.csv", "--part", "one"), "wanted I/N"),
        (("--out", "a.csv", "--part", "1/2", "--jobs", "2"), "exclude each other"),
        (("--out", "a.csv", "--profile", "slurm"), "--profile needs --jobs"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(folder, arguments, words):
    result = run("price", "./big.yaml", *SETS, *arguments, code=2)
    assert result.stderr.count("\n") == 1
    assert words in result.stderr


def test_a_mistake_in_the_matrix_names_its_line(folder):
    (folder / "big.yaml").write_text(MATRIX.replace("flat:5", "flatt:5"))
    result = run("price", "./big.yaml", *SETS, "--out", "a.csv", code=2)
    assert "big.yaml:7" in result.stderr
    assert "did you mean 'flat'" in result.stderr


def test_what_is_no_parquet_cannot_be_joined(folder):
    result = run("join", "loggp.yaml", "--out", "a.csv", code=2)
    assert "loggp.yaml" in result.stderr
    assert result.stderr.count("\n") == 1
