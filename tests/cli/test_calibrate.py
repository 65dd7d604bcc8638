"""commodel calibrate: from sets to moved sets on a machine of known factors, and every mistake one line.

The machine is a family with values of its own in place of the player; what is measured is otherwise what users get.
"""

import csv
import io
import json

import pytest

from commodel.api import calibration
from commodel.files.parameter_sets import read_parameters, write_parameters
from commodel.files.quantities import SETTING_VARIABLE
from commodel.models.parameter_sets import make_given_set
from commodel.predictions.predictions import predict
from tests.cli.running import run

KNOWN = make_given_set("hockney", ["alpha=10us", "beta=1ns"])
JOB = make_given_set("hockney", ["alpha=20us", "beta=3ns"])
PLATFORM = ("--platform", "infiniband-64")


@pytest.fixture
def sets(tmp_path, monkeypatch):
    """A folder of sets, and a machine that is JOB."""
    monkeypatch.delenv(SETTING_VARIABLE, raising=False)
    for parameters in (KNOWN, make_given_set("pmnf", ["c0=1us"])):
        write_parameters(tmp_path / "sets" / f"{parameters.family}.yaml", parameters)

    def measure_now(name, points, platform, settings, raw, progress):
        assert {point.platform for point in points} == {platform}
        return [[{"seconds": row.seconds, "valid": True}] * 6 for row in predict(JOB, points)]

    monkeypatch.setattr(calibration, "measure_now", measure_now)
    return tmp_path / "sets"


def test_sets_are_moved_to_the_job_and_are_marked(sets, tmp_path):
    out = tmp_path / "out"
    said = run(f"calibrate --params {sets}", *PLATFORM, "--setting", "b=2 a=1", "--out", out)
    assert said.stdout.splitlines()[3].split()[:7] == ["hockney", "2", "[2,", "2]", "3", "[3,", "3]"]
    assert "left out: family pmnf has no latency and no time per byte" in said.stderr
    moved = read_parameters(out / "hockney.yaml")
    assert moved.values["alpha.a"].value == pytest.approx(20e-6)
    assert moved.values["beta.a"].value == pytest.approx(3e-9)
    assert moved.provenance["pace"]["setting"] == "a=1 b=2"
    assert (moved.platform, moved.simulated) == ("infiniband-64", True)  # which is simulated
    assert sorted(path.name for path in out.iterdir()) == ["calibration.json", "hockney.yaml"]
    noted = json.loads((out / "calibration.json").read_text())
    assert (noted["setting"], noted["measured_on"], noted["simulated"]) == ("a=1 b=2", "infiniband-64", True)
    assert [point["used"] for point in noted["points"]] == [True] * 6 + [False] * 4
    assert noted["families"]["hockney"]["after"] == pytest.approx(1)


@pytest.mark.parametrize(("nodes", "ranks"), [(2, 2), (4, 4), (100, 8)])
def test_no_point_needs_more_nodes_than_requested(sets, tmp_path, nodes, ranks):
    """Points kept aside would be of eight ranks; the platform has 64 nodes."""
    run(f"calibrate --params {sets} --nodes {nodes}", *PLATFORM, "--out", tmp_path / "out")
    points = json.loads((tmp_path / "out" / "calibration.json").read_text())["points"]
    assert max(point["ranks"] for point in points) == ranks


@pytest.mark.parametrize("style", ["csv", "json"])
def test_for_programs_numbers_in_columns(sets, tmp_path, style):
    text = run(f"calibrate --params {sets}", *PLATFORM, "--format", style, "--out", tmp_path / "out").stdout
    (row,) = json.loads(text) if style == "json" else csv.DictReader(io.StringIO(text))
    assert float(row["latency_value"]) == pytest.approx(2)
    assert float(row["per_byte_low"]) <= 3 <= float(row["per_byte_high"])
    assert float(row["before"]) > float(row["after"])


def test_a_job_states_its_setting_in_the_environment(sets, tmp_path, monkeypatch):
    monkeypatch.setenv(SETTING_VARIABLE, "friday")
    run(f"calibrate --params {sets}", *PLATFORM, "--out", tmp_path / "out")
    assert json.loads((tmp_path / "out" / "calibration.json").read_text())["setting"] == "friday"
    monkeypatch.setenv(SETTING_VARIABLE, "a=1 a=2")
    assert f"{SETTING_VARIABLE}: found 'a' twice" in run(f"calibrate --params {sets}", *PLATFORM, code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give --experiment or --platform of a run, or --params"),
        (["--params", "SETS"], "--platform is missing"),
        (["--params", "SETS", "--experiment", "sample"], "give --params or --experiment"),
        (["--params", "SETS", "--platform", "local-overlay"], "an overlay network: only MPI is calibrated"),
        (["--params", "SETS", "--platform", "infiniband"], "infiniband-64"),
        (["--params", "SETS", *PLATFORM, "--points", "1"], "1 is not in the range"),
        (["--params", "SETS", *PLATFORM, "--setting", "x" * 81], "--setting: found"),
    ],
)
def test_a_mistake_is_one_line(sets, arguments, words):
    said = run("calibrate", *(sets if argument == "SETS" else argument for argument in arguments), code=2)
    assert words in said.stderr
    assert len(said.stderr.splitlines()) == 1
