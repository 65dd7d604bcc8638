"""Fixtures that are slow to make, made once a session for all of pytest's workers."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder `name` that all workers share, filled by the first that needs it; the others wait for it."""
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
