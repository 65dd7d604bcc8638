"""Slurm: queries of its controller (`run_slurm`), switches of a cluster (`parse_levels`), nodes of
the current job (`find_node_names`), and stopping (`check_stop`).

A campaign that is being stopped writes a file; jobs that have just begun find it, and end as after
Ctrl-C. Running jobs continue while the controller, slurmctld, does not answer, so queries are
repeated for some minutes. Switches come from Slurm's `topology.conf`, as levels of groups of nodes,
innermost first. Slurm itself is queried, because Snakemake keeps hardly more than SLURM_JOB_ID of
its variables.
"""

import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path

from commodel.errors import UserError, make_printable
from commodel.hierarchy import MAX_LEVELS, Hierarchy
from commodel.platforms import tools
from commodel.platforms.platform import Platform
from commodel.units import show_value

# variable with the path of a file that exists once the campaign is being stopped
STOP_FILE = "COMMODEL_STOP_FILE"


def check_stop() -> None:
    """End this process, as Ctrl-C would, if its campaign is being stopped.

    A job that starts at that moment gets no signal, and is not cancelled by Slurm.
    """
    path = os.environ.get(STOP_FILE)
    if path and Path(path).exists():
        sys.exit(128 + signal.SIGINT)


# Messages of Slurm's commands for failures of the controller, not of the query.
CONTROLLER_UNREACHABLE = re.compile(
    r"contact slurm controller|timed out|connect|zero bytes|standby|(send|receive) failure|temporarily unavailable",
    re.IGNORECASE,
)
# A machine with Slurm's commands that belongs to no cluster: several errors, of a search in DNS too.
UNCONFIGURED = re.compile(r"configuration source|failed to fetch config")
# What sbatch, or the Slurm executor before it, refuses for every job of a campaign: settings that
# all jobs have.
REFUSED_SETTING = re.compile(
    r"invalid (account|partition|qos|user)|no partition specified|partition not available|group not permitted"
    r"|(permission|access) denied|reservation is invalid|account .* appears to be invalid|'sacctmgr' reported"
    r"|no such file.*sacctmgr",
    re.IGNORECASE,
)
NOTHING_SUBMITTED = "no further job is submitted"  # in the message of such a refusal
NO_SBATCH = "no sbatch on PATH"
SBATCH_MESSAGE = re.compile(
    r"The error message was '(.*?)'\.?\s*(?:\n    sbatch call:|$)", re.DOTALL
)
COMMAND_TIMEOUT = 30.0  # seconds for one command; Slurm's own commands give up sooner
OUTAGE_SECONDS = (
    # seconds for which a query is repeated; a controller that is updated or moved does not answer
    # for minutes
    900.0
)
RETRY_SECONDS = 5.0  # seconds for which a query is repeated after any other failure
RETRY_INTERVAL = 2.0  # seconds between two tries of a query
RETRY_MESSAGE = (
    "commodel: Slurm's controller does not answer; the query is repeated for up to {:.0f} "
    "minutes: {}"
)


def run_slurm(program: str | Path, *arguments: str) -> str:
    """Return the output of a Slurm command. A failed one is repeated: for OUTAGE_SECONDS if the
    controller does not answer, which is logged, else for RETRY_SECONDS."""
    began = time.monotonic()
    announced = False
    while True:
        output, failure = try_slurm(program, *arguments)
        if not failure:
            return output
        is_away = bool(CONTROLLER_UNREACHABLE.search(failure))
        if time.monotonic() - began >= (OUTAGE_SECONDS if is_away else RETRY_SECONDS):
            raise UserError(f"Slurm does not report this job's allocation: {failure}")
        if is_away and not announced:
            print(RETRY_MESSAGE.format(OUTAGE_SECONDS / 60, failure), file=sys.stderr, flush=True)
            announced = True
        check_stop()
        time.sleep(RETRY_INTERVAL)


def find_refusal(text: str) -> str:
    """Return the message of sbatch in an error of the Slurm executor, in one line, if Slurm would
    refuse all other jobs too; else an empty text."""
    match = SBATCH_MESSAGE.search(text)
    error_text = match[1] if match else text
    lines = [
        line.strip().removeprefix("sbatch: ").removeprefix("error: ")
        for line in error_text.splitlines()
    ]
    message = make_printable("; ".join(filter(None, lines)).replace(":; ", ": "))
    is_transient = CONTROLLER_UNREACHABLE.search(message)
    return message if REFUSED_SETTING.search(message) and not is_transient else ""


def was_refused(log: str) -> bool:
    """Return whether Slurm refused to start the ranks, from the output of srun.

    The controller did not answer, or does not yet know that the last step has ended.
    """
    errors = [line for line in log.splitlines() if line.startswith("srun: error: ")]
    return any(
        CONTROLLER_UNREACHABLE.search(line) or "Unable to create step" in line for line in errors
    )


def try_slurm(program: str | Path, *arguments: str) -> tuple[str, str]:
    """Return the output of a Slurm command, and why it failed (empty if it did not)."""
    reply = tools.run_tool([str(program), *arguments], COMMAND_TIMEOUT)
    failure = (make_printable(reply.errors.strip()) or reply.failure) if reply.failure else ""
    return reply.output + (reply.errors if "--mpi=list" in arguments else ""), failure


def explain_failure(failure: str) -> str:
    """Return why a command of Slurm failed, with what to do if Slurm is not here or does not
    answer."""
    if UNCONFIGURED.search(failure):
        return (
            "found no configuration of Slurm on this machine (slurm.conf), wanted a login node of "
            "the cluster; SLURM_CONF names a file elsewhere"
        )
    if CONTROLLER_UNREACHABLE.search(failure):
        return f"Slurm's controller does not answer: {failure}. Look: scontrol ping"
    return failure


def require_configuration() -> None:
    """Refuse a machine with Slurm's commands that belongs to no cluster. A controller that is away
    for a while is waited for."""
    _, failure = try_slurm("scontrol", "ping")
    if UNCONFIGURED.search(failure):
        raise UserError(explain_failure(failure))


def cancel_jobs(name: str) -> str:
    """Cancel all jobs of a name, and return why that failed, if it did."""
    return try_slurm("scancel", f"--name={name}")[1]


LEVEL_NAMES = ("leaf", "group")  # names of the two lowest levels of switches
HOST_RANGES = re.compile(r"(?:[^][,\s]|\[[0-9,-]+\])+")
RANGE_OR_TEXT = re.compile(r"\[([0-9,-]+)\]|([^][]+)")
MAX_NODES = 1 << 20  # of one switch
RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def parse_levels(listing: str, names: Sequence[str]) -> Hierarchy:
    """Return the levels of the nodes `names`, in that order, from the output of `scontrol show
    topology`.

    It has a line for each switch (topology/tree) or block (topology/block). A node without a switch
    at a level is a group by itself. Outer levels that do not separate nodes are omitted.
    """
    node_of_name = {name: node for node, name in enumerate(names)}
    groups: dict[int, list[int]] = {}
    for line_number, line in enumerate(listing.splitlines()):
        fields = split_fields(line)
        if not {"SwitchName", "BlockName"} & fields.keys():
            continue
        level = fields.get("Level", "0")
        if not (level.isascii() and level.isdigit() and int(level[:3]) < MAX_LEVELS):
            raise UserError(
                f"found {show_value(line)}, wanted a switch of level 0 to {MAX_LEVELS - 1}"
            )
        column = groups.setdefault(int(level), [-1 - node for node in range(len(names))])
        for node in (
            node_of_name[name]
            for name in expand_names(fields.get("Nodes", ""))
            if name in node_of_name
        ):
            if column[node] >= 0:
                raise UserError(
                    f"found node {names[node]} below two switches of level {level}, wanted a tree"
                )
            column[node] = line_number
    level_names = dict(enumerate(LEVEL_NAMES))
    columns = {
        level_names.get(level, f"level-{level}"): column for level, column in sorted(groups.items())
    }
    # a highest level with all nodes in one group says nothing
    for name in reversed(list(columns)):
        if len(columns) == 1 or len(set(columns[name])) > 1:
            break
        del columns[name]
    return Hierarchy.of(columns)


def expand_names(host_list: str) -> list[str]:
    """Return the names in a list of Slurm: `n[01-03],x5` is n01, n02, n03 and x5."""
    if host_list == "(null)":
        return []
    if not re.fullmatch(rf"({HOST_RANGES.pattern}(,{HOST_RANGES.pattern})*)?", host_list):
        raise UserError(f"found {show_value(host_list)}, wanted nodes such as n[01-16,20]")
    names: list[str] = []
    for item in HOST_RANGES.findall(host_list):
        parts = [
            _expand_range(digits) if digits else [plain]
            for digits, plain in RANGE_OR_TEXT.findall(item)
        ]
        if len(names) + prod(map(len, parts)) > MAX_NODES:
            raise UserError(
                f"found more than {MAX_NODES} nodes below one switch: {show_value(host_list)}"
            )
        names += map("".join, product(*parts))
    return names


def split_fields(line: str) -> dict[str, str]:
    """Return the fields of a line of scontrol: `Name=value Name=value`."""
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def _expand_range(digits: str) -> list[str]:
    """Return the numbers of a range: `01-03,7` is 01, 02, 03 and 7."""
    numbers: list[str] = []
    for part in digits.split(","):
        ends = RANGE.fullmatch(part)
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
        if ends is None or not first <= last < first + MAX_NODES - len(numbers):
            raise UserError(f"found [{show_value(digits)}], wanted ranges such as [01-16,20]")
        numbers += [f"{number:0{len(ends[1])}}" for number in range(first, last + 1)]
    return numbers


END_POLLS = 15  # queries, one a second, after which a killed step must have ended
# queries, one a second, after an outage of the controller, before a step is killed
OUTAGE_POLLS = 120


def find_node_names(
    platform: Platform, srun: str, nodes: int, hosts: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return the names of the batch's nodes, in the order of the plan, after a check that srun can
    start MPI there. Those of `hosts` that are in the allocation come first, in their order."""
    if platform.uses_mpi:
        require_mpi_type(platform, run_slurm(srun, "--mpi=list"))
    job = os.environ.get("SLURM_JOB_ID", "")
    if not job:
        raise UserError(
            f"platform '{platform.name}' is measured inside a Slurm job: commodel run E --profile slurm"
        )
    folder = Path(srun).parent
    host_list = run_slurm(folder / "squeue", "--noheader", f"--jobs={job}", "--format=%N").strip()
    names = tuple(run_slurm(folder / "scontrol", "show", "hostnames", host_list).split())
    if len(names) < nodes:
        raise UserError(f"Slurm job {job} has {len(names)} nodes ({host_list}), wanted {nodes}")
    if hosts or not platform.types:
        return (
            *(host for host in hosts if host in names),
            *(name for name in names if name not in hosts),
        )[:nodes]
    features = parse_features(
        run_slurm(folder / "scontrol", "--oneliner", "show", "node", host_list)
    )
    return order_by_type(names, features, list_wanted_features(platform, nodes))


def list_srun_options(mpi: str, nodes: int, ranks: int) -> list[str]:
    """Return the options by which srun starts ranks on the hosts of the file $SLURM_HOSTFILE. If a
    rank dies, Slurm ends the whole step; otherwise the other ranks would wait."""
    counts = ["-N", str(nodes), "-n", str(ranks)]
    return [f"--mpi={mpi}", *counts, "--distribution=arbitrary", "--kill-on-bad-exit=1"]


def request_gpus(gpus: list[int]) -> str:
    """Return the option of srun for these GPUs of the nodes of a step: all of them, since only
    equal numbers can be requested for each node."""
    return f"--gres=gpu:{gpus[0]}" if min(gpus) == max(gpus) else f"--gpus={sum(gpus)}"


def check_mpi_type(platform: Platform) -> None:
    """Refuse a platform whose MPI plug-in the srun of this machine lacks. The login node may be
    without one."""
    if not platform.uses_mpi or not platform.slurm or not shutil.which("srun"):
        return
    listing, failure = try_slurm("srun", "--mpi=list")
    if not failure:
        require_mpi_type(platform, listing)


def require_mpi_type(platform: Platform, listing: str) -> None:
    """Refuse a platform whose MPI plug-in is not in the output of `srun --mpi=list`."""
    wanted = platform.slurm_section.mpi
    offered = parse_mpi_types(listing)
    if wanted not in offered:
        message = (
            f"srun has no MPI plug-in '{wanted}'; srun --mpi=list offers: "
            f"{', '.join(offered) or 'none'}"
        )
        raise platform.error(("slurm", "mpi"), message)


def find_node_levels(srun: str, names: tuple[str, ...]) -> Hierarchy:
    """Return the groups of nodes that share a switch, if Slurm knows the topology."""
    # fails if no topology is configured
    listing, _ = try_slurm(Path(srun).parent / "scontrol", "show", "topology")
    return parse_levels(listing, names)


def end_steps(srun: str, ended: bool = False) -> None:
    """End the steps of a failed start: ranks may still run after srun was killed, and a step keeps
    its nodes.

    A step that does not end has lost its daemon on some node, and nothing more can be measured.
    After an outage the controller learns only later that steps have `ended`. They are not killed
    meanwhile: Slurm drains a node if it cannot kill processes, which no longer exist.
    """
    began = time.monotonic()
    steps = _list_steps(srun)
    if ended or time.monotonic() - began > RETRY_SECONDS:  # the controller did not answer
        for _ in range(OUTAGE_POLLS):
            if not steps:
                return
            time.sleep(1)
            steps = _list_steps(srun)
    for _ in range(END_POLLS):
        if not steps:
            return
        for step in steps:
            # fails for a step that has ended meanwhile
            try_slurm(Path(srun).parent / "scancel", "--signal=KILL", step)
        time.sleep(1)
        steps = _list_steps(srun)
    raise UserError(
        f"Slurm cannot end step {steps[0]}; its nodes are not free for another, so the batch ends"
    )


def _list_steps(srun: str) -> list[str]:
    """Return the steps of this job that started programs, without the step `batch` of its
    script."""
    job = os.environ.get("SLURM_JOB_ID", "")
    steps = run_slurm(
        Path(srun).parent / "squeue", "--noheader", "--steps", f"--jobs={job}", "--format=%i"
    ).split()
    return [step for step in steps if step.rpartition(".")[2].isdigit()]


def list_wanted_features(platform: Platform, nodes: int) -> list[tuple[str, int]]:
    """Return Slurm's feature of each node type, and the number of its nodes among the platform's
    first `nodes` nodes."""
    wanted = []
    for name, count in platform.types.items():
        wanted.append((platform.slurm_section.features[name], min(count, nodes)))
        nodes -= min(count, nodes)
    return [(feature, count) for feature, count in wanted if count]


def make_constraint(platform: Platform, nodes: int) -> str:
    """Return the --constraint of sbatch: the number of nodes of each type that the plan needs."""
    if not (platform.slurm and platform.types):
        return ""
    return f"[{'&'.join(f'{feature}*{count}' for feature, count in list_wanted_features(platform, nodes))}]"


def order_by_type(
    names: tuple[str, ...], features: Mapping[str, set[str]], wanted: list[tuple[str, int]]
) -> tuple[str, ...]:
    """Return the names of the required number of nodes of each type, in the order of the types."""
    nodes: list[str] = []
    for feature, count in wanted:
        matching = [
            name for name in names if feature in features.get(name, ()) and name not in nodes
        ]
        if len(matching) < count:
            raise UserError(
                f"the allocation has {len(matching)} nodes with feature '{feature}', wanted {count}"
            )
        nodes += matching[:count]
    return tuple(nodes)


def parse_features(listing: str) -> dict[str, set[str]]:
    """Return the features of each node from the output of scontrol, one line for each node."""
    features = {}
    for line in listing.splitlines():
        fields = split_fields(line)
        if "NodeName" in fields:
            features[fields["NodeName"]] = set(fields.get("ActiveFeatures", "").split(","))
    return features


def parse_mpi_types(listing: str) -> list[str]:
    """Return the MPI plug-ins from the output of `srun --mpi=list`: a title, one word a line,
    versions of pmix after a colon."""
    types = []
    for line in listing.splitlines():
        if "types are" not in line:
            names = line.removeprefix("srun:").rpartition("available:")[2]
            types += names.replace(",", " ").split()
    return types
