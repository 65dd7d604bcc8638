"""A real cluster: srun inside the allocation of the batch's own job. Counts are always given: inside a Snakemake job
nearly all SLURM_* variables are gone."""

from commodel.launchers import Job, Launcher


def argv(job: Job) -> list[str]:
    nodes = len(set(job.nodes))
    layout = job.layout.partition(":")[0]
    per_node = max(job.nodes.count(node) for node in set(job.nodes))
    counts = ["-N", str(nodes), "-n", str(job.ranks), f"--ntasks-per-node={per_node}"]
    return [job.starter, f"--mpi={job.platform.slurm.mpi}", *counts, f"--distribution={layout}", *job.command]


LAUNCHER = Launcher(
    name="slurm",
    title="srun inside a Slurm allocation",
    starters=("srun",),
    toolchain="mpi",
    argv=argv,
    busy=False,
)
