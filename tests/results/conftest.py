"""Campaigns without measurements, and one whose stages are all done."""

import pytest

from commodel.plan.planning import load_plan
from tests.once import made_once
from tests.results.drivers import EXPERIMENT, make_campaign
from tests.results.received import FOLDER, Received, make_received


@pytest.fixture
def campaign(tmp_path):
    return make_campaign(tmp_path, EXPERIMENT)


@pytest.fixture
def real(tmp_path):
    """Return a campaign on a real platform, in three passes."""
    return make_campaign(tmp_path, EXPERIMENT.replace("loggp-64", "real"))


@pytest.fixture(scope="session")
def original(tmp_path_factory, mpi_programs):
    """Return a received project; tests make copies of it."""
    root = made_once(tmp_path_factory, "received", make_received)
    return Received(root, load_plan(root / FOLDER / "plan.json").batches[0].name)
