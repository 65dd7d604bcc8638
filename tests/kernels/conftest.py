"""Fixtures that start the native programs of the kernels."""

from tests.native.conftest import at_once, oversubscribed, real, relinked, simulated, start

__all__ = ["at_once", "oversubscribed", "real", "relinked", "simulated", "start"]
