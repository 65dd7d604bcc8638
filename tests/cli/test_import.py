"""Files of other tools, through the command a user would type."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from commodel.cli import main

METROPOLIS = Path(__file__).parents[3] / "shared" / "data" / "taulop-metropolis"

SHM = "#m\t2\n#tau\t2\n#m\to(m)\tL(m, 1)\tL(m, 2)\n1\t1e-6\t1e-7\t2e-7\n101\t1e-6\t3e-7\t4e-7\n"
IB = "#m\to(m)\tL(m, 1)\tL(m, 2)\n1\t2e-6\t1e-6\t1.5e-6\n101\t2e-6\t3e-6\t5e-6\n"
GAMMA = "#size\tMAX_I\tSUM_I\n4\t1e-7\t2e-7\n104\t1e-7\t12e-7\n"


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


def price(file, *arguments):
    text = run("predict", "--family", "taulop", "--params", file, *arguments, "--format", "json")
    return [found["seconds"] for found in json.loads(text)]


@pytest.fixture
def folder(tmp_path):
    for name, text in {"SHM": SHM, "IB": IB, "gamma": GAMMA}.items():
        (tmp_path / f"{name}.txt").write_text(text)
    return tmp_path


def test_a_folder_of_tables(folder, tmp_path):
    out = tmp_path / "set.yaml"
    run("import", "taulop", folder, "-o", out)
    bcast = ("--operation", "bcast", "--algorithm", "linear", "--ranks", 3, "--layout", "block:2")
    # To its neighbour 1e-6 + 2 L_0(51, 1), then over the network 2e-6 + L_1(51, 1); between rows linear in m.
    assert price(out, *bcast, "--bytes", 51) == pytest.approx([1e-6 + 2 * 2e-7 + 2e-6 + 2e-6])
    both = ("--operation", "allreduce", "--algorithm", "recursive-doubling", "--ranks", 2, "--layout", "block:2")
    assert price(out, *both, "--bytes", 54) == pytest.approx([1e-6 + 2 * (2e-7 + 53 * 2e-9) + 7e-7])


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("IB", IB + "201\t2e-6\t5e-6\n", "IB.txt:4: found 2 numbers, wanted 3"),
        ("IB", IB + "201 2e-6 x 1\n", "IB.txt:4: found '201 2e-6 x 1', wanted numbers only"),
        ("IB", "#m\n", "IB.txt: found no row of numbers"),
        ("gamma", "#size MAX_I\n4 1e-7\n", "gamma.txt: found no column SUM_I"),
    ],
)
def test_a_damaged_table_is_named_with_its_line(folder, tmp_path, name, text, said):
    (folder / f"{name}.txt").write_text(text)
    output = run("import", "taulop", folder, "-o", tmp_path / "set.yaml", code=2)
    assert said in output
    assert not (tmp_path / "set.yaml").exists()


def test_what_is_not_there(tmp_path):
    assert "wanted SHM.txt" in run("import", "taulop", tmp_path, "-o", tmp_path / "x.yaml", code=2)
    assert "wanted a folder" in run("import", "taulop", tmp_path / "none", "-o", tmp_path / "x.yaml", code=2)


@pytest.mark.skipif(not METROPOLIS.is_dir(), reason="the measured tables are not part of the project")
@pytest.mark.parametrize(
    ("arguments", "microseconds"),
    [
        (("bcast", "binomial", 16, "block:2", 1), 11.351550),
        (("bcast", "binomial", 16, "block:2", 64), 12.292050),
        (("bcast", "binomial", 16, "block:2", 65536), 117.356448),
        (("bcast", "binomial", 16, "block:2", 1048576), 1243.631723),
        (("bcast", "binomial-near", 16, "block:2", 64), 12.611400),
        (("bcast", "linear", 16, "block:2", 64), 51.707800),
        (("bcast", "linear", 16, "block:2", 1024), 80.105850),
        (("bcast", "linear", 16, "block:2", 65536), 485.812988),
        (("allreduce", "recursive-doubling", 8, "block:8", 4096), 45.109199),
        (("allreduce", "recursive-doubling", 16, "block:8", 4096), 62.279048),
    ],
)
def test_a_real_cluster(tmp_path, arguments, microseconds):
    """Printed by an independent implementation in single precision: seven digits."""
    operation, algorithm, ranks, layout, size = arguments
    run("import", "taulop", METROPOLIS, "-o", tmp_path / "set.yaml")
    names = ("--operation", operation, "--algorithm", algorithm, "--ranks", ranks, "--layout", layout, "--bytes", size)
    assert price(tmp_path / "set.yaml", *names) == pytest.approx([microseconds * 1e-6], rel=6e-8)
