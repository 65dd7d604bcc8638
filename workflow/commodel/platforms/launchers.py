"""Launchers, which start programs on a platform: `local`, `hosts`, `slurm` and `simgrid`, one row
of LAUNCHERS each.

The argv of a launcher depends only on a `Job`. Tests therefore need no cluster.
"""

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from commodel.errors import UserError, locate_mistakes
from commodel.hierarchy import Hierarchy
from commodel.platforms.allocations import require_allocation
from commodel.platforms.container import add_gpu_driver
from commodel.platforms.mpi_libraries import find_kind_of_starter
from commodel.platforms.platform import Platform
from commodel.platforms.slurm import (
    end_steps,
    find_node_levels,
    find_node_names,
    list_srun_options,
    request_gpus,
)
from commodel.units import show_value

MPI_NAMES = {"openmpi": "Open MPI", "mpich": "MPICH"}  # by value of the key `mpi` in platform files
SHELL_SAFE_PATH = r"[\w./+][\w./+-]*"  # pattern of paths without characters that a shell interprets
# Inside a Slurm job, an MPI passes this variable with the name of its own node to ranks on other
# nodes.
WITHOUT_NODE_NAME = ("env", "-uSLURMD_NODENAME")
# By default, Open MPI 4 and 5 start at most one rank per core, and a processor may be half a core.
# The plan already limits the ranks to the processors of the platform file.
OVERSUBSCRIBE = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}

# Ranks with this variable end with the process that started them (native/harness/starter.c).
END_WITH_STARTER = {"COMMODEL_END_WITH_STARTER": "1"}


@dataclass(frozen=True)
class Job:
    """One start of a native program: its name, arguments, ranks, and the node of each rank."""

    platform: Platform
    starter: str  # mpiexec, smpirun, srun or mpirun, as found
    program: str
    arguments: tuple[str, ...]
    nodes: tuple[int, ...]  # node of every rank
    hostfile: Path  # where it is, for a launcher that reads one
    # of the platform's nodes, in its order; empty: unknown before the start
    names: tuple[str, ...] = ()
    cores_per_rank: tuple[int, ...] = ()  # to which each rank is bound; empty: ranks are not bound
    gpus: tuple[
        int, ...
    ] = ()  # number of each rank's GPU on its node, -1: none; empty: no rank has one
    network: Path | None = None  # file of a simulated network
    folder: Path | None = None  # where programs start
    image_command: tuple[str, ...] = ()  # starts the container image; empty without an image
    # used instead of ssh
    agent: str = field(default_factory=lambda: os.environ.get("COMMODEL_AGENT", ""))

    @property
    def ranks(self) -> int:
        return len(self.nodes)

    @property
    def placement(self) -> str:
        """The text of the placement file, with which the programs check their placement. Each line
        has the node of a rank and, if known, its host name. An address is no host name."""
        names = [f" {name}" if re.search("[A-Za-z]", name) else "" for name in self.names]
        return "".join(f"{node}{names[node] if names else ''}\n" for node in self.nodes)

    @property
    def cores(self) -> str:
        """The text of the file of cores, by which each process binds itself before MPI starts. Each
        line has the node of a rank, the number of its cores, and `gpu:N` if it drives GPU N of the
        node."""
        gpus = self.gpus or (-1,) * self.ranks
        return "".join(
            f"{node} {count}{f' gpu:{gpu}' if gpu >= 0 else ''}\n"
            for node, count, gpu in zip(self.nodes, self.cores_per_rank, gpus, strict=True)
        )

    @property
    def drives_gpus(self) -> bool:
        return any(gpu >= 0 for gpu in self.gpus)

    @property
    def hosts(self) -> str:
        """The text of the hostfile: one line for each rank, in the placement of the plan."""
        return "".join(f"{self.names[node]}\n" for node in self.nodes)

    @property
    def command(self) -> list[str]:
        image_command = self.image_command
        if image_command and self.drives_gpus:
            image_command = add_gpu_driver(image_command)
        return [*image_command, self.program, *self.arguments]


def allow_root(user: int) -> dict[str, str]:
    """Return Open MPI's two variables that allow a start by root.

    In a container the only user may be root, and only this project's programs are started. Other
    MPIs ignore the variables.
    """
    return {} if user else {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@dataclass(frozen=True)
class Launcher:
    # programs such as mpiexec that can start ranks, in order of preference
    starters: tuple[str, ...]
    toolchain: str  # mpi or smpi: which build of the native programs it runs
    argv: Callable[[Job], list[str]]
    # For other substrates than MPI: the command that runs another one on a host; empty for this
    # machine. None: not supported.
    reach: Callable[[Job, str], list[str]] | None = None
    # whether a shell on the host parses the rest of the command, as with ssh
    remote_shell: bool = False
    hostfile: bool = False  # whether it reads a hostfile
    # Returns the names of a batch's nodes from the platform, the starter, the number of nodes and
    # the surveyed hosts.
    names: Callable[[Platform, str, int, tuple[str, ...]], tuple[str, ...]] = lambda platform, *_: (
        platform.node_names
    )
    # Returns the levels of a batch's nodes from the starter and the nodes' names, if the batch
    # system reports them.
    levels: Callable[[str, tuple[str, ...]], Hierarchy] | None = None
    # Returns the environment variables for the starter from the user's id. The user's own variables
    # override them.
    settings: Callable[[int], Mapping[str, str]] = lambda user: {}
    # Ends remaining processes on other nodes after a failed start. Takes the starter, and whether
    # Slurm refused to start the ranks.
    end: Callable[[str, bool], None] | None = None
    # whether time is simulated, and thus independent of the load of this machine
    simulated: bool = False
    in_job: bool = False  # whether it works only inside a job of a batch system
    # whether its ranks use this machine's cores, so that nothing else may run at the same time
    busy: bool = True


def _start_here(job: Job) -> list[str]:
    return [job.starter, "-n", str(job.ranks), *job.command]


def _start_on_hosts(job: Job) -> list[str]:
    file, agent_program = str(job.hostfile), resolve_agent(job.agent)
    if job.platform.hosts_section.mpi == "openmpi":
        # The mapper `seq` places one rank for each line; other mappers reorder ranks. With it, Open
        # MPI 4 reads only the default hostfile, and Open MPI 5 only the other one.
        placement = ["--hostfile", file, "--mca", "orte_default_hostfile", file, "--map-by", "seq"]
        agent = ["--mca", "plm_rsh_agent", agent_program] if agent_program else []
        return [
            *WITHOUT_NODE_NAME,
            job.starter,
            "-np",
            str(job.ranks),
            *placement,
            *agent,
            *job.command,
        ]
    agent = ["-launcher", "ssh", "-launcher-exec", agent_program] if agent_program else []
    return [*WITHOUT_NODE_NAME, job.starter, "-n", str(job.ranks), "-f", file, *agent, *job.command]


def _reach_host(job: Job, host: str) -> list[str]:
    """Return the command that starts a program on a host in the current folder.

    A remote shell starts in the home folder and splits words at blanks.
    """
    if not re.fullmatch(SHELL_SAFE_PATH, folder := str(job.folder)):
        wanted = "a path of A-Z, a-z, 0-9 and _ . / + - for other hosts"
        raise UserError(f"found the folder {show_value(folder)}, wanted {wanted}")
    return [resolve_agent(job.agent) or "ssh", host, *WITHOUT_NODE_NAME, f"--chdir={folder}"]


def resolve_agent(agent: str) -> str:
    """Return the ssh-like program named by COMMODEL_AGENT, with an absolute path, since programs
    start in another folder.

    A platform file cannot name it, since that file may come from others. It must be one word: MPIs
    split it at blanks, and take text after a colon or a comma as another program.
    """
    if agent and not re.fullmatch(SHELL_SAFE_PATH, agent):
        raise UserError(
            f"COMMODEL_AGENT: found {show_value(agent)}, wanted a program or its path, without arguments"
        )
    if agent and shutil.which(agent) is None:
        raise UserError(f"COMMODEL_AGENT: found no program {show_value(agent)}")
    return os.path.abspath(agent) if "/" in agent else agent


def _list_checked_hosts(
    platform: Platform, starter: str, nodes: int, hosts: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return the names of the platform file, else those of the allocation of this process, after a
    check of the syntax of mpirun. Those of `hosts` that are in the allocation come first."""
    if platform.uses_mpi:
        wanted = next(
            (word for word, kind in MPI_NAMES.items() if kind == find_kind_of_starter(starter)),
            platform.hosts_section.mpi,
        )
        if platform.hosts_section.mpi != wanted:
            message = (
                f"found '{platform.hosts_section.mpi}', wanted '{wanted}', the MPI of {starter}"
            )
            raise platform.error(("hosts", "mpi"), message)
    if platform.hosts_section.names:
        return platform.node_names
    with locate_mistakes(key=f"platform '{platform.name}'"):
        names = require_allocation(nodes).hosts
    return (
        *(host for host in hosts if host in names),
        *(name for name in names if name not in hosts),
    )[:nodes]


def _start_in_allocation(job: Job) -> list[str]:
    """Return srun with explicit counts: inside a Snakemake job nearly all SLURM_* variables are
    missing."""
    section = job.platform.slurm_section
    options = list_srun_options(section.mpi, len(set(job.nodes)), job.ranks)
    gpus = job.platform.list_gpus(sorted(set(job.nodes)))
    if gpus and job.drives_gpus:
        options.append(request_gpus(gpus))
    return ["env", f"SLURM_HOSTFILE={job.hostfile}", job.starter, *options, *job.command]


def _start_simulation(job: Job) -> list[str]:
    settings = {"smpi/simulate-computation": "no"} | job.platform.simgrid_section.config
    options = [f"--cfg={name}:{value}" for name, value in sorted(settings.items())]
    files = ["-platform", str(job.network), "-hostfile", str(job.hostfile)]
    # Ranks load copies of the program from TMPDIR. The system's temporary folder may be mounted
    # with noexec.
    starter = ["env", "TMPDIR=.", job.starter, "-np", str(job.ranks)]
    return [*starter, *files, "--log=root.thres:critical", *options, *job.command]


LAUNCHERS = {
    "local": Launcher(
        starters=("mpiexec",),
        toolchain="mpi",
        argv=_start_here,
        reach=lambda job, host: [],
        settings=lambda user: allow_root(user) | OVERSUBSCRIBE | END_WITH_STARTER,
    ),
    "hosts": Launcher(
        starters=("mpirun", "mpiexec"),
        toolchain="mpi",
        argv=_start_on_hosts,
        reach=_reach_host,
        remote_shell=True,
        hostfile=True,
        names=_list_checked_hosts,
        settings=lambda user: allow_root(user) | END_WITH_STARTER,
    ),
    "slurm": Launcher(
        starters=("srun",),
        toolchain="mpi",
        argv=_start_in_allocation,
        # Each process is one step without MPI, which shares processors with the front-end's step.
        reach=lambda job, host: [job.starter, "--overlap", "--mpi=none", "-N1", "-n1", "-w", host],
        hostfile=True,
        names=find_node_names,
        levels=find_node_levels,
        settings=lambda user: END_WITH_STARTER,
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


def require_hosts(platform: Platform, nodes: int) -> None:
    """Refuse a platform that takes its hosts from a job, if this process is in none, or in one with
    fewer nodes. A job of Slurm is submitted."""
    if platform.hosts and platform.takes_hosts_from_job:
        with locate_mistakes(key=f"platform '{platform.name}'"):
            require_allocation(nodes)


def require_job(name: str, platform: Platform) -> None:
    if LAUNCHERS[platform.launcher].in_job and not os.environ.get("SLURM_JOB_ID"):
        raise UserError(
            f"platform '{name}' is measured inside Slurm jobs; wanted: run this command in a Slurm job"
        )
    require_hosts(platform, 1)


def get_toolchain(platform: Platform) -> str:
    """Return the build of native programs that a platform runs."""
    return LAUNCHERS[platform.launcher].toolchain if platform.uses_mpi else platform.substrate
