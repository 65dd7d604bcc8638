"""The normal form: the hypothesis is found, prices never fall, and only ranks and the largest message count."""

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.fits.probe_fits import as_parameters
from commodel.fits.table_fits import fit_measured
from commodel.models.families import family
from commodel.patterns.build import schedule
from commodel.patterns.schedule import Schedule
from tests.models.synthetic import costs, observed, truth
from tests.patterns.catalogue import point

PMNF = family("pmnf")


def grid(time, noise=0.0, seed=1):
    """Patterns over all pairs of ranks and sizes, and what a law says of them."""
    chosen = [
        point("bcast", "binomial", ranks=ranks, bytes=size)
        for ranks in (2, 4, 8, 16, 32, 64)
        for size in (1, 64, 4096, 65536)
    ]
    seconds = np.array([time(entry.ranks, entry.bytes) for entry in chosen])
    return chosen, seconds * np.exp(noise * np.random.default_rng(seed).standard_normal(len(chosen)))


@pytest.mark.parametrize(
    ("law", "terms"),
    [
        (lambda p, m: 5e-6, []),
        (lambda p, m: 5e-6 + 2e-6 * np.log2(p), [(0, 1, 0)]),
        (lambda p, m: 5e-6 + 2e-6 * p + 1e-9 * m, [(1, 0, 0), (0, 0, 1)]),
        (lambda p, m: 5e-6 * np.log2(p) + 1e-9 * m * np.log2(p), [(0, 1, 0), (0, 1, 1)]),
        (lambda p, m: 3e-6 + 1e-7 * p**1.5, [(1.5, 0, 0)]),
    ],
)
@pytest.mark.parametrize("noise", [0, 0.01])
def test_the_law_is_found_again(law, terms, noise):
    values = fit_measured(*grid(law, noise), "pmnf", "t.csv").values
    exponents = [tuple(values[f"{letter}{number}"].value for letter in "ijk") for number in (1, 2)]
    coefficients = [values[f"c{number}"].value for number in (1, 2)]
    assert [term for term, share in zip(exponents, coefficients, strict=True) if share > 0] == terms


def test_no_coefficient_is_below_0_even_where_times_fall():
    chosen, seconds = grid(lambda p, m: 1e-5 / p + 1e-10 * m, noise=0.02)
    parameters = fit_measured(chosen, seconds, "pmnf", "t.csv")
    for key in ("c0", "c1", "c2"):
        assert min(parameters.draws.get(key, [parameters.values[key].value])) >= 0


def test_only_ranks_and_the_largest_message_are_seen():
    parameters = as_parameters(PMNF, PMNF.fit(observed(truth("pmnf"), "pmnf")))
    binomial, ring = (
        schedule(point(*name, ranks=8, bytes=4096)) for name in (("bcast", "binomial"), ("gather", "linear"))
    )
    assert costs(PMNF, binomial, parameters, drawn=False) == costs(PMNF, ring, parameters, drawn=False)
    uneven = Schedule.of(8, [0, 1], [0, 1], [1, 2], [4096, 1])
    assert costs(PMNF, uneven, parameters, drawn=False) == costs(PMNF, ring, parameters, drawn=False)


def test_what_the_probes_cannot_tell_apart_is_said():
    parameters = as_parameters(PMNF, PMNF.fit(observed(truth("pmnf"), "pmnf")))
    assert (parameters.values["i1"].value, parameters.values["k1"].value) == (1, 0)
    assert (parameters.values["i2"].value, parameters.values["k2"].value) == (0, 1)
    assert "cannot tell" in parameters.values["c1"].note


def test_exponents_are_the_same_in_all_draws():
    parameters = as_parameters(PMNF, PMNF.fit(observed(truth("pmnf"), "pmnf", noise=0.05)))
    assert not parameters.draws.keys() & {f"{letter}{number}" for letter in "ijk" for number in (1, 2)}


def test_two_observations_are_too_few():
    chosen, seconds = grid(lambda p, m: 1.0)
    with pytest.raises(UserError, match=r"found 2 observation\(s\), wanted at least 3"):
        fit_measured(chosen[:2], seconds[:2], "pmnf", "t.csv")
