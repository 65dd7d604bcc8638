"""Start programs on ranks of this machine in tests, as the local launcher does."""

import os

from commodel.platforms.build import find_starter
from commodel.platforms.launchers import LAUNCHERS

LOCAL = LAUNCHERS["local"]


def mpiexec() -> str:
    return find_starter(LOCAL.toolchain, LOCAL.starters)


def environment() -> dict[str, str]:
    return {**LOCAL.settings(os.geteuid()), **os.environ}
