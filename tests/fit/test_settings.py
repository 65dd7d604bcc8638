"""A table of several settings: the fit is of one, the others get their factors, and bands hold what they were off."""

from functools import partial

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.files.parameter_sets import read_parameters
from commodel.fit.measured_tables import Measured
from commodel.fit.settings import PACES, SETTING, fit_in_settings, paces_in_words
from commodel.models.parameter_sets import set_given
from commodel.price.predictions import predict
from commodel.price.recalibration import from_json
from tests.cli import running
from tests.models.exact import moved
from tests.patterns.catalogue import point

TRUTH = set_given("hockney", ["alpha=10us", "beta=1ns"])
POINTS = [
    point(operation, choice, ranks=ranks, bytes=size)
    for operation, choice in (("bcast", "linear"), ("bcast", "binomial"), ("allgather", "ring"))
    for ranks in (2, 4, 8)
    for size in (8, 1 << 12, 1 << 18)
]
FACTORS = {"friday": (2.0, 0.5), "sunday": (1.0, 3.0)}


def times(latency, per_byte, points=POINTS):
    return [row.seconds for row in predict(moved(TRUTH, latency, per_byte), points)]


@pytest.fixture(scope="module")
def table():
    """Monday has all points, the others each a part of them; friday two that monday lacks."""
    parts = {"monday": POINTS[2:], "friday": POINTS[:14], "sunday": POINTS[9:23]}
    rows = [
        (entry, seconds, name)
        for name, points in parts.items()
        for entry, seconds in zip(points, times(*FACTORS.get(name, (1.0, 1.0)), points), strict=True)
    ]
    points, seconds, settings = (list(column) for column in zip(*rows, strict=True))
    return Measured(points, seconds, 0, settings=settings)


@pytest.fixture(scope="module")
def fitted(table):
    return fit_in_settings(table, "hockney", "a table")


def test_the_fit_is_of_the_setting_with_most_points_alone(fitted):
    assert fitted.provenance[SETTING] == "monday"
    assert fitted.values["alpha.a"].value == pytest.approx(10e-6, rel=1e-3)
    assert fitted.values["beta.a"].value == pytest.approx(1e-9, rel=1e-3)


def test_every_other_setting_has_its_factors(fitted):
    paces = {entry["setting"]: from_json(entry) for entry in fitted.provenance[PACES]}
    assert set(paces) == set(FACTORS)
    for name, (latency, per_byte) in FACTORS.items():
        assert paces[name].latency.value == pytest.approx(latency, rel=1e-3)
        assert paces[name].per_byte.value == pytest.approx(per_byte, rel=1e-3)
        assert paces[name].points == 14
    assert [line.partition(":")[0] for line in paces_in_words(fitted)] == [
        f"setting '{name}' against setting 'monday'" for name in FACTORS
    ]


def test_bands_hold_what_other_settings_were_off(fitted):
    """With monday's prices sunday's long messages take three times as long."""
    (price,) = predict(fitted, [point("bcast", "linear", ranks=2, bytes=1 << 18)])
    assert price.low <= times(1.0, 3.0, [price.point])[0] <= price.high
    assert price.interval.startswith("at least: 3 allocations")
    (alone,) = predict(fit_in_settings(table_of("monday"), "hockney", ""), [price.point])
    assert alone.high < 1.5 * alone.seconds
    assert alone.interval.startswith("at least: 1 allocation,")


def table_of(name):
    points = POINTS[2:]
    return Measured(points, times(*FACTORS.get(name, (1.0, 1.0)), points), 0, settings=[name] * len(points))


def test_another_setting_may_be_asked_for(table):
    sunday = fit_in_settings(table, "hockney", "", "sunday")
    assert sunday.values["beta.a"].value == pytest.approx(3e-9, rel=1e-3)
    monday = {entry["setting"]: entry for entry in sunday.provenance[PACES]}["monday"]
    assert monday["per_byte"]["value"] == pytest.approx(1 / 3, rel=1e-3)
    with pytest.raises(UserError, match="found no point of setting 'sunnday'"):
        fit_in_settings(table, "hockney", "", "sunnday")


def test_on_the_screen_and_in_the_file(tmp_path, table):
    rows = [
        f"{entry.operation},{entry.choice},{entry.ranks},{entry.bytes},{seconds!r},{setting}"
        for entry, seconds, setting in zip(table.points, table.seconds, table.settings, strict=True)
    ]
    path, out = tmp_path / "points.csv", tmp_path / "hockney.yaml"
    path.write_text("\n".join(["operation,algorithm,ranks,bytes,seconds,setting", *rows]) + "\n")
    run = partial(running.run, "fit")
    done = run("--points", path, "--family", "hockney", "--out", out)
    assert "hockney: setting 'sunday' against setting 'monday': latency × 1 [" in done.stderr
    assert "not explained" not in done.stderr
    assert read_parameters(out).provenance[PACES][0]["setting"] == "friday"
    held = run("--points", path, "--family", "hockney", "--hold-out", "setting != 'monday'", "--format", "json")
    assert '"points": 5' in held.stdout
    assert "needs --points" in run("--family", "hockney", "--setting", "x", "--out", out, code=2).output


def test_of_one_setting_nothing_changes():
    plain = fit_in_settings(Measured(POINTS, times(1.0, 1.0), 0), "hockney", "")
    assert SETTING not in plain.provenance
    assert not list(paces_in_words(plain))
    assert np.isclose(plain.values["alpha.a"].value, 10e-6)
