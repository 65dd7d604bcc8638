"""The overlay network, built with the sanitizers; it reads packets and topologies that a mutator
makes from a seed."""

import os
import subprocess
from functools import lru_cache
from pathlib import Path

from tests.fuzz.native import OPTIONS, folder, remove_address_limit
from tests.overlay.building import CHECKED, build

INPUTS = 300  # for each seed


@lru_cache
def program() -> Path:
    build(Path(folder().name), CHECKED, ["hostile"])
    return Path(folder().name) / "hostile"


def run_mutator(seed: int) -> None:
    """Give all inputs of a seed to the network; fail if a sanitizer reports an error."""
    settings = {"env": os.environ | OPTIONS, "timeout": 120, "preexec_fn": remove_address_limit}
    done = subprocess.run([program(), str(seed), str(INPUTS)], capture_output=True, **settings)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
