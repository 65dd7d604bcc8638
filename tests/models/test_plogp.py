"""Parametrised LogP where the probe of an overhead finds more than an overhead."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.fits.probe_fits import as_parameters
from commodel.models.families import family
from tests.models.synthetic import observed, truth
from tests.models.truths.plogp import o_s

MACHINE = truth("plogp")


def test_a_receiver_that_waits_is_not_busy_for_longer_than_the_gap():
    """Messages of more than 1 KiB wait for a late receiver: then even a lone one seems to take all of its time."""

    def prtt(case):
        late = case["late"] and case["bytes"] > 1024
        return MACHINE.times["prtt"](case | {"late": 0, "n": 1} if late else case)

    machine = replace(MACHINE, times=MACHINE.times | {"prtt": prtt})
    fitted = family("plogp").fit(observed(machine, "plogp"))
    for size in (4096, 16384, 65536):
        assert fitted.values[f"o_r.{size}"][0] == fitted.values[f"g.{size}"][0]
        assert "what is beyond the gap is waiting" in fitted.notes[f"o_r.{size}"]
    half = fitted.curves[0]
    assert max(abs(a / b - 1) for a, b in zip(half.fitted, half.measured, strict=True)) < 0.01


def test_what_prices_take_for_samples_that_fall_is_drawn_and_not_told_apart():
    """Overheads of 4 µs and then 0 count as 2 µs both: that is what a report has to show."""
    overheads = {1: 1e-6, 16: 1e-6, 256: 4e-6, 1024: 0.0}

    def o_r(size):
        return overheads.get(size, 5e-6)

    def prtt(case):
        return MACHINE.times["prtt"](case) if not case["late"] else o_s(case["bytes"]) + o_r(case["bytes"])

    machine = replace(MACHINE, times=MACHINE.times | {"prtt": prtt})
    parameters = as_parameters(family("plogp"), family("plogp").fit(observed(machine, "plogp")))
    drawn = next(curve for curve in parameters.curves if curve.title == "receive overhead")
    np.testing.assert_allclose(drawn.measured, [o_r(size) for size in drawn.x], rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(
        drawn.fitted, [parameters.values[f"o_r.{size:.0f}"].value for size in drawn.x], rtol=1e-9
    )
    assert drawn.r2 < 0.9
    for size, measured in ((256, "4 µs"), (1024, "0 s")):
        sample = parameters.values[f"o_r.{size}"]
        assert sample.value == pytest.approx(2e-6)
        assert not sample.known
        assert sample.note.endswith(f"measured {measured}, levelled to 2 µs")
    assert all(parameters.values[f"{name}.{size}"].known for name, size in (("o_r", 1), ("o_r", 4096), ("g", 256)))
