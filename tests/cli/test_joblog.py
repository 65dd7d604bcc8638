"""A job of Snakemake says on the terminal what any verb does, and its log has the same, word for word."""

import io
import os
import subprocess
import sys

import pytest

from commodel.cli._output import Doubled

MISTAKE = "commodel: --part: found 'half', wanted I/N, such as 3/16\n"
PRICE = ("price", "e.yaml", "--params", "p.yaml", "--out", "o.parquet", "--part", "half")


@pytest.fixture
def job(tmp_path):
    (tmp_path / "logs").mkdir()

    def call(*arguments: str) -> subprocess.CompletedProcess:
        environment = os.environ | {"COMMODEL_JOB": "logs/price.log"}
        command = [sys.executable, "-m", "commodel", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return call


def test_a_mistake_stands_in_both_below_what_the_log_has(job, tmp_path):
    (tmp_path / "logs/price.log").write_text("before\n")
    done = job(*PRICE)
    assert (done.returncode, done.stderr) == (2, MISTAKE)
    assert (tmp_path / "logs/price.log").read_text() == "before\n" + MISTAKE


def test_so_does_what_goes_well(job, tmp_path):
    done = job("operations", "--format", "csv")
    assert done.returncode == 0
    assert done.stdout.startswith("operation,")
    assert (tmp_path / "logs/price.log").read_text() == done.stdout


@pytest.mark.parametrize("where", ["logs", "logs/price.log"])
def test_no_link_is_followed(job, tmp_path, where):
    (tmp_path / "away/logs").mkdir(parents=True)
    (tmp_path / "away/logs/price.log").write_text("precious")
    if where == "logs":
        (tmp_path / where).rmdir()
    (tmp_path / where).symlink_to(tmp_path / "away" / where)
    done = job(*PRICE)
    assert done.returncode == 2
    assert done.stderr.startswith(f"commodel: {where}: found a link, wanted a f")
    assert done.stderr.count("\n") == 1
    assert (tmp_path / "away/logs/price.log").read_text() == "precious"


def test_where_the_disk_is_full_the_terminal_has_it_all():
    screen = io.StringIO()
    with open("/dev/full", "wb", buffering=0) as full:
        print("a µs", file=Doubled(screen, full))
    assert screen.getvalue() == "a µs\n"
