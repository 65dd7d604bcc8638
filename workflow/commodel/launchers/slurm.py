"""A real cluster: srun inside the allocation of the batch's own job. Counts are always given: inside a Snakemake job
nearly all SLURM_* variables are gone."""

from commodel.launchers import Job, Launcher


def argv(job: Job) -> list[str]:
    nodes = len(set(job.nodes))
    layout, _, per_node = job.layout.partition(":")
    # Slurm's own `block` evens tasks out over the nodes; a plane of Q fills a node before the next, as block:Q says.
    distribution = f"plane={per_node}" if layout == "block" else layout
    counts = ["-N", str(nodes), "-n", str(job.ranks), f"--ntasks-per-node={per_node}"]
    return [job.starter, f"--mpi={job.platform.slurm.mpi}", *counts, f"--distribution={distribution}", *job.command]


LAUNCHER = Launcher(
    name="slurm",
    title="srun inside a Slurm allocation",
    starters=("srun",),
    toolchain="mpi",
    argv=argv,
    busy=False,
)
