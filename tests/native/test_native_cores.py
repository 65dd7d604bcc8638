"""Processes keep the cores that a file gives them, run as many threads, and say so; what is wrong is one line. On any
machine with two CPUs."""

import os
import subprocess

import pytest
from tests.starting import environment, mpiexec

from commodel.platforms.tools import find

CASES = "id,bytes\na,8"
QUICK = ("--max-samples", 20, "--meta")
TWO = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU")


@pytest.fixture
def kept(real, tmp_path, load_json):
    """kept(text): pingpong where its ranks keep these cores."""

    def run(text):
        (tmp_path / "cores").write_text(text)
        result = real(2, "pingpong", CASES, *QUICK, tmp_path / "meta.json", "--cores", tmp_path / "cores")
        return result, load_json(tmp_path / "meta.json")["cores"] if result.code == 0 else None

    return run


@TWO
def test_ranks_keep_their_cores(kept):
    first, second = (str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2])
    result, cores = kept("1 1\n0 1\n")
    assert result.code == 0, result.err
    assert sorted(cores) == sorted([first, second])
    assert cores[0] != cores[1]
    assert kept("0 1\n1 1\n")[1] == cores[::-1]


@TWO
def test_a_rank_keeps_several(kept):
    result, cores = kept("0 2\n0 1\n")
    assert result.code == 0, result.err
    assert cores[1].isdigit()
    assert cores[0] != cores[1]
    assert set(cores[1]) < set(cores[0])


def test_without_a_file_ranks_stay_where_they_are(real, tmp_path, load_json):
    real(2, "pingpong", CASES, *QUICK, tmp_path / "meta.json")
    assert len(load_json(tmp_path / "meta.json")["cores"]) == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("0 1\n60000 1\n", "rank 1 keeps cores 60000 to 60000 of its node, but only"),
        ("0 1\n", "cores:2: wanted the first core of rank 1 and how many it keeps"),
        ("0 x\n0 1\n", "cores:1: wanted"),
        ("0 1\n0 0\n", "cores:2: wanted"),
        ("-1 1\n0 1\n", "cores:1: wanted"),
        ("0\n0 1\n", "cores:1: wanted"),
        ("0 1\n0 1 tpu\n", "cores:2: wanted"),
        ("0 1\n0 99999999999999999999\n", "cores:2: wanted"),
    ],
)
def test_wrong_cores_are_one_line(text, complaint, kept):
    result, _ = kept(text)
    assert result.code == 2
    (line,) = result.errors
    assert complaint in line
    assert not result.files()


def test_ranks_that_nobody_tells_apart(mpi_programs, tmp_path):
    (tmp_path / "cores").write_text("0 1\n")
    (tmp_path / "cases").write_text(CASES + "\n")
    command = [mpi_programs / "pingpong", "--cases", "cases", "--out", "o", "--cores", "cores"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment())
    assert done.returncode == 2
    assert "error: what started the programs does not say which rank each is" in done.stderr


def test_threads_are_as_many_as_the_cores(mpi_programs, tmp_path):
    """Asked of the process as it runs: what OpenMP and BLAS libraries read while they are loaded."""
    (tmp_path / "read.c").write_text(
        "#define _GNU_SOURCE\n#include <stdio.h>\n#include <stdlib.h>\n"
        "__attribute__((constructor)) static void say(void) {\n"
        '  fprintf(stderr, "loaded with %s threads\\n", getenv("OMP_NUM_THREADS"));\n}\n'
    )
    library = tmp_path / "libread.so"
    subprocess.run([find("cc"), "-shared", "-fPIC", tmp_path / "read.c", "-o", library], check=True)
    (tmp_path / "cores").write_text("0 1\n0 1\n")
    (tmp_path / "cases").write_text(CASES + "\n")
    options = ["--cases", "cases", "--out", "o", "--cores", "cores", "--max-samples", "20"]
    command = [mpiexec(), "-n", "2", "env", f"LD_PRELOAD={library}", mpi_programs / "pingpong", *options]
    around = environment() | {"OMP_NUM_THREADS": "7"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=around)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("loaded with 7 threads") == 2
    assert done.stderr.count("loaded with 1 threads") == 2
