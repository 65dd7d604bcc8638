"""What every family has to do is asked of each by its name."""

import pytest

from commodel.models.families import family_names
from commodel.models.pricing import native_replay
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
        patch.setattr(native_replay, "BUILT", folder / "build" / "prices" / "libprices.so")
        native_replay.library.cache_clear()
        yield native_replay.library()
    native_replay.library.cache_clear()
