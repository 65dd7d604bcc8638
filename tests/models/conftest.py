"""Parametrize the contract tests by the name of the model."""

import pytest

from commodel.models.families import list_family_names


@pytest.fixture(params=list_family_names())
def name(request):
    return request.param
