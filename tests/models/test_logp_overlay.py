"""LogP where only trees were measured: what a chain and N-to-1 tell of it prices other trees."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.fits.probe_fits import as_parameters
from commodel.fits.validity_checks import left_out
from commodel.models.families import family
from commodel.models.fitting.observed import Observed
from commodel.models.probes import Site
from commodel.predictions.predictions import predict
from tests.models.synthetic import observed, truth
from tests.patterns.catalogue import point

LEVEL, FURTHER = 100e-6, 7e-6
TIMES = {
    "pingpong": lambda case: 2 * LEVEL,
    "chain": lambda case: 2 * case["height"] * LEVEL,
    "fan": lambda case: LEVEL + (case["n"] - 1) * FURTHER,
    "wave": lambda case: 2 * (LEVEL + (case["n"] - 1) * FURTHER),
}


def measured(noise=0.0) -> Observed:
    """By the probes of TAN, which an overlay network has."""
    machine = replace(truth("tan"), times=TIMES, site=Site(1, 65, overlay=True), sizes=(1024,))
    return observed(machine, "tan", noise=noise)


def test_trees_cost_what_their_levels_and_children_do():
    fitted = as_parameters(family("logp"), family("logp").fit(measured()))
    for spec, levels, more in (("flat:40", 1, 39), ("kary:4^2", 2, 6), ("kary:2^5", 5, 5), ("chain:9", 9, 0)):
        (price,) = predict(fitted, [point("reduce", topology=spec, bytes=1024)])
        assert price.seconds == pytest.approx(levels * LEVEL + more * FURTHER), spec


def test_the_interval_holds_the_truth_and_the_set_says_what_it_cannot_know():
    fitted = as_parameters(family("logp"), family("logp").fit(measured(noise=0.02)))
    for name, value in (("L", LEVEL), ("g", FURTHER)):
        assert fitted.values[name].low <= value <= fitted.values[name].high
    assert not fitted.values["o"].known
    assert fitted.bytes_range == (0, 1024)


def test_what_was_left_out_are_trees():
    summary = left_out(family("logp"), measured())
    assert summary["cases"] == 24
    assert summary["error"] == pytest.approx(0, abs=1e-9)


def test_elsewhere_its_own_probes_count():
    machine = truth("logp")
    own = observed(machine, "logp")
    both = Observed({**own.probes, **measured().probes}, own.seed, own.types)
    for name, draws in family("logp").fit(own).values.items():
        np.testing.assert_array_equal(draws, family("logp").fit(both).values[name])
    with pytest.raises(UserError, match="no measurements of probe 'prtt'"):
        family("logp").fit(Observed({}))
