"""A simulator's values have no draws to keep; a set with many of them can still be read."""

from dataclasses import replace

import numpy as np

from commodel.files.parameter_sets import parameters_text, read_parameters
from commodel.files.yaml import MAX_FILE
from commodel.fit.probe_fits import as_parameters, varies
from commodel.models.families import family
from commodel.models.fitting.observed import Fitted
from commodel.models.pricing.values import Values


def test_only_values_that_vary_keep_their_draws():
    assert not varies(np.full(5, 3.0))
    assert varies(np.array([3.0, 3.0, 3.5]))
    values = {"alpha.a": np.array([1.0, 1.0, 1.0]), "beta.a": np.array([2.0, 2.5, 1.5])}
    fitted = as_parameters(family("hockney"), Fitted(values, (1, 2)))
    assert fitted.draws == {"beta.a": (2.5, 1.5)}
    drawn = Values.of(fitted, None)
    assert drawn.numbers["alpha.a"].ravel().tolist() == [1.0, 1.0, 1.0]
    assert drawn.numbers["beta.a"].ravel().tolist() == [2.0, 2.5, 1.5]


def test_a_set_with_many_draws_is_read(tmp_path):
    values = {"alpha.a": np.array([1.0, 1.5]), "beta.a": np.array([2.0, 2.5])}
    fitted = as_parameters(family("hockney"), Fitted(values, (1, 2)))
    several = replace(fitted, draws={name: tuple(np.linspace(1, 2, 60_000)) for name in fitted.draws})
    text = parameters_text(several)
    assert len(text) > MAX_FILE
    (tmp_path / "set.yaml").write_text(text)
    assert len(read_parameters(tmp_path / "set.yaml").draws["beta.a"]) == 60_000
