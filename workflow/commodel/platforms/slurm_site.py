"""A partition of Slurm as platform, profile and experiment files (`read_site`, `write_platform`,
`write_profile`).

Slurm's own commands describe it: nodes and partitions (`scontrol`), accounts (`sacctmgr`), plug-ins
for MPI (`srun --mpi=list`). Each value in a file has a comment with the command that it is from. A
command that fails leaves its values out; the files then name the command.

Nodes of equal cores, features and GPUs are a type. Slurm gives nodes of a certain type only by a
feature, so a type needs one that no other type has.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from commodel.errors import UserError, make_printable, suggest_name
from commodel.platforms.mpi_libraries import WITHOUT_PMI2, find_kind
from commodel.platforms.slurm import explain_failure, parse_mpi_types, split_fields
from commodel.platforms.tools import find_tool, run_tool

Ask = Callable[..., tuple[str, str]]  # (program, arguments) -> its output, why it failed

# states of a node that gets no jobs
UNUSABLE = re.compile(r"DOWN|DRAIN|FAIL|MAINT|POWERED_DOWN|FUTURE|UNKNOWN|INVAL")
NO_ACCOUNTING = "accounting_storage/none"
NOT_NAME = re.compile(r"[^a-z0-9-]+")  # not in names of node types and files
MAX_TYPES = 8
VERSION_SECONDS = 60.0  # that `mpiexec --version` may take
MAX_NODES_OF_EXPERIMENT = 4
SITE_PART = "# What this site needs, by commodel init:"  # in a profile, the last part


@dataclass(frozen=True)
class NodeKind:
    """Nodes with equal properties. `cores` are those of all sockets, without hyper-threads."""

    cores: int
    sockets: int
    threads: int  # of a core
    features: frozenset[str]
    gpus: str  # as Slurm names them; empty: none

    @property
    def text(self) -> str:
        threads = f", {self.threads} threads a core" if self.threads > 1 else ""
        gpus = f", GPUs {self.gpus}" if self.gpus else ""
        return f"{self.sockets} × {self.cores // self.sockets} cores{threads}{gpus}"

    def count_gpus(self) -> int:
        """Return the number of GPUs of a node, such as 4 of gpu:a100:4; without a number, one."""
        counts = (part.rpartition(":")[2] for part in self.gpus.split("+") if part)
        return sum(int(count) if count.isdigit() else 1 for count in counts)


@dataclass(frozen=True)
class NodeType:
    """The nodes of one kind, with the name of their type and the feature by which Slurm finds
    them."""

    name: str
    feature: str
    count: int
    kind: NodeKind


@dataclass(frozen=True)
class SlurmPartition:
    """What Slurm says about a partition. `unknown` are values that it does not say, each with the
    command that would tell."""

    partition: str
    types: Sequence[NodeType]
    unusable: int  # nodes that are down or drained
    most_nodes: int | None  # of a job
    time_limit: str
    is_exclusive: bool
    mpi: str
    mpi_reason: str
    account: str
    has_accounting: bool
    switches: int
    unknown: Sequence[str] = field(default=())

    @property
    def name(self) -> str:
        """The name of the platform."""
        return NOT_NAME.sub("-", self.partition.lower()).strip("-") or "slurm"

    @property
    def nodes(self) -> int:
        return sum(of_type.count for of_type in self.types)

    @property
    def cores(self) -> int:
        return max(of_type.kind.cores for of_type in self.types)

    @property
    def fewest_cores(self) -> int:
        """The cores of the smallest nodes."""
        return min(of_type.kind.cores for of_type in self.types)


def read_site(partition: str, user: str, mpi_version: str, ask: Ask) -> SlurmPartition:
    """Return what Slurm says about a partition; an empty name: the default one. `mpi_version` is the
    text of `describe_mpi`."""
    listing, failure = ask("scontrol", "show", "partition", "--oneliner")
    if "No such file" in failure:
        raise UserError("found no scontrol on PATH, wanted a machine with the commands of Slurm")
    if failure:
        raise UserError(f"scontrol show partition: {explain_failure(failure)}")
    fields = _choose_partition(partition, listing)
    name = fields["PartitionName"]
    listing, failure = ask("scontrol", "show", "node", "--oneliner")
    if failure:
        raise UserError(f"scontrol show node: {explain_failure(failure)}")
    kinds, unusable = _count_kinds(name, listing)
    unknown: list[str] = []
    types = _name_types(kinds, unknown)
    mpi, reason = choose_mpi(mpi_version, ask, unknown)
    account, has_accounting = _find_account(name, user, ask, unknown)
    topology, _ = ask("scontrol", "show", "topology")
    text = fields.get("MaxNodes", "")
    most_nodes = int(text) if text.isdigit() else None
    return SlurmPartition(
        partition=name,
        types=_limit_nodes(types, most_nodes),
        unusable=unusable,
        most_nodes=most_nodes,
        time_limit=fields.get("MaxTime", "UNLIMITED"),
        is_exclusive=fields.get("OverSubscribe") == "EXCLUSIVE",
        mpi=mpi,
        mpi_reason=reason,
        account=account,
        has_accounting=has_accounting,
        switches=len(re.findall(r"^(?:SwitchName|BlockName)=", topology, re.MULTILINE)),
        unknown=tuple(unknown),
    )


def _choose_partition(wanted: str, listing: str) -> dict[str, str]:
    """Return the fields of the partition: the wanted one, the default one, or the only one."""
    partitions = [split_fields(line) for line in listing.splitlines()]
    by_name = {
        fields["PartitionName"]: fields for fields in partitions if "PartitionName" in fields
    }
    if wanted:
        if wanted not in by_name:
            hint = suggest_name(wanted, by_name)
            raise UserError(f"found partition '{wanted}', which Slurm does not have; {hint}")
        return by_name[wanted]
    if not by_name:
        raise UserError("scontrol show partition: found no partition")
    default = [fields for fields in by_name.values() if fields.get("Default") == "YES"]
    if not default and len(by_name) > 1:
        names = ", ".join(by_name)
        raise UserError(f"found no default partition, wanted --slurm with one of: {names}")
    return (default or list(by_name.values()))[0]


def _count_kinds(partition: str, listing: str) -> tuple[Counter[NodeKind], int]:
    """Return how many nodes of each kind the partition has, and how many that get no jobs."""
    kinds: Counter[NodeKind] = Counter()
    unusable = 0
    for line in listing.splitlines():
        fields = split_fields(line)
        if partition not in fields.get("Partitions", "").split(","):
            continue
        if UNUSABLE.search(fields.get("State", "")):
            unusable += 1
            continue
        kinds[_read_kind(fields)] += 1
    if not kinds:
        down = f", but {unusable} that are down or drained" if unusable else ""
        raise UserError(f"found no node of partition '{partition}' in use{down}")
    return kinds, unusable


def parse_nodes(listing: str) -> Counter[NodeKind]:
    """Return how many nodes of each kind the output of `scontrol show node --oneliner` has."""
    rows = [split_fields(line) for line in listing.splitlines()]
    return Counter(_read_kind(fields) for fields in rows if "NodeName" in fields)


def _read_kind(fields: dict[str, str]) -> NodeKind:
    sockets = _read_count(fields, "Sockets")
    features = fields.get("AvailableFeatures", "")
    gres = fields.get("Gres", "")
    gpus = [part.partition("(")[0] for part in gres.split(",") if part.startswith("gpu")]
    return NodeKind(
        cores=sockets * _read_count(fields, "CoresPerSocket"),
        sockets=sockets,
        threads=_read_count(fields, "ThreadsPerCore"),
        features=frozenset(filter(None, features.replace("(null)", "").split(","))),
        gpus="+".join(gpus),
    )


def _read_count(fields: dict[str, str], name: str) -> int:
    text = fields.get(name, "")
    if not text.isdigit() or not 1 <= int(text) <= 1 << 20:
        node = make_printable(fields.get("NodeName", "?"), 40)
        raise UserError(f"scontrol show node: found {name}={text!r} for {node}, wanted a number")
    return int(text)


def _name_types(kinds: Counter[NodeKind], unknown: list[str]) -> list[NodeType]:
    """Return the types of nodes, the most frequent first. Without a feature of its own, a type
    cannot be requested: then the most frequent one is the only one."""
    ordered = sorted(kinds, key=lambda kind: (-kinds[kind], -kind.cores, sorted(kind.features)))
    if len(ordered) == 1:
        return [NodeType("", "", kinds[ordered[0]], ordered[0])]
    types = []
    for kind in ordered:
        others = frozenset().union(*(other.features for other in ordered if other != kind))
        own = sorted(kind.features - others, key=lambda feature: (len(feature), feature))
        feature = own[0] if own else ""
        name = NOT_NAME.sub("-", feature.lower()).strip("-")[:20]
        types.append(
            NodeType(name if name[:1].isalpha() else f"t{name}", feature, kinds[kind], kind)
        )
    is_complete = all(of_type.feature for of_type in types) and len(types) <= MAX_TYPES
    if is_complete and len({of_type.name for of_type in types}) == len(types):
        return types
    first = types[0]
    texts = [f"{of_type.count} of {of_type.kind.text}" for of_type in types[:MAX_TYPES]]
    unknown.append(
        f"types of nodes: no features tell these apart: {'; '.join(texts)}. The most frequent one "
        "is described. Look: sinfo -N -o '%N %X %Y %f %G'"
    )
    return [NodeType("", "", first.count, first.kind)]


def _limit_nodes(types: Sequence[NodeType], most_nodes: int | None) -> list[NodeType]:
    """Return the types with so many nodes that one job may have all of them."""
    limited = []
    remaining = most_nodes or sum(of_type.count for of_type in types)
    for of_type in types:
        count = min(of_type.count, remaining)
        remaining -= count
        if count:
            limited.append(replace(of_type, count=count))
    return limited


def describe_mpi() -> str:
    """Return kind and version of the MPI on PATH, such as `MPICH 5.0.2`; empty if there is none."""
    starter = find_tool("mpiexec")
    text = run_tool([starter, "--version"], VERSION_SECONDS).output if starter else ""
    kind = find_kind(text)
    version = re.search(r"\d+\.\d+[\w.]*", text)
    if not kind or not version:
        return kind
    return f"{kind} v{version[0]}" if kind == "Open MPI" else f"{kind} {version[0]}"


def choose_mpi(version: str, ask: Ask, unknown: list[str]) -> tuple[str, str]:
    """Return the plug-in of srun for the MPI of this machine, and why."""
    kind = find_kind(version)
    wanted = ["pmi2", "pmix"]
    if kind == "Open MPI":
        wanted = ["pmix"] if WITHOUT_PMI2.search(version) else ["pmix", "pmi2"]
    listing, failure = ask("srun", "--mpi=list")
    offered = [] if failure else parse_mpi_types(listing)
    chosen = next((name for name in wanted if name in offered), "")
    if not kind:
        unknown.append("MPI: found no mpiexec on PATH. Look: srun --mpi=list, and the MPI's manual")
    if not chosen:
        chosen = wanted[0]
        why = failure or f"it offers {', '.join(offered) or 'nothing'}"
        unknown.append(f"plug-in for MPI: srun --mpi=list: {make_printable(why, 100)}")
        return chosen, "not checked"
    of_mpi = f"for {version}, " if kind else ""
    return chosen, f"{of_mpi}of {', '.join(offered)} (srun --mpi=list)"


def _find_account(partition: str, user: str, ask: Ask, unknown: list[str]) -> tuple[str, bool]:
    """Return the account of the user, and whether Slurm has accounts."""
    listing, failure = ask("scontrol", "show", "config")
    if not failure and re.search(rf"AccountingStorageType\s*=\s*{NO_ACCOUNTING}", listing):
        return "", False
    arguments = ("--noheader", "--parsable2", "show", "associations", "where", f"user={user}")
    listing, failure = ask("sacctmgr", *arguments, "format=Account,Partition")
    if failure:
        unknown.append(
            f"account: {make_printable(failure, 100)}. Look: sacctmgr show assoc user=$USER"
        )
        return "", True
    accounts = []
    for line in listing.splitlines():
        account, _, of_partition = line.strip().partition("|")
        if account and of_partition in ("", partition) and account not in accounts:
            accounts.append(account)
    if not accounts:
        unknown.append(
            "account: sacctmgr shows none for you. Ask the site, or: sacctmgr show assoc"
        )
        return "", True
    if len(accounts) > 1:
        unknown.append(f"account: you have {', '.join(accounts[:8])}; the first is written")
    return accounts[0], True


def _quote(text: str) -> str:
    """Return a text as YAML, in quotes if YAML might read another value."""
    is_plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_. -]*", text)
    is_word = text.lower() not in ("yes", "no", "on", "off", "true", "false", "null", "y", "n")
    return text if is_plain and is_word else json.dumps(text)


def write_platform(site: SlurmPartition) -> str:
    """Return the platform file."""
    first = site.types[0].kind
    down = f"; {site.unusable} more are down or drained" if site.unusable else ""
    most = f"; a job may have {site.most_nodes}" if site.most_nodes else ""
    lines = [
        "# yaml-language-server: $schema=../../workflow/schemas/platform.schema.json",
        f"title: {_quote(f'partition {site.partition} of Slurm')}",
        "launcher: slurm",
        f"nodes: {site.nodes}  # of the partition (scontrol show node){down}{most}",
        f"cores: {site.cores}  # {first.text} (scontrol show node)",
    ]
    if len(site.types) > 1:
        lines.append("types:  # nodes that differ (scontrol show node)")
        lines += [
            f"  {of_type.name}: {of_type.count}  # {of_type.kind.text}" for of_type in site.types
        ]
        fewer = [of_type for of_type in site.types if of_type.kind.cores < site.cores]
        if fewer:
            lines.append("fewer_cores:")
            lines += [f"  {of_type.name}: {of_type.kind.cores}" for of_type in fewer]
    lines += ["slurm:", f"  mpi: {site.mpi}  # {site.mpi_reason}"]
    gpus = {of_type.name: of_type.kind.count_gpus() for of_type in site.types}
    if len(set(gpus.values())) == 1 and any(gpus.values()):
        lines.append(f"  gpus: {max(gpus.values())}  # of a node (scontrol show node)")
    elif any(gpus.values()):
        lines.append("  gpus:  # of a node of each type (scontrol show node)")
        lines += [f"    {name}: {count}" for name, count in gpus.items() if count]
    if len(site.types) > 1:
        lines.append("  features:  # by which Slurm gives nodes of a type")
        lines += [f"    {of_type.name}: {_quote(of_type.feature)}" for of_type in site.types]
    if site.switches:
        lines.append(
            f"# Slurm names {site.switches} switches; a run learns the levels by a survey."
        )
    lines += [f"# Not learned: {text}" for text in site.unknown]
    return "\n".join(lines) + "\n"


def write_profile(site: SlurmPartition, template: str) -> str:
    """Return the profile: the template, with what this site needs in place of what another one
    needed."""
    common = template.partition(SITE_PART)[0].rstrip("\n")
    lines = [common, SITE_PART, "default-resources:"]
    limit = f"scontrol show partition; its jobs may take {site.time_limit}"
    lines.append(f"  slurm_partition: {_quote(site.partition)}  # {limit}")
    if site.account:
        lines.append(f"  slurm_account: {_quote(site.account)}  # sacctmgr show assoc user=$USER")
    if not site.has_accounting:
        lines.append("slurm-patient-no-account: true  # scontrol show config: no accounting")
    if site.is_exclusive:
        lines.append("# The partition gives whole nodes to a job, with or without --exclusive.")
    lines += [f"# Not learned: {text}" for text in site.unknown if text.startswith("account")]
    return "\n".join(lines) + "\n"


def write_experiment(platform: str, nodes: int, cores: int, template: str) -> str:
    """Return a first experiment for a platform: the template, with the platform, its nodes, and as
    many ranks on a node as it has cores, and one."""
    counts = [1]
    while 2 * counts[-1] <= min(nodes, MAX_NODES_OF_EXPERIMENT):
        counts.append(2 * counts[-1])
    per_node = [1, cores] if cores > 1 else [1]
    pairs = [(count, ranks) for count in counts for ranks in per_node if count * ranks > 1]
    if not pairs:
        raise UserError(f"found one core on platform '{platform}', wanted two at least")
    text = re.sub(r"(?m)^platform: .*$", f"platform: {platform}", template)
    nodes_text = ", ".join(str(count) for count, _ in pairs)
    text = re.sub(r"nodes: \[.*\]", f"nodes: [{nodes_text}]", text)
    ranks_text = ", ".join(str(ranks) for _, ranks in pairs)
    return re.sub(r"ranks_per_node: \[.*\]", f"ranks_per_node: [{ranks_text}]", text)
