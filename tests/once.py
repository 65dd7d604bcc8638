"""Fixtures that are slow to make, made once a session for all workers of pytest."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return the folder `name`, which all workers share. The first worker that needs the folder
    fills it; the others wait."""
    base = factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with (shared.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = shared.parent / f"{name}.done"
        if not done.exists():
            shared.mkdir()
            make(shared)
            done.touch()
    return shared
