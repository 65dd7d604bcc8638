"""commodel import: files of tools of which commodel_formats knows the form."""

import csv
import json
import re
from pathlib import Path

import pytest

from commodel.files.parameter_sets import read_parameters
from tests.cli.running import output, read_rows
from tests.formats.samples import NETGAUGE, NETGAUGE_FILE, TABLES

DATA = Path(__file__).parents[3] / "shared" / "data"


METROPOLIS = DATA / "taulop-metropolis"


MARENOSTRUM = DATA / "marenostrum5-collectives.csv"


def predict(file, *arguments):
    text = output(f"predict --model taulop --params {file}", *arguments, "--format", "json")
    return [row["seconds"] for row in json.loads(text)]


@pytest.fixture
def folder(tmp_path):
    for name, text in TABLES.items():
        (tmp_path / f"{name}.txt").write_text(text)
    return tmp_path


def test_a_folder_of_tables(folder, tmp_path):
    out = tmp_path / "set.yaml"
    output(f"import taulop {folder} -o {out}")
    bcast = ("--operation", "bcast", "--algorithm", "linear", "--ranks", 3, "--layout", "block:2")
    # To its neighbour 1e-6 + 2 L_0(51, 1), then over the network 2e-6 + L_1(51, 1); between rows
    # linear in m.
    per_message = predict(out, *bcast, "--bytes", 51, "--set", "shared=node")
    assert per_message == pytest.approx([1e-6 + 2 * 2e-7 + 2e-6 + 2e-6])
    # both at once, on two channels
    assert predict(out, *bcast, "--bytes", 51) == pytest.approx([2e-6 + 2e-6])
    both = (
        "--operation",
        "allreduce",
        "--algorithm",
        "recursive-doubling",
        "--ranks",
        2,
        "--layout",
        "block:2",
    )
    assert predict(out, *both, "--bytes", 54) == pytest.approx(
        [1e-6 + 2 * (2e-7 + 53 * 2e-9) + 7e-7]
    )


@pytest.mark.skipif(
    not METROPOLIS.is_dir(), reason="the measured tables are not part of the project"
)
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
    """Expected times were printed in single precision (seven digits) by an independent
    implementation, which counts messages that share a link by destination node."""
    operation, algorithm, ranks, layout, size = arguments
    output(f"import taulop {METROPOLIS} -o {tmp_path}/set.yaml")
    names = (
        "--operation",
        operation,
        "--algorithm",
        algorithm,
        "--ranks",
        ranks,
        "--layout",
        layout,
        "--bytes",
        size,
    )
    assert predict(tmp_path / "set.yaml", *names, "--set", "shared=node") == pytest.approx(
        [microseconds * 1e-6], rel=6e-8
    )


@pytest.mark.skipif(
    not MARENOSTRUM.is_file(), reason="the measured collectives are not part of the project"
)
def test_real_collectives_fit(tmp_path):
    """Every row is imported or counted as left out. The bytes of a gather are those of one
    block."""
    said = output(f"import pico {MARENOSTRUM} -o {tmp_path}/t.csv")
    count = int(said.partition(" times of ")[0].rpartition(" ")[2])
    left = int(re.search(r"left out: (\d+) rows", said)[1])
    assert count + left == len(MARENOSTRUM.read_text().splitlines()) - 1
    with (tmp_path / "t.csv").open(newline="") as stream:
        gathers = [row for row in csv.DictReader(stream) if row["operation"] == "gather"]
    assert {int(row["bytes"]) for row in gathers} == {8 * 8**power for power in range(8)}
    assert {row["layout"] for row in gathers} == {"block:1"}


@pytest.mark.parametrize("text", [NETGAUGE, NETGAUGE_FILE])
def test_loggp_parameters_of_another_tool(tmp_path, text):
    (tmp_path / "ng.log").write_text(text)
    output(f"import netgauge {tmp_path}/ng.log -o {tmp_path}/set.yaml")
    parameters = read_parameters(tmp_path / "set.yaml")
    values = {name: value.value for name, value in parameters.values.items()}
    assert values == pytest.approx(
        {"L": 2.5e-6, "o_s": 1.5e-6, "o_r": 1e-6, "g": 2.1e-6, "G": 0.5e-9}
    )
    assert "half of the smallest round trip, 5 µs, less o_s and o_r" in parameters.values["L"].note
    assert "1 of 3 rows have none, or a negative one" in parameters.values["G"].note
    assert parameters.bytes_range == (1, 2049)
    pattern = "--operation bcast --algorithm linear --ranks 2 --bytes 1"
    (prediction,) = read_rows(f"predict --model loggp --params {tmp_path}/set.yaml {pattern}")
    assert prediction["seconds"] == pytest.approx(5e-6)  # what was measured
