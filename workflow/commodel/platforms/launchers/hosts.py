"""Machines reached by an ssh-like agent.

The agent is named by the environment, never by a platform file: that may come by mail.
"""

import os
import re
import shutil

from commodel.errors import UserError
from commodel.platforms.launchers import Job, Launcher, as_root
from commodel.platforms.mpi_libraries import kind_of_starter
from commodel.platforms.platform import Platform
from commodel.units import shown

KINDS = {"openmpi": "Open MPI", "mpich": "MPICH"}  # by the words of platform files
PLAIN_PATH = r"[\w./+][\w./+-]*"  # of a path that means nothing to a shell
# Inside a Slurm job an MPI hands the name of the job's own node on to ranks elsewhere, who would believe it.
CLEAN = ("env", "-uSLURMD_NODENAME")


def argv(job: Job) -> list[str]:
    file, named = str(job.hostfile), _agent(job.agent)
    if job.platform.hosts.mpi == "openmpi":
        # Other mappers count how often a host is named and deal ranks out anew; this one goes line by line. Open MPI 4
        # lets it see the default hostfile only, Open MPI 5 the other.
        places = ["--hostfile", file, "--mca", "orte_default_hostfile", file, "--map-by", "seq"]
        agent = ["--mca", "plm_rsh_agent", named] if named else []
        return [*CLEAN, job.starter, "-np", str(job.ranks), *places, *agent, *job.command]
    agent = ["-launcher", "ssh", "-launcher-exec", named] if named else []
    return [*CLEAN, job.starter, "-n", str(job.ranks), "-f", file, *agent, *job.command]


def reach(job: Job, host: str) -> list[str]:
    """In the folder that this program works in: a shell elsewhere starts at home, and cuts at blanks."""
    if not re.fullmatch(PLAIN_PATH, folder := str(job.folder)):
        raise UserError(
            f"found the folder {shown(folder)}, wanted a path of A-Z, a-z, 0-9 and _ . / + - for other hosts"
        )
    return [_agent(job.agent) or "ssh", host, *CLEAN, f"--chdir={folder}"]


def _agent(named: str) -> str:
    """A word, because MPIs cut it at blanks and take what follows a colon or a comma for another program. Programs
    start in another folder, so a path is made whole."""
    if named and not re.fullmatch(PLAIN_PATH, named):
        raise UserError(f"COMMODEL_AGENT: found {shown(named)}, wanted a program or its path, without arguments")
    if named and shutil.which(named) is None:
        raise UserError(f"COMMODEL_AGENT: found no program {shown(named)}")
    return os.path.abspath(named) if "/" in named else named


def names(platform: Platform, starter: str, nodes: int) -> tuple[str, ...]:
    """Known beforehand; but what its mpirun understands has to be what the platform file says."""
    if platform.overlay:
        return platform.node_names
    wanted = next((word for word, kind in KINDS.items() if kind == kind_of_starter(starter)), platform.hosts.mpi)
    if platform.hosts.mpi != wanted:
        raise platform.error(
            ("hosts", "mpi"), f"found '{platform.hosts.mpi}', wanted '{wanted}', since that is what {starter} is of"
        )
    return platform.node_names


LAUNCHER = Launcher(
    name="hosts",
    title="machines reached by an ssh-like agent",
    starters=("mpirun", "mpiexec"),
    toolchain="mpi",
    argv=argv,
    reach=reach,
    remote_shell=True,
    hostfile=True,
    names=names,
    settings=as_root,
)
