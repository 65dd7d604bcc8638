"""A real cluster: srun inside the allocation of the batch's own job. Counts are always given: inside a Snakemake job
nearly all SLURM_* variables are gone."""

from commodel.errors import UserError
from commodel.launchers import Job, Launcher


def argv(job: Job) -> list[str]:
    used = sorted(set(job.nodes))
    nodes = len(used)
    if used != list(range(used[0], used[0] + nodes)):
        raise UserError(f"slurm places ranks on consecutive nodes only, found nodes {', '.join(map(str, used))}")
    layout, _, arguments = job.layout.partition(":")
    per_node, _, block = arguments.partition("x")
    # Slurm's own `block` evens tasks out over the nodes; a plane of Q fills a node before the next, as block:Q says.
    planes = {"block": per_node, "block-cyclic": block}
    distribution = f"plane={planes[layout]}" if layout in planes else layout
    counts = ["-N", str(nodes), "-n", str(job.ranks), f"--ntasks-per-node={per_node}"]
    counts += [f"--relative={used[0]}"] if used[0] else []
    return [job.starter, f"--mpi={job.platform.slurm.mpi}", *counts, f"--distribution={distribution}", *job.command]


LAUNCHER = Launcher(
    name="slurm",
    title="srun inside a Slurm allocation",
    starters=("srun",),
    toolchain="mpi",
    argv=argv,
    layouts=("block", "cyclic", "block-cyclic"),
    busy=False,
)
