"""One table, one set of values: whatever the processor's features, the order of rows and the last bit of a time."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from commodel.fits.probe_fits import as_parameters
from commodel.fits.table_fits import fit_points
from commodel.models.families import family, family_names
from commodel.models.fitting import numerics
from commodel.models.fitting.observed import DRAWS, Observed
from commodel.parameters import ParameterSet
from tests.models.synthetic import observed, truth
from tests.models.test_pointfit import machine, measured, points

HIDDEN = machine("loggp", L="10us", o_s="1.5us", o_r="2us", g="0.5us", G="8ns")
TREES = points([("bcast", "binomial")])
SAME = 1e-6


def numbers(fitted: ParameterSet) -> dict[str, tuple[float, ...]]:
    """Values, intervals, and the draws that intervals of prices come from; what varies by the last bit alone may have
    none."""
    alike = {key: DRAWS * (estimate.value,) for key, estimate in fitted.values.items()}
    return {
        key: (estimate.value, estimate.low, estimate.high, *fitted.draws.get(key, alike[key]))
        for key, estimate in fitted.values.items()
    }


def from_trees(chosen=TREES, seconds=None) -> dict[str, tuple[float, ...]]:
    """LogGP from broadcasts over trees, which tell little but L + o_s + o_r and G."""
    seconds = measured(HIDDEN, TREES) if seconds is None else seconds
    return numbers(as_parameters(family("loggp"), fit_points(family("loggp"), chosen, seconds)))


def from_probes(name, evidence=None) -> dict[str, tuple[float, ...]]:
    evidence = evidence or observed(truth(name), name, noise=0.02, samples=10)
    return numbers(as_parameters(family(name), family(name).fit(evidence)))


def fits() -> dict[str, dict[str, tuple[float, ...]]]:
    return {"trees": from_trees()} | {name: from_probes(name) for name in family_names()}


def assert_same(computed, wanted):
    assert computed.keys() == wanted.keys()
    for key, column in wanted.items():
        np.testing.assert_allclose(computed[key], column, rtol=SAME, err_msg=key)


def test_a_processor_without_its_vector_units_finds_the_same_sets():
    """OpenBLAS and numpy choose their code by what the processor can; both are told that it can little."""
    features = np._core._multiarray_umath.__cpu_features__
    dispatched = np._core._multiarray_umath.__cpu_dispatch__
    without = " ".join(name for name in dispatched if features.get(name))
    code = "import json; from tests.models.test_every_processor import fits; print(json.dumps(fits()))"
    plain = {"OPENBLAS_CORETYPE": "Prescott", "OPENBLAS_NUM_THREADS": "1", "NPY_DISABLE_CPU_FEATURES": without}
    other = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | plain, capture_output=True, text=True, check=True
    )
    other, here = json.loads(other.stdout), fits()
    assert other.keys() == here.keys()
    for name, values in here.items():
        assert_same(other[name], values)


def test_the_order_of_a_table_and_the_last_bit_of_a_time_change_no_set():
    seconds, rng = measured(HIDDEN, TREES), np.random.default_rng(5)
    order = rng.permutation(len(TREES))
    shaken = seconds * (1 + rng.choice([-1, 0, 1], len(seconds)) * np.finfo(float).eps)
    assert_same(from_trees([TREES[number] for number in order], shaken[order]), from_trees())


@pytest.mark.parametrize("name", family_names())
def test_the_last_bit_of_a_sample_changes_no_set(name):
    rng = np.random.default_rng(5)
    for noise in (0, 0.05):
        evidence = observed(truth(name), name, noise=noise, samples=10)
        probes = {
            probe: [
                replace(case, seconds=case.seconds * (1 + rng.choice([-1, 0, 1], 10) * np.finfo(float).eps))
                for case in cases
            ]
            for probe, cases in evidence.probes.items()
        }
        shaken = as_parameters(family(name), family(name).fit(Observed(probes, evidence.seed, evidence.types)))
        whole = as_parameters(family(name), family(name).fit(evidence))
        assert shaken.forms == whole.forms
        for key, estimate in whole.values.items():
            again = shaken.values[key]
            assert again.known == estimate.known, key
            ends = (again.value, again.low, again.high)
            np.testing.assert_allclose(ends, (estimate.value, estimate.low, estimate.high), rtol=SAME, err_msg=key)


def test_portable_functions_are_those_of_numpy_but_for_the_last_bits():
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(-690, 690, 1000), rng.uniform(-1, 1, 1000), 10.0 ** rng.uniform(-12, 0, 1000), [0]])
    np.testing.assert_allclose(numerics.exp(x), np.exp(x), rtol=1e-15)
    np.testing.assert_allclose(numerics.expm1(x), np.expm1(x), rtol=2e-15)
    y = np.concatenate([np.exp(x), 1 + rng.normal(0, 1e-6, 1000), 2.0 ** np.arange(-1020, 1020, 7)])
    np.testing.assert_allclose(numerics.log(y), np.log(y), rtol=1e-15)
    columns, target = rng.standard_normal((50, 5, 9)), rng.standard_normal((50, 5))
    normal = columns @ np.swapaxes(columns, 1, 2)
    np.testing.assert_allclose(numerics.products(columns), normal, rtol=1e-12, atol=1e-12)
    wanted = np.linalg.solve(normal, target[..., None])[..., 0]
    np.testing.assert_allclose(numerics.solve(normal, target), wanted, rtol=1e-9)
