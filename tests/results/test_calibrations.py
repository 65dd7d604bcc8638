"""Calibrations of a campaign: finished ones are read as written, unfinished ones are ignored,
invalid ones refused in one line."""

import json
from dataclasses import replace

import pytest

from commodel.errors import UserError
from commodel.files.results_folder import CALIBRATION, Results
from commodel.files.safe_paths import SafePath
from commodel.results.recalibrations import (
    Calibration,
    RecordedFactor,
    RecordedFactors,
    RecordedPoint,
    read_calibrations,
    write_calibration,
)

FACTOR = RecordedFactor(2.0, 1.9, 2.1, True)
PACE = RecordedFactors(FACTOR, replace(FACTOR, known=False), False, 6, 0.01, 1.5, 1.1, 6)
POINT = RecordedPoint("bcast", "linear", "block:1", 2, 8, 1e-5, None, True)
KNOWN = Calibration(
    "rails=2", "p", "p", False, "2026-11-23T01:00:00+00:00", (POINT,), {"loggp": PACE}
)


@pytest.fixture
def results(tmp_path):
    return Results(SafePath.at(tmp_path))


def test_calibrations_are_read_back_in_order_of_date(results):
    assert read_calibrations(results) == {}
    for name, date in (("a", "2026-11-23T01"), ("b", "2026-11-22T01")):
        write_calibration(results.calibrated(name), replace(KNOWN, date=date))
    (results.calibrated("unfinished") / "loggp.yaml").mkdir()
    assert list(read_calibrations(results)) == ["b", "a"]
    assert read_calibrations(results)["a"] == replace(KNOWN, date="2026-11-23T01")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("setting", "a\nb"),
        ("platform", "../up"),
        ("date", 7),
        ("points", "none"),
        ("models", {"../x": None}),
        ("models", {"loggp": {"latency": 0}}),
    ],
)
def test_an_invalid_calibration_is_refused_with_file_and_key(results, tmp_path, key, value):
    write_calibration(results.calibrated("a"), KNOWN)
    path = tmp_path / "calibrated" / "a" / CALIBRATION
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(UserError, match=rf"{CALIBRATION}.*{key}"):
        read_calibrations(results)
