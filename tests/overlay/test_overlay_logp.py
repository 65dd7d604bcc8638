"""LogP fitted to trees of an overlay network, which has no probe that separates L and o."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.fits.probe_fits import make_parameter_set
from commodel.fits.validity_checks import measure_left_out_error
from commodel.models.families import find_family
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
    """Return samples of TAN's probes on an overlay network."""
    machine = replace(
        truth("tan"), times=TIMES, site=Site(1, 65, substrate="overlay"), sizes=(1024,)
    )
    return observed(machine, "tan", noise=noise)


def test_predictions_of_trees_add_the_costs_of_levels_and_further_children():
    fitted = make_parameter_set(find_family("logp"), find_family("logp").fit(measured()))
    for spec, levels, more in (
        ("flat:40", 1, 39),
        ("kary:4^2", 2, 6),
        ("kary:2^5", 5, 5),
        ("chain:9", 9, 0),
    ):
        (prediction,) = predict(fitted, [point("reduce", topology=spec, bytes=1024)])
        assert prediction.seconds == pytest.approx(levels * LEVEL + more * FURTHER), spec


def test_intervals_from_trees_cover_true_l_and_g_and_o_is_marked_undetermined():
    fitted = make_parameter_set(find_family("logp"), find_family("logp").fit(measured(noise=0.02)))
    for name, value in (("L", LEVEL), ("g", FURTHER)):
        assert fitted.values[name].low <= value <= fitted.values[name].high
    assert not fitted.values["o"].known
    assert fitted.bytes_range == (0, 1024)


def test_the_left_out_error_of_exact_tree_times_is_zero():
    summary = measure_left_out_error(find_family("logp"), measured())
    assert summary["cases"] == 24
    assert summary["error"] == pytest.approx(0, abs=1e-9)


def test_probes_of_the_logp_model_take_precedence_over_trees():
    machine = truth("logp")
    own = observed(machine, "logp")
    both = Observed({**own.probes, **measured().probes}, own.seed, own.types)
    for name, draws in find_family("logp").fit(own).values.items():
        np.testing.assert_array_equal(draws, find_family("logp").fit(both).values[name])
    with pytest.raises(UserError, match="no measurements of probe 'prtt'"):
        find_family("logp").fit(Observed({}))
