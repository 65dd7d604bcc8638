"""Machines reached by an ssh-like agent: the hostfile has a line a rank, so that each sits where the plan says.

The agent is named by the environment, never by a platform file: that may come by mail.
"""

from commodel.launchers import Job, Launcher


def argv(job: Job) -> list[str]:
    file = str(job.hostfile)
    if job.platform.hosts.mpi == "openmpi":
        # Other mappers count how often a host is named and deal ranks out anew; this one goes line by line. Open MPI 4
        # lets it see the default hostfile only, Open MPI 5 the other.
        places = ["--hostfile", file, "--mca", "orte_default_hostfile", file, "--map-by", "seq"]
        agent = ["--mca", "plm_rsh_agent", job.agent] if job.agent else []
        return [job.starter, "-np", str(job.ranks), *places, *agent, *job.command]
    agent = ["-launcher", "ssh", "-launcher-exec", job.agent] if job.agent else []
    return [job.starter, "-n", str(job.ranks), "-f", file, *agent, *job.command]


def hosts(job: Job) -> str:
    names = job.platform.hosts.names
    return "".join(f"{names[node]}\n" for node in job.nodes)


LAUNCHER = Launcher(
    name="hosts",
    title="machines reached by an ssh-like agent",
    starters=("mpirun", "mpiexec"),
    toolchain="mpi",
    argv=argv,
    hosts=hosts,
)
