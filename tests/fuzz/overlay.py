"""The overlay network, built with the sanitizers, and fed packets and topologies that a mutator makes of a seed."""

import os
import subprocess
from functools import lru_cache
from pathlib import Path

from tests.fuzz.native import OPTIONS, all_addresses, folder
from tests.overlay.building import CHECKED, build

INPUTS = 300  # of a seed


@lru_cache
def program() -> Path:
    build(Path(folder().name), CHECKED, ["hostile"])
    return Path(folder().name) / "hostile"


def feed(seed: int) -> None:
    """Whatever arrives is read or refused; a sanitizer's report is neither."""
    settings = {"env": os.environ | OPTIONS, "timeout": 120, "preexec_fn": all_addresses}
    done = subprocess.run([program(), str(seed), str(INPUTS)], capture_output=True, **settings)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
