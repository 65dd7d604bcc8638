"""A slice of `make fuzz` that takes about 20 seconds, from one seed."""

import os

import pytest

from tests.fuzz.session import fuzz
from tests.fuzz.targets import TARGETS

SECONDS = float(os.environ.get("FUZZ_SECONDS", "20"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))


@pytest.mark.parametrize("name", TARGETS)
def test_hostile_input_ends_in_a_value_or_in_one_line(name):
    assert fuzz(TARGETS[name], SECONDS / len(TARGETS), SEED) > 0
