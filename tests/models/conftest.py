"""The contract of every model, by its name."""

import pytest

from commodel.models.families import family_names


@pytest.fixture(params=family_names())
def name(request):
    return request.param
