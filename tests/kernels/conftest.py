"""Fixtures that start the native programs of the kernels."""

from tests.native.conftest import oversubscribed, real, relinked, simulated, start

__all__ = ["oversubscribed", "real", "relinked", "simulated", "start"]
