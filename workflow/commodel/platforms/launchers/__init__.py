"""How programs are started on a platform. A launcher is a pure function from a job to an argv list."""

import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from commodel.errors import UserError
from commodel.hierarchy import Hierarchy
from commodel.platforms.platform import Platform
from commodel.registry import lookup


@dataclass(frozen=True)
class Job:
    """One start of a native program: which, with what, on how many ranks, and where each of them sits."""

    platform: Platform
    starter: str  # mpiexec, smpirun, srun or mpirun, as found
    program: str
    arguments: tuple[str, ...]
    nodes: tuple[int, ...]  # node of every rank
    hostfile: Path  # where it is, for a launcher that reads one
    names: tuple[str, ...] = ()  # what the platform's nodes are called, in its order; empty: not known before they run
    kept: tuple[int, ...] = ()  # cores that every rank keeps; empty: none is bound to any
    drives: tuple[bool, ...] = ()  # whether a rank drives an accelerator; empty: none does
    network: Path | None = None  # of a simulated platform
    folder: Path | None = None  # that programs start in
    inside: tuple[str, ...] = ()  # what starts a container image with the program in it
    agent: str = field(default_factory=lambda: os.environ.get("COMMODEL_AGENT", ""))  # in place of ssh

    @property
    def ranks(self) -> int:
        return len(self.nodes)

    @property
    def placement(self) -> str:
        """The text of the placement file, which the programs compare with where they find themselves: a line a rank,
        its node and, where it is known, what that is called. An address says nothing about a name."""
        names = [f" {name}" if re.search("[A-Za-z]", name) else "" for name in self.names]
        return "".join(f"{node}{names[node] if names else ''}\n" for node in self.nodes)

    @property
    def cores(self) -> str:
        """The text of the file of cores, from which every process takes its own before MPI starts, under any launcher
        and in any image: a line a rank, its first core on its node, how many it keeps, `gpu` where it drives one."""
        taken: dict[int, int] = {}
        lines = []
        for rank, (node, kept) in enumerate(zip(self.nodes, self.kept, strict=True)):
            lines.append(f"{taken.get(node, 0)} {kept}{' gpu' if self.drives and self.drives[rank] else ''}\n")
            taken[node] = taken.get(node, 0) + kept
        return "".join(lines)

    @property
    def hosts(self) -> str:
        """The text of the hostfile: a line a rank, so that each sits where the plan says."""
        return "".join(f"{self.names[node]}\n" for node in self.nodes)

    @property
    def command(self) -> list[str]:
        return [*self.inside, self.program, *self.arguments]


def as_root(user: int) -> dict[str, str]:
    """Open MPI starts nothing for root unless that is said twice: who is root in a container has no other choice, and
    what is started are our own programs. Other MPIs read none of this."""
    return {} if user else {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@dataclass(frozen=True)
class Launcher:
    name: str
    title: str
    starters: tuple[str, ...]  # programs that can start it, in order of preference
    toolchain: str  # mpi or smpi: which build of the native programs it runs
    argv: Callable[[Job], list[str]]
    # What runs a command on a host, for overlay networks; nothing where all run here. None: it has none of these.
    reach: Callable[[Job, str], list[str]] | None = None
    remote_shell: bool = False  # whether one there reads what follows, as with ssh
    hostfile: bool = False  # whether it reads one
    # What a batch's nodes are called, by platform, starter and number of nodes; where only the site knows, it is asked.
    names: Callable[[Platform, str, int], tuple[str, ...]] = lambda platform, starter, nodes: platform.node_names
    # The levels of a batch's nodes, by starter and their names, where the site says which are near each other.
    levels: Callable[[str, tuple[str, ...]], Hierarchy] | None = None
    # What a starter finds in its environment, by the user's number; what the user has set of it counts more.
    settings: Callable[[int], Mapping[str, str]] = lambda user: {}
    # Ends what a start that ended badly may have left running elsewhere, by the starter, and whether nothing had begun.
    end: Callable[[str, bool], None] | None = None
    simulated: bool = False
    in_job: bool = False  # whether it works only inside a job of a batch system
    busy: bool = True  # its ranks keep this machine's cores busy: nothing else may run beside it


def launcher(name: str) -> Launcher:
    return lookup("platforms.launchers", "LAUNCHER", name)


def require_job(name: str, platform: Platform) -> None:
    if launcher(platform.launcher).in_job and not os.environ.get("SLURM_JOB_ID"):
        raise UserError(f"platform '{name}' is measured inside Slurm jobs; wanted: call this in one")


def toolchain(platform: Platform) -> str:
    """Which build of the native programs a platform runs."""
    return platform.substrate if platform.overlay else launcher(platform.launcher).toolchain


def front_end(launching: Launcher, job: Job) -> list[str]:
    """The argv of an overlay network's front-end, on the node of rank 0. It starts the other processes itself: by fork,
    or by what reaches a host, which it is told as a command with {host} in it."""
    there = launching.reach(job, "{host}")
    launch = ["--launch", " ".join(there)] if there else []
    command = [*job.command, *launch]
    first = job.names[job.nodes[0]] if job.names else ""
    return [*launching.reach(job, first), *(map(shlex.quote, command) if launching.remote_shell else command)]
