"""Models whose fit or prediction fails by an error of the program: the others are reported, and
this one with the reason."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.compare.comparison import list_model_failures
from commodel.errors import JOB_VARIABLE
from commodel.files.parameter_sets import read_parameters, write_parameters
from commodel.fits import probe_fits
from commodel.models.families import find_family, list_family_names
from commodel.models.fitting import observed as samples
from commodel.predictions.model import Model
from commodel.predictions.predictions import predict_all, tabulate
from commodel.records import Batch
from tests.models.synthetic import fitted_set, observed, truth
from tests.patterns.catalogue import point
from tests.planning import planned

LOG = "results/e/logs/fit.somewhere.log"
POINTS = [
    point("bcast", "binomial", ranks=4, bytes=64),
    point("gather", "linear", ranks=4, bytes=64),
]


@pytest.mark.parametrize("name", list_family_names())
def test_a_fit_that_fails_is_a_set_without_values_but_with_the_reason(
    name, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(samples, "DEFAULT_DRAWS", 2)
    monkeypatch.setenv(JOB_VARIABLE, LOG)

    def fail(observed):
        raise np.linalg.LinAlgError(f"no fit of {name}")

    parameters = fit_broken(name, fail, monkeypatch)
    reason = f"error of the program: LinAlgError: no fit of {name}; log: {LOG}"
    assert parameters.values == {}
    assert set(parameters.missing.values()) == {reason}
    assert "  Traceback (most recent call last):" in capsys.readouterr().err.splitlines()
    write_parameters(tmp_path / "set.yaml", parameters)
    again = read_parameters(tmp_path / "set.yaml")
    assert again == parameters
    rows = tabulate(predict_all(again, POINTS))
    assert list(rows["validity"]) == [f"no fit: {reason}"] * len(POINTS)
    assert rows["seconds"].isna().all()
    (failure,) = list_model_failures(rows.assign(platform="somewhere"))
    assert failure.sentence == f"No fit of {name}: {reason}."
    assert failure.is_program_error


def test_a_fit_without_numbers_is_refused(monkeypatch):
    """A file with NaN would be refused by every reader, and would end the run."""
    entry = find_family("loggp")

    def fit_without_draw(observed):
        fitted = entry.fit(observed)
        draws = fitted.values["o_s"].copy()
        draws[1] = np.nan
        return replace(fitted, values={**fitted.values, "o_s": draws})

    missing = fit_broken("loggp", fit_without_draw, monkeypatch).missing
    assert set(missing) == set(entry.by_name)
    assert "error of the program: ArithmeticError: o_s is 1.5e-06, from nan to nan" in missing["L"]


def fit_broken(name, fit, monkeypatch):
    """Return the parameter set of a model whose fit is replaced."""
    broken = replace(find_family(name), fit=fit)
    monkeypatch.setattr(probe_fits, "find_family", lambda _: broken)
    monkeypatch.setattr(
        probe_fits, "collect_observed", lambda *_: observed(truth(name), name, samples=2)
    )
    return probe_fits.fit(planned(Batch("b", "somewhere", 1, ())), None, name, "somewhere")


@pytest.mark.parametrize("name", list_family_names())
def test_a_prediction_that_fails_has_the_reason_and_others_are_predicted(name, monkeypatch):
    predict_cost = Model.cost

    def fail_at_gather(model, pattern):
        if 0 in pattern.dst:
            raise IndexError("index 3 is out of bounds")
        return predict_cost(model, pattern)

    monkeypatch.setattr(Model, "cost", fail_at_gather)
    parameters = replace(fitted_set(name), platform="somewhere")
    rows = tabulate(predict_all(parameters, POINTS))
    assert rows["seconds"].notna().tolist() == [True, False]
    reason = "error of the program: IndexError: index 3 is out of bounds"
    assert rows["validity"][1] == f"no prediction: {reason}"
    (failure,) = list_model_failures(rows.assign(platform="somewhere"))
    assert failure.sentence == f"1 prediction fails with {name}: {reason}."


def test_a_set_that_cannot_be_used_is_reported_at_every_point():
    """Without a required value, no prediction can begin."""
    parameters = fitted_set("loggp")
    values = {name: estimate for name, estimate in parameters.values.items() if name != "L"}
    rows = tabulate(predict_all(replace(parameters, values=values), POINTS))
    assert rows["seconds"].isna().all()
    assert rows["validity"].str.contains("no prediction: model loggp needs L").all()
