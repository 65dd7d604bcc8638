"""This machine, shared memory: mpiexec of the MPI at hand."""

from commodel.platforms.launchers import Job, Launcher, as_root

# Open MPI, in its versions 4 and 5, starts no more ranks than there are cores, and a processor may be half a core; how
# many ranks fit is said by the platform file, and planned for.
EVERY_PROCESSOR = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def argv(job: Job) -> list[str]:
    return [job.starter, "-n", str(job.ranks), *job.command]


def reach(job: Job, host: str) -> list[str]:
    return []


LAUNCHER = Launcher(
    name="local",
    title="this machine, shared memory",
    starters=("mpiexec",),
    toolchain="mpi",
    argv=argv,
    reach=reach,
    settings=lambda user: as_root(user) | EVERY_PROCESSOR,
)
