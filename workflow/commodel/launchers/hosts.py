"""Machines reached by an ssh-like agent: the hostfile has a line a rank, so that each sits where the plan says."""

from commodel.launchers import Job, Launcher


def argv(job: Job) -> list[str]:
    settings = job.platform.hosts
    agent = settings.agent
    if settings.mpi == "openmpi":
        options = ["--mca", "plm_rsh_agent", agent] if agent else []
        return [job.starter, "-np", str(job.ranks), "--rankfile", str(job.hostfile), *options, *job.command]
    options = ["-launcher", "ssh", "-launcher-exec", agent] if agent else []
    return [job.starter, "-n", str(job.ranks), "-f", str(job.hostfile), *options, *job.command]


def hosts(job: Job) -> str:
    names = job.platform.hosts.names
    if job.platform.hosts.mpi == "openmpi":
        slots = [job.nodes[:rank].count(node) for rank, node in enumerate(job.nodes)]
        return "".join(f"rank {rank}={names[node]} slot={slots[rank]}\n" for rank, node in enumerate(job.nodes))
    return "".join(f"{names[node]}:1\n" for node in job.nodes)


LAUNCHER = Launcher(
    name="hosts",
    title="machines reached by an ssh-like agent",
    starters=("mpirun", "mpiexec"),
    toolchain="mpi",
    argv=argv,
    hosts=hosts,
)
