"""What every family has to do is asked of each by its name."""

import pytest

from commodel.models.families import family_names


@pytest.fixture(params=family_names())
def name(request):
    return request.param
