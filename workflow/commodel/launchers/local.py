"""This machine, shared memory: mpiexec of the MPI at hand."""

from commodel.launchers import Job, Launcher


def argv(job: Job) -> list[str]:
    return [job.starter, "-n", str(job.ranks), *job.command]


LAUNCHER = Launcher(
    name="local", title="this machine, shared memory", starters=("mpiexec",), toolchain="mpi", argv=argv
)
