"""What the error of cases left out is made of. That families predict such cases is in their contract."""

import pytest

from commodel.fit import validity_checks
from commodel.models.families import family
from commodel.models.fitting.observed import Observed


def test_the_error_is_the_root_mean_square_of_relative_errors(monkeypatch):
    """Of 10 % too much and 30 % too little. What took no time has no relative error."""
    monkeypatch.setattr(validity_checks, "_predicted", lambda entry, observed: [(1.1, 1.0), (1.4, 2.0), (1.0, 0.0)])
    assert validity_checks.left_out(family("hockney"), Observed({})) == {"error": pytest.approx(0.05**0.5), "cases": 2}


def test_without_a_case_there_is_no_error():
    assert validity_checks.left_out(family("pram"), Observed({})) == {}
