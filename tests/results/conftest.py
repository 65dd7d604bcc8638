"""Campaigns of which nothing is measured."""

import pytest

from tests.results.drivers import EXPERIMENT, make_campaign


@pytest.fixture
def campaign(tmp_path):
    return make_campaign(tmp_path, EXPERIMENT)


@pytest.fixture
def real(tmp_path):
    """On a machine that is measured: in three passes."""
    return make_campaign(tmp_path, EXPERIMENT.replace("loggp-64", "real"))
