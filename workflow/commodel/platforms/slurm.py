"""Slurm: queries of its controller (`run_slurm`), switches of a cluster (`levels`), nodes of the current job
(`node_names`), and stopping (`check_stop`).

A campaign that is being stopped leaves a file; jobs that have just begun find it, and end as after Ctrl-C. While the
controller, slurmctld, is away, running jobs continue, so queries are repeated until it had time to return. Switches
come from Slurm's `topology.conf`, as levels of groups of nodes, innermost first. Inside a Snakemake job hardly more
than SLURM_JOB_ID is left of Slurm's variables, so Slurm itself is queried.
"""

import os
import re
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path

from commodel.errors import UserError, one_line
from commodel.hierarchy import MAX_LEVELS, Hierarchy
from commodel.platforms import tools
from commodel.platforms.platform import Platform
from commodel.units import shown

STOP_FILE = "COMMODEL_STOP_FILE"  # names the file that is there once the campaign is being stopped


def check_stop() -> None:
    """End this process, as Ctrl-C would, if its campaign is being stopped.

    A job that starts at that moment gets no signal, and is not cancelled by Slurm.
    """
    if (path := os.environ.get(STOP_FILE)) and Path(path).exists():
        sys.exit(128 + signal.SIGINT)


# Messages of Slurm's commands for failures of the controller, not of the query.
CONTROLLER_AWAY = re.compile(
    r"contact slurm controller|timed out|connect|zero bytes|standby|(send|receive) failure|temporarily unavailable",
    re.IGNORECASE,
)
ANSWER = 30.0  # seconds for one command; those of Slurm give up sooner
OUTAGE_SECONDS = 900.0  # seconds: a controller that is updated or moved is away for minutes
RETRY_SECONDS = 5.0  # seconds in which any other refusal may be a passing one
RETRY_INTERVAL = 2.0  # seconds between two questions
WAITING = "commodel: Slurm's controller does not answer; the query is repeated for up to {:.0f} minutes: {}"


def run_slurm(program: str | Path, *arguments: str) -> str:
    """Return the output of a command of Slurm. A failed command is repeated: for long if the controller is away, which
    is logged, else briefly."""
    began, announced = time.monotonic(), False
    while True:
        output, complaint = try_slurm(program, *arguments)
        if not complaint:
            return output
        away = bool(CONTROLLER_AWAY.search(complaint))
        if time.monotonic() - began >= (OUTAGE_SECONDS if away else RETRY_SECONDS):
            raise UserError(f"Slurm does not report this job's allocation: {complaint}")
        if away and not announced:
            print(WAITING.format(OUTAGE_SECONDS / 60, complaint), file=sys.stderr, flush=True)
            announced = True
        check_stop()
        time.sleep(RETRY_INTERVAL)


def was_refused(log: str) -> bool:
    """Return whether Slurm started nothing, from the output of srun.

    The controller was away, or does not yet know that the last step has ended, as after an outage.
    """
    errors = [line for line in log.splitlines() if line.startswith("srun: error: ")]
    return any(CONTROLLER_AWAY.search(line) or "Unable to create step" in line for line in errors)


def try_slurm(program: str | Path, *arguments: str) -> tuple[str, str]:
    """Return the output of a command of Slurm, and why it failed (empty if it did not)."""
    reply = tools.run_tool([str(program), *arguments], ANSWER)
    complaint = (one_line(reply.errors.strip()) or reply.failure) if reply.failure else ""
    return reply.output + (reply.errors if "--mpi=list" in arguments else ""), complaint


def cancel(name: str) -> str:
    """Cancel all jobs of a name, and return why that failed, if it did."""
    return try_slurm("scancel", f"--name={name}")[1]


NAMES = ("leaf", "group")  # of the two lowest levels of switches
ITEM = re.compile(r"(?:[^][,\s]|\[[0-9,-]+\])+")
PART = re.compile(r"\[([0-9,-]+)\]|([^][]+)")
MOST_NODES = 1 << 20  # below a switch
RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def levels(listing: str, names: Sequence[str]) -> Hierarchy:
    """Return the levels of the nodes `names`, in that order, from the output of `scontrol show topology`.

    It has a line for each switch (topology/tree) or block (topology/block). A node without a switch at a level is a
    group by itself. The last level is omitted if it does not separate nodes.
    """
    number = {name: node for node, name in enumerate(names)}
    groups: dict[int, list[int]] = {}
    for place, line in enumerate(listing.splitlines()):
        about = split_fields(line)
        if not {"SwitchName", "BlockName"} & about.keys():
            continue
        level = about.get("Level", "0")
        if not (level.isascii() and level.isdigit() and int(level[:3]) < MAX_LEVELS):
            raise UserError(f"found {shown(line)}, wanted a switch of level 0 to {MAX_LEVELS - 1}")
        column = groups.setdefault(int(level), [-1 - node for node in range(len(names))])
        for node in (number[name] for name in expand_names(about.get("Nodes", "")) if name in number):
            if column[node] >= 0:
                raise UserError(f"found node {names[node]} below two switches of level {level}, wanted a tree")
            column[node] = place
    named = dict(enumerate(NAMES))
    kept = {named.get(level, f"level-{level}"): column for level, column in sorted(groups.items())}
    while len(kept) > 1 and len(set(kept[last := list(kept)[-1]])) == 1:
        del kept[last]
    return Hierarchy.of(kept)


def expand_names(listed: str) -> list[str]:
    """Return the names in a list of Slurm: `n[01-03],x5` is n01, n02, n03 and x5."""
    if listed == "(null)":
        return []
    if not re.fullmatch(rf"({ITEM.pattern}(,{ITEM.pattern})*)?", listed):
        raise UserError(f"found {shown(listed)}, wanted nodes such as n[01-16,20]")
    names: list[str] = []
    for item in ITEM.findall(listed):
        parts = [_numbers(digits) if digits else [plain] for digits, plain in PART.findall(item)]
        if len(names) + prod(map(len, parts)) > MOST_NODES:
            raise UserError(f"found more than {MOST_NODES} nodes below one switch: {shown(listed)}")
        names += map("".join, product(*parts))
    return names


def split_fields(line: str) -> dict[str, str]:
    """Return the fields of a line of scontrol: `Name=value Name=value`."""
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def _numbers(digits: str) -> list[str]:
    """Return the numbers of a range: `01-03,7` is 01, 02, 03 and 7."""
    numbers: list[str] = []
    for part in digits.split(","):
        ends = RANGE.fullmatch(part)
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
        if not first <= last < first + MOST_NODES - len(numbers):
            raise UserError(f"found [{shown(digits)}], wanted ranges such as [01-16,20]")
        numbers += [f"{number:0{len(ends[1])}}" for number in range(first, last + 1)]
    return numbers


STEP_END = 15  # looks a second apart, which Slurm answers, until the ranks of a step have to be gone
SETTLE = 120  # such looks after an outage, before any step is killed


def node_names(platform: Platform, srun: str, nodes: int, hosts: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the names of the batch's nodes, in the order of the plan, after a check that srun can start MPI there.
    Those of `hosts` that are in the allocation come first, in their order."""
    wanted = platform.slurm.mpi
    offered = [wanted] if platform.overlay else mpi_types(run_slurm(srun, "--mpi=list"))
    if wanted not in offered:
        message = f"srun has no MPI plug-in '{wanted}'; srun --mpi=list offers: {', '.join(offered) or 'none'}"
        raise platform.error(("slurm", "mpi"), message)
    job = os.environ.get("SLURM_JOB_ID", "")
    if not job:
        raise UserError(f"platform '{platform.name}' is measured inside a Slurm job: commodel run E --profile slurm")
    folder = Path(srun).parent
    listed = run_slurm(folder / "squeue", "--noheader", f"--jobs={job}", "--format=%N").strip()
    names = tuple(run_slurm(folder / "scontrol", "show", "hostnames", listed).split())
    if len(names) < nodes:
        raise UserError(f"Slurm job {job} has {len(names)} nodes ({listed}), wanted {nodes}")
    if hosts or not platform.types:
        return (*(host for host in hosts if host in names), *(name for name in names if name not in hosts))[:nodes]
    features = features_of(run_slurm(folder / "scontrol", "--oneliner", "show", "node", listed))
    return by_type(names, features, wanted_types(platform, nodes))


def node_levels(srun: str, names: tuple[str, ...]) -> Hierarchy:
    """Return which nodes share a switch, if Slurm knows it."""
    listing, _ = try_slurm(Path(srun).parent / "scontrol", "show", "topology")  # complains where no topology is known
    return levels(listing, names)


def end_steps(srun: str, ended: bool = False) -> None:
    """End what a start has left running: srun can be killed without its ranks noticing, and a step keeps its nodes.

    A step that does not end has lost its daemon on some node, and nothing more can be measured. A controller that
    was away learns later which steps have `ended`. If Slurm cannot kill processes that no longer exist, it drains
    the node.
    """
    began = time.monotonic()
    steps = _steps(srun)
    if ended or time.monotonic() - began > RETRY_SECONDS:  # the controller was away
        for _ in range(SETTLE):
            if not steps:
                return
            time.sleep(1)
            steps = _steps(srun)
    for _ in range(STEP_END):
        if not steps:
            return
        for step in steps:
            try_slurm(Path(srun).parent / "scancel", "--signal=KILL", step)  # one that has ended meanwhile is refused
        time.sleep(1)
        steps = _steps(srun)
    raise UserError(f"Slurm cannot end step {steps[0]}; its nodes are not free for another, so the batch ends")


def _steps(srun: str) -> list[str]:
    """Return the steps of this job that started programs, without the step `batch` of its script."""
    job = os.environ.get("SLURM_JOB_ID", "")
    steps = run_slurm(Path(srun).parent / "squeue", "--noheader", "--steps", f"--jobs={job}", "--format=%i").split()
    return [step for step in steps if step.rpartition(".")[2].isdigit()]


def wanted_types(platform: Platform, nodes: int) -> list[tuple[str, int]]:
    """Return Slurm's feature of each node type, and the number of its nodes among the platform's first `nodes`
    nodes."""
    wanted = []
    for name, count in platform.types.items():
        wanted.append((platform.slurm.features[name], min(count, nodes)))
        nodes -= min(count, nodes)
    return [(feature, count) for feature, count in wanted if count]


def constraint(platform: Platform, nodes: int) -> str:
    """Return sbatch's constraint for as many nodes of each type as the plan has."""
    if not (platform.slurm and platform.types):
        return ""
    return f"[{'&'.join(f'{feature}*{count}' for feature, count in wanted_types(platform, nodes))}]"


def by_type(names: tuple[str, ...], features: Mapping[str, set[str]], wanted: list[tuple[str, int]]) -> tuple[str, ...]:
    """Return the nodes in the order of the types, each once."""
    nodes: list[str] = []
    for feature, count in wanted:
        members = [name for name in names if feature in features.get(name, ()) and name not in nodes]
        if len(members) < count:
            raise UserError(f"the allocation has {len(members)} nodes with feature '{feature}', wanted {count}")
        nodes += members[:count]
    return tuple(nodes)


def features_of(listing: str) -> dict[str, set[str]]:
    """Return the features of each node from the output of scontrol, one line for each node."""
    features = {}
    for line in listing.splitlines():
        fields = split_fields(line)
        if "NodeName" in fields:
            features[fields["NodeName"]] = set(fields.get("ActiveFeatures", "").split(","))
    return features


def mpi_types(listing: str) -> list[str]:
    """Return the MPI plug-ins from the output of `srun --mpi=list`: a title, one word a line, versions of pmix after a
    colon."""
    lines = [line.removeprefix("srun:") for line in listing.splitlines() if "types are" not in line]
    return [word for line in lines for word in re.split(r"[\s,]+", line.rpartition("available:")[2]) if word]
