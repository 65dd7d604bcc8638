"""Fixtures that start the native programs of the kernels, the project of a campaign, and the
comparison of a study."""

from tests.native.conftest import at_once, oversubscribed, real, relinked, simulated, start
from tests.reports.conftest import comparison, fewer, small
from tests.workflow.conftest import project

__all__ = [
    "at_once",
    "comparison",
    "fewer",
    "oversubscribed",
    "project",
    "real",
    "relinked",
    "simulated",
    "small",
    "start",
]
