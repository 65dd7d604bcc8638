"""What every family has to do is asked of each by its name."""

import pytest

from commodel.models.families import family_names
from commodel.models.pricing import compiled
from commodel.platforms.build import build
from tests.once import made_once


@pytest.fixture(params=family_names())
def name(request):
    return request.param


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """What prices in the order of time, compiled."""
    folder = made_once(tmp_path_factory, "prices", lambda folder: build(folder, "prices"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "BUILT", folder / "build" / "prices" / "libprices.so")
        compiled.library.cache_clear()
        yield compiled.library()
    compiled.library.cache_clear()
