"""The worked examples in docstrings."""

import doctest
from importlib import import_module

import pytest

MODULES = ("models.pricing.replay", "models.pricing.taulop_algebra", "models.fitting.saturation", "fits.table_fits")
MODULES += ("models.pricing.time_order", "fits.settings", "progress")


@pytest.mark.parametrize("name", MODULES)
def test_the_example_is_true(name):
    failed, attempted = doctest.testmod(import_module(f"commodel.{name}"))
    assert attempted
    assert not failed
