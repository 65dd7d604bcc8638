"""commodel calibrate: recalibrated sets on a machine with known factors, and one line for each
mistake.

In place of a measurement, times are predicted by a model with other parameter values.
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

CAMPAIGN_SET = make_given_set("hockney", ["alpha=10us", "beta=1ns"])
ALLOCATION_SET = make_given_set("hockney", ["alpha=20us", "beta=3ns"])
PLATFORM = ("--platform", "infiniband-64")


@pytest.fixture
def sets(tmp_path, monkeypatch):
    """Return a folder of sets; measurements return the times of ALLOCATION_SET."""
    monkeypatch.delenv(SETTING_VARIABLE, raising=False)
    for parameters in (CAMPAIGN_SET, make_given_set("pmnf", ["c0=1us"])):
        write_parameters(tmp_path / "sets" / f"{parameters.model}.yaml", parameters)

    def measure_now(name, points, platform, settings, raw, progress):
        assert {point.platform for point in points} == {platform}
        return [
            [{"seconds": row.seconds, "valid": True}] * 6 for row in predict(ALLOCATION_SET, points)
        ]

    monkeypatch.setattr(calibration, "measure_now", measure_now)
    return tmp_path / "sets"


def test_calibrate_scales_the_sets_and_records_the_factors(sets, tmp_path):
    out = tmp_path / "out"
    result = run(f"calibrate --params {sets}", *PLATFORM, "--setting", "b=2 a=1", "--out", out)
    assert result.stdout.splitlines()[3].split()[:7] == [
        "hockney",
        "2",
        "[2,",
        "2]",
        "3",
        "[3,",
        "3]",
    ]
    assert "left out: model pmnf has no latency and no time per byte" in result.stderr
    recalibrated = read_parameters(out / "hockney.yaml")
    assert recalibrated.values["alpha.a"].value == pytest.approx(20e-6)
    assert recalibrated.values["beta.a"].value == pytest.approx(3e-9)
    assert recalibrated.provenance["pace"]["setting"] == "a=1 b=2"
    assert (recalibrated.platform, recalibrated.simulated) == ("infiniband-64", True)
    assert sorted(path.name for path in out.iterdir()) == ["calibration.json", "hockney.yaml"]
    record = json.loads((out / "calibration.json").read_text())
    assert (record["setting"], record["measured_on"], record["simulated"]) == (
        "a=1 b=2",
        "infiniband-64",
        True,
    )
    assert [point["used"] for point in record["points"]] == [True] * 6 + [False] * 4
    assert record["models"]["hockney"]["after"] == pytest.approx(1)


@pytest.mark.parametrize(("nodes", "ranks"), [(2, 2), (4, 4), (100, 8)])
def test_calibrate_measures_no_point_on_more_nodes_than_requested(sets, tmp_path, nodes, ranks):
    """Held-out points have eight ranks if there are enough nodes; the platform has 64 nodes."""
    run(f"calibrate --params {sets} --nodes {nodes}", *PLATFORM, "--out", tmp_path / "out")
    points = json.loads((tmp_path / "out" / "calibration.json").read_text())["points"]
    assert max(point["ranks"] for point in points) == ranks


@pytest.mark.parametrize("style", ["csv", "json"])
def test_csv_and_json_have_factors_in_columns(sets, tmp_path, style):
    text = run(
        f"calibrate --params {sets}", *PLATFORM, "--format", style, "--out", tmp_path / "out"
    ).stdout
    (row,) = json.loads(text) if style == "json" else csv.DictReader(io.StringIO(text))
    assert float(row["latency_value"]) == pytest.approx(2)
    assert float(row["per_byte_low"]) <= 3 <= float(row["per_byte_high"])
    assert float(row["before"]) > float(row["after"])


def test_calibrate_reads_the_setting_from_the_environment(sets, tmp_path, monkeypatch):
    monkeypatch.setenv(SETTING_VARIABLE, "friday")
    run(f"calibrate --params {sets}", *PLATFORM, "--out", tmp_path / "out")
    assert json.loads((tmp_path / "out" / "calibration.json").read_text())["setting"] == "friday"
    monkeypatch.setenv(SETTING_VARIABLE, "a=1 a=2")
    assert (
        f"{SETTING_VARIABLE}: found 'a' twice"
        in run(f"calibrate --params {sets}", *PLATFORM, code=2).stderr
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --experiment or --platform of a run, or --params"),
        (["--params", "SETS"], "--platform is missing"),
        (["--params", "SETS", "--experiment", "sample"], "give --params or --experiment"),
        (["--params", "SETS", "--platform", "infiniband"], "infiniband-64"),
        (["--params", "SETS", *PLATFORM, "--points", "1"], "1 is not in the range"),
        (["--params", "SETS", *PLATFORM, "--setting", "x" * 81], "--setting: found"),
    ],
)
def test_calibrate_refuses_wrong_options_in_one_line(sets, arguments, message):
    result = run(
        "calibrate", *(sets if argument == "SETS" else argument for argument in arguments), code=2
    )
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
