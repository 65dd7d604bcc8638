"""Campaigns of which nothing is measured, and one in which every stage is done."""

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
    """On a machine that is measured: in three passes."""
    return make_campaign(tmp_path, EXPERIMENT.replace("loggp-64", "real"))


@pytest.fixture(scope="session")
def original(tmp_path_factory, mpi_programs):
    """A project that somebody has sent; tests take copies."""
    root = made_once(tmp_path_factory, "received", make_received)
    return Received(root, load_plan(root / FOLDER / "plan.json").batches[0].name)
