"""What the Slurm job that we run in was given: its nodes, by type where the platform has types, and srun's plug-ins.

Inside a Snakemake job hardly more than SLURM_JOB_ID is left of Slurm's variables, so Slurm itself is asked.
"""

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from commodel.errors import UserError
from commodel.hierarchy import Hierarchy
from commodel.platforms import switches
from commodel.platforms.controller import HICCUP, answer, ask
from commodel.platforms.platform import Platform

STEP_END = 15  # looks a second apart, which Slurm answers, until the ranks of a step have to be gone
SETTLE = 120  # such looks after an outage, before any step is killed


def node_names(platform: Platform, srun: str, nodes: int) -> tuple[str, ...]:
    """What the batch's nodes are called, in the order of the plan; after a look whether srun can start an MPI there."""
    wanted = platform.slurm.mpi
    offered = [wanted] if platform.overlay else mpi_types(ask(srun, "--mpi=list"))
    if wanted not in offered:
        message = f"srun has no MPI plug-in '{wanted}'; srun --mpi=list offers: {', '.join(offered) or 'none'}"
        raise platform.error(("slurm", "mpi"), message)
    job = os.environ.get("SLURM_JOB_ID", "")
    if not job:
        raise UserError(f"platform '{platform.name}' is measured inside a Slurm job: commodel run E --profile slurm")
    folder = Path(srun).parent
    listed = ask(folder / "squeue", "--noheader", f"--jobs={job}", "--format=%N").strip()
    names = tuple(ask(folder / "scontrol", "show", "hostnames", listed).split())
    if len(names) < nodes:
        raise UserError(f"Slurm job {job} has {len(names)} nodes ({listed}), wanted {nodes}")
    if not platform.types:
        return names[:nodes]
    features = features_of(ask(folder / "scontrol", "--oneliner", "show", "node", listed))
    return by_type(names, features, wanted_types(platform, nodes))


def node_levels(srun: str, names: tuple[str, ...]) -> Hierarchy:
    """Which of the nodes hang on one switch, where Slurm knows it."""
    listing, _ = answer(Path(srun).parent / "scontrol", "show", "topology")  # complains where no topology is known
    return switches.levels(listing, names)


def end_steps(srun: str, ended: bool = False) -> None:
    """Ends what a start has left running: srun can be killed without its ranks noticing, and a step keeps its nodes.
    One that does not end has lost its guard on some node: whatever still runs there, nothing more can be measured.
    A controller that was away hears only a while later which steps have `ended` meanwhile; and where Slurm cannot kill
    what is not there any more, it takes the node out of service."""
    began = time.monotonic()
    steps = _steps(srun)
    if ended or time.monotonic() - began > HICCUP:  # the controller was away
        for _ in range(SETTLE):
            if not steps:
                return
            time.sleep(1)
            steps = _steps(srun)
    for _ in range(STEP_END):
        if not steps:
            return
        for step in steps:
            answer(Path(srun).parent / "scancel", "--signal=KILL", step)  # one that has ended meanwhile is refused
        time.sleep(1)
        steps = _steps(srun)
    raise UserError(f"Slurm cannot end step {steps[0]}; its nodes are not free for another, so the batch ends")


def _steps(srun: str) -> list[str]:
    """The steps of this job that started programs; its own script is one too, called batch."""
    job = os.environ.get("SLURM_JOB_ID", "")
    steps = ask(Path(srun).parent / "squeue", "--noheader", "--steps", f"--jobs={job}", "--format=%i").split()
    return [step for step in steps if step.rpartition(".")[2].isdigit()]


def wanted_types(platform: Platform, nodes: int) -> list[tuple[str, int]]:
    """Slurm's feature of each type of node, and how many of the platform's first `nodes` nodes are of it."""
    wanted = []
    for name, count in platform.types.items():
        wanted.append((platform.slurm.features[name], min(count, nodes)))
        nodes -= min(count, nodes)
    return [(feature, count) for feature, count in wanted if count]


def constraint(platform: Platform, nodes: int) -> str:
    """What sbatch is asked for, so that the allocation holds as many nodes of each type as the plan says."""
    if not (platform.slurm and platform.types):
        return ""
    return f"[{'&'.join(f'{feature}*{count}' for feature, count in wanted_types(platform, nodes))}]"


def by_type(names: tuple[str, ...], features: Mapping[str, set[str]], wanted: list[tuple[str, int]]) -> tuple[str, ...]:
    """The nodes in the order of the types, each only once."""
    nodes: list[str] = []
    for feature, count in wanted:
        members = [name for name in names if feature in features.get(name, ()) and name not in nodes]
        if len(members) < count:
            raise UserError(f"the allocation has {len(members)} nodes with feature '{feature}', wanted {count}")
        nodes += members[:count]
    return tuple(nodes)


def features_of(listing: str) -> dict[str, set[str]]:
    """From scontrol's line a node: the features that each has now."""
    features = {}
    for line in listing.splitlines():
        fields = switches.fields(line)
        if "NodeName" in fields:
            features[fields["NodeName"]] = set(fields.get("ActiveFeatures", "").split(","))
    return features


def mpi_types(listing: str) -> list[str]:
    """From what srun --mpi=list says: a title, a word a line, and the versions of pmix behind a colon."""
    lines = [line.removeprefix("srun:") for line in listing.splitlines() if "types are" not in line]
    return [word for line in lines for word in re.split(r"[\s,]+", line.rpartition("available:")[2]) if word]
