"""The fixtures that start the native programs."""

from tests.native.conftest import (
    at_once,
    oversubscribed,
    real,
    relinked,
    simulated,
    start,
    write_schedule,
)

__all__ = ["at_once", "oversubscribed", "real", "relinked", "simulated", "start", "write_schedule"]
