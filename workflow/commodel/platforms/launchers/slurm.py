"""A real cluster: srun inside the allocation of the batch's own job. Counts are always given: inside a Snakemake job
nearly all SLURM_* variables are gone."""

from commodel.platforms.launchers import Job, Launcher
from commodel.platforms.slurm import end_steps, node_levels, node_names


def argv(job: Job) -> list[str]:
    counts = ["-N", str(len(set(job.nodes))), "-n", str(job.ranks)]
    # A rank that dies takes its step with it, instead of leaving the others to wait for it.
    options = [f"--mpi={job.platform.slurm.mpi}", *counts, "--distribution=arbitrary", "--kill-on-bad-exit=1"]
    return ["env", f"SLURM_HOSTFILE={job.hostfile}", job.starter, *options, *job.command]


def reach(job: Job, host: str) -> list[str]:
    """A step a process, beside the front-end's own on the same processors; without an MPI in it."""
    return [job.starter, "--overlap", "--mpi=none", "-N1", "-n1", "-w", host]


LAUNCHER = Launcher(
    name="slurm",
    title="srun inside a Slurm allocation",
    starters=("srun",),
    toolchain="mpi",
    argv=argv,
    reach=reach,
    hostfile=True,
    names=node_names,
    levels=node_levels,
    end=end_steps,
    in_job=True,
    busy=False,
)
