"""Launchers, which start programs on a platform: `local`, `hosts`, `slurm` and `simgrid`, one row of LAUNCHERS each.

The argv of a launcher is a function of a Job only, so that it can be tested without a cluster.
"""

import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from commodel.errors import UserError
from commodel.hierarchy import Hierarchy
from commodel.platforms.mpi_libraries import kind_of_starter
from commodel.platforms.platform import Platform
from commodel.platforms.slurm import end_steps, node_levels, node_names
from commodel.units import shown

KINDS = {"openmpi": "Open MPI", "mpich": "MPICH"}  # by the words of platform files
PLAIN_PATH = r"[\w./+][\w./+-]*"  # of a path that means nothing to a shell
# Inside a Slurm job an MPI hands the name of the job's own node on to ranks elsewhere, who would believe it.
CLEAN = ("env", "-uSLURMD_NODENAME")
# Open MPI, in its versions 4 and 5, starts no more ranks than there are cores, and a processor may be half a core; how
# many ranks fit is said by the platform file, and planned for.
EVERY_PROCESSOR = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


@dataclass(frozen=True)
class Job:
    """One start of a native program: its name, arguments, ranks, and the node of each rank."""

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
        its node and, where it is known, what that is called. An address does not determine a name."""
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
        """The text of the hostfile: a line a rank, which fixes the placement of the plan."""
        return "".join(f"{self.names[node]}\n" for node in self.nodes)

    @property
    def command(self) -> list[str]:
        return [*self.inside, self.program, *self.arguments]


def as_root(user: int) -> dict[str, str]:
    """Return Open MPI's two variables that allow a start by root.

    Root in a container has no other choice, and only this project's programs are started. Other MPIs ignore them.
    """
    return {} if user else {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@dataclass(frozen=True)
class Launcher:
    starters: tuple[str, ...]  # programs that can start it, in order of preference
    toolchain: str  # mpi or smpi: which build of the native programs it runs
    argv: Callable[[Job], list[str]]
    # What runs a command on a host, for overlay networks; nothing where all run here. None: it has none of these.
    reach: Callable[[Job, str], list[str]] | None = None
    remote_shell: bool = False  # whether one there reads what follows, as with ssh
    hostfile: bool = False  # whether it reads one
    # Names of a batch's nodes, by platform, starter, number of nodes and surveyed hosts; only the site may have them.
    names: Callable[[Platform, str, int, tuple[str, ...]], tuple[str, ...]] = lambda platform, *_: platform.node_names
    # The levels of a batch's nodes, by starter and their names, if the site reports them.
    levels: Callable[[str, tuple[str, ...]], Hierarchy] | None = None
    # What a starter finds in its environment, by the user's number; what the user has set of it counts more.
    settings: Callable[[int], Mapping[str, str]] = lambda user: {}
    # Ends what a start that ended badly may have left running elsewhere, by the starter, and whether nothing had begun.
    end: Callable[[str, bool], None] | None = None
    simulated: bool = False  # time is simulated and repeatable, whatever this machine does
    in_job: bool = False  # whether it works only inside a job of a batch system
    busy: bool = True  # its ranks keep this machine's cores busy: nothing else may run at the same time


def _start_here(job: Job) -> list[str]:
    return [job.starter, "-n", str(job.ranks), *job.command]


def _start_on_hosts(job: Job) -> list[str]:
    file, named = str(job.hostfile), _agent(job.agent)
    if job.platform.hosts.mpi == "openmpi":
        # Other mappers count how often a host is named and deal ranks out anew; this one goes line by line. Open MPI 4
        # lets it see the default hostfile only, Open MPI 5 the other.
        places = ["--hostfile", file, "--mca", "orte_default_hostfile", file, "--map-by", "seq"]
        agent = ["--mca", "plm_rsh_agent", named] if named else []
        return [*CLEAN, job.starter, "-np", str(job.ranks), *places, *agent, *job.command]
    agent = ["-launcher", "ssh", "-launcher-exec", named] if named else []
    return [*CLEAN, job.starter, "-n", str(job.ranks), "-f", file, *agent, *job.command]


def _reach_host(job: Job, host: str) -> list[str]:
    """Return the command that starts a program on a host in the current folder.

    A remote shell starts at home and splits words at blanks.
    """
    if not re.fullmatch(PLAIN_PATH, folder := str(job.folder)):
        wanted = "a path of A-Z, a-z, 0-9 and _ . / + - for other hosts"
        raise UserError(f"found the folder {shown(folder)}, wanted {wanted}")
    return [_agent(job.agent) or "ssh", host, *CLEAN, f"--chdir={folder}"]


def _agent(named: str) -> str:
    """Return the ssh-like agent named by COMMODEL_AGENT. A platform file, which may come from others, cannot name it.

    It is one word, because MPIs split it at blanks, and treat text after a colon or a comma as another program.
    Programs start in another folder, so its path is made absolute.
    """
    if named and not re.fullmatch(PLAIN_PATH, named):
        raise UserError(f"COMMODEL_AGENT: found {shown(named)}, wanted a program or its path, without arguments")
    if named and shutil.which(named) is None:
        raise UserError(f"COMMODEL_AGENT: found no program {shown(named)}")
    return os.path.abspath(named) if "/" in named else named


def _named_hosts(platform: Platform, starter: str, *_: object) -> tuple[str, ...]:
    """Return the names of the platform file, checked for the syntax of mpirun."""
    if not platform.overlay:
        wanted = next((word for word, kind in KINDS.items() if kind == kind_of_starter(starter)), platform.hosts.mpi)
        if platform.hosts.mpi != wanted:
            message = f"found '{platform.hosts.mpi}', wanted '{wanted}', since that is what {starter} is of"
            raise platform.error(("hosts", "mpi"), message)
    return platform.node_names


def _start_in_allocation(job: Job) -> list[str]:
    """Return srun with explicit counts: inside a Snakemake job nearly all SLURM_* variables are missing."""
    counts = ["-N", str(len(set(job.nodes))), "-n", str(job.ranks)]
    # A rank that dies takes its step with it, instead of leaving the others to wait for it.
    options = [f"--mpi={job.platform.slurm.mpi}", *counts, "--distribution=arbitrary", "--kill-on-bad-exit=1"]
    return ["env", f"SLURM_HOSTFILE={job.hostfile}", job.starter, *options, *job.command]


def _start_simulation(job: Job) -> list[str]:
    settings = {"smpi/simulate-computation": "no"} | job.platform.simgrid.config
    options = [f"--cfg={name}:{value}" for name, value in sorted(settings.items())]
    files = ["-platform", str(job.network), "-hostfile", str(job.hostfile)]
    # Ranks load copies of the program, which the system's folder for temporary files may forbid (noexec).
    starter = ["env", "TMPDIR=.", job.starter, "-np", str(job.ranks)]
    return [*starter, *files, "--log=root.thres:critical", *options, *job.command]


LAUNCHERS = {
    "local": Launcher(
        starters=("mpiexec",),
        toolchain="mpi",
        argv=_start_here,
        reach=lambda job, host: [],
        settings=lambda user: as_root(user) | EVERY_PROCESSOR,
    ),
    "hosts": Launcher(
        starters=("mpirun", "mpiexec"),
        toolchain="mpi",
        argv=_start_on_hosts,
        reach=_reach_host,
        remote_shell=True,
        hostfile=True,
        names=_named_hosts,
        settings=as_root,
    ),
    "slurm": Launcher(
        starters=("srun",),
        toolchain="mpi",
        argv=_start_in_allocation,
        # A step a process, beside the front-end's own on the same processors; without an MPI in it.
        reach=lambda job, host: [job.starter, "--overlap", "--mpi=none", "-N1", "-n1", "-w", host],
        hostfile=True,
        names=node_names,
        levels=node_levels,
        end=end_steps,
        in_job=True,
        busy=False,
    ),
    "simgrid": Launcher(
        starters=("smpirun",),
        toolchain="smpi",
        argv=_start_simulation,
        hostfile=True,
        simulated=True,
        busy=False,
    ),
}


def require_job(name: str, platform: Platform) -> None:
    if LAUNCHERS[platform.launcher].in_job and not os.environ.get("SLURM_JOB_ID"):
        raise UserError(f"platform '{name}' is measured inside Slurm jobs; wanted: call this in one")


def toolchain(platform: Platform) -> str:
    """Return the build of native programs that a platform runs."""
    return platform.substrate if platform.overlay else LAUNCHERS[platform.launcher].toolchain


def front_end(launching: Launcher, job: Job) -> list[str]:
    """Return the argv of an overlay network's front-end, on the node of rank 0.

    It starts the other processes itself: by fork, or by a command with {host} in it that reaches a host.
    """
    there = launching.reach(job, "{host}")
    launch = ["--launch", " ".join(there)] if there else []
    command = [*job.command, *launch]
    first = job.names[job.nodes[0]] if job.names else ""
    return [*launching.reach(job, first), *(map(shlex.quote, command) if launching.remote_shell else command)]
