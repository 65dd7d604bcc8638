"""How programs are started on a platform. A launcher is a pure function from a job to an argv list."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from commodel.config import Platform
from commodel.errors import UserError
from commodel.registry import lookup
from commodel.units import shown


def remote_agent() -> str:
    """The program that COMMODEL_AGENT names; empty: none. A word, because MPIs cut it at blanks and take what follows a
    colon or a comma for another program."""
    named = os.environ.get("COMMODEL_AGENT", "")
    if not re.fullmatch(r"([\w./+][\w./+-]*)?", named):
        raise UserError(f"COMMODEL_AGENT: found {shown(named)}, wanted a program or its path, without arguments")
    return os.path.abspath(named) if "/" in named else named


@dataclass(frozen=True)
class Job:
    """One start of a native program: which, with what, on how many ranks, and where each of them sits."""

    platform: Platform
    starter: str  # mpiexec, smpirun, srun or mpirun, as found
    program: str
    arguments: tuple[str, ...]
    nodes: tuple[int, ...]  # node of every rank
    layout: str  # the spec that `nodes` follows, e.g. block:2
    hostfile: Path  # where the launcher's hostfile is, if it has one
    network: Path | None = None  # of a simulated platform
    agent: str = field(default_factory=remote_agent)  # used in place of ssh; empty: ssh itself

    @property
    def ranks(self) -> int:
        return len(self.nodes)

    @property
    def command(self) -> list[str]:
        return [self.program, *self.arguments]


@dataclass(frozen=True)
class Launcher:
    name: str
    title: str
    starters: tuple[str, ...]  # programs that can start it, in order of preference
    toolchain: str  # mpi or smpi: which build of the native programs it runs
    argv: Callable[[Job], list[str]]
    hosts: Callable[[Job], str] | None = None  # the text of the hostfile
    layouts: tuple[str, ...] = ()  # that it can place; empty: any, rank by rank
    simulated: bool = False
    busy: bool = True  # its ranks keep this machine's cores busy: nothing else may run beside it


def launcher(name: str) -> Launcher:
    return lookup("launchers", "LAUNCHER", name)
