"""Surveys: which platforms a run surveys before its probes, and the networks that were learned from
surveys.

A survey times pairs of nodes (probe `nodepairs`). What is learned is kept as
networks/PLATFORM-DIGEST.yaml in the project: `load_platform` takes the levels of a platform from
there if its file names none. `write_network` keeps one, `read_network` returns it.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from annotated_types import Len
from pydantic import TypeAdapter

from commodel.errors import UserError
from commodel.files.atomic import write_text
from commodel.files.fields import HOST
from commodel.files.typed_records import parse_record
from commodel.files.yaml import format_yaml, read_yaml
from commodel.hierarchy import Hierarchy
from commodel.models.probes.node_pairs import MIN_NODES
from commodel.platforms.platform import Platform
from commodel.records import Batch, Count, Plan

SURVEY_FOLDER = "networks"
PROBE = "nodepairs"
BATCH_INFIX = "-survey-"  # between platform and digest in the name of a batch
FILE_HEADER = """# The network of platform {platform}, learned from times between pairs of nodes. Written by a run.
# Delete this file to survey the network again; `levels:` in the platform file has precedence.
"""

Group = Annotated[tuple[Count, ...], Len(max_length=1 << 20)]


@dataclass(frozen=True)
class LearnedNetwork:
    """The levels of a platform's nodes, as determined by a survey."""

    platform: str
    digest: str  # of the platform that was surveyed
    experiment: str  # whose run surveyed it
    date: str
    pairs: Count  # that were timed
    hosts: tuple[HOST, ...] = ()  # names of the nodes; empty if they have none
    # group of each node, innermost level first
    levels: dict[str, Group] = field(default_factory=dict)
    slow: tuple[str, ...] = ()  # nodes all of whose pairs are slow
    notes: tuple[str, ...] = ()  # what the times of pairs do not determine


NETWORK_ADAPTER = TypeAdapter(LearnedNetwork)


def find_network_file(platform: str, digest: str, root: str | Path = ".") -> Path:
    return Path(root) / SURVEY_FOLDER / f"{platform}-{digest}.yaml"


def read_network(name: str, digest: str, root: str | Path = ".") -> LearnedNetwork | None:
    """Return the network learned for a platform; None if it was not surveyed, or has changed
    since."""
    path = find_network_file(name, digest, root)
    if not path.is_file():
        return None
    document = read_yaml(path)
    network = parse_record(NETWORK_ADAPTER, document.data, document)
    if network.digest != digest:
        raise document.error(
            ("digest",), f"found '{network.digest}', wanted {digest}, as in the file's name"
        )
    try:
        Hierarchy.of(network.levels)
    except UserError as error:
        raise document.error(("levels",), error.message) from None
    return network


def read_learned(name: str, platform: Platform, root: str | Path = ".") -> LearnedNetwork | None:
    """Return the network learned for a platform whose file names no levels; None if there is
    none."""
    network = read_network(name, platform.digest, root) if _can_be_surveyed(platform) else None
    if network is None:
        return None
    counts = {f"levels.{level}": len(column) for level, column in network.levels.items()}
    if platform.takes_hosts_from_job and (network.levels or network.hosts):
        counts["hosts"] = len(set(network.hosts))
    for key, count in counts.items():
        if count != platform.nodes:
            message = f"found {count} nodes, wanted the platform's {platform.nodes}"
            raise UserError(message, file=find_network_file(name, platform.digest, root), key=key)
    return network


def _can_be_surveyed(platform: Platform) -> bool:
    """Return whether a platform has enough nodes for a survey, and its file names no levels."""
    return platform.uses_mpi and not platform.levels and platform.nodes >= MIN_NODES


def write_network(network: LearnedNetwork) -> Path:
    path = find_network_file(network.platform, network.digest)
    document = {name: value for name, value in asdict(network).items() if value}
    document["levels"] = {level: list(column) for level, column in network.levels.items()}
    document |= {
        name: list(document[name]) for name in ("hosts", "slow", "notes") if name in document
    }
    write_text(path, FILE_HEADER.format(platform=network.platform) + format_yaml(document))
    return path


def needs_survey(platform: Platform, name: str, experiment: str, root: str | Path = ".") -> bool:
    """Return whether a run of an experiment surveys a platform: it can be surveyed, and was not by
    another experiment."""
    if not _can_be_surveyed(platform):
        return False
    learned = read_learned(name, platform, root)
    return learned is None or learned.experiment == experiment


def list_networks_needed(plan: Plan, name: str) -> list[str]:
    """Return the network file that a batch depends on: its probes by the levels, a Slurm job also
    by the hosts."""
    batch = plan.batch(name)
    platform = plan.platforms[batch.platform]
    surveyed = any(is_survey(other) and other.platform == batch.platform for other in plan.batches)
    depends = platform.hosts or (surveyed and (batch.cases or platform.launcher == "slurm"))
    return (
        [str(find_network_file(batch.platform, platform.digest))]
        if depends and not is_survey(batch)
        else []
    )


def list_hosts(plan: Plan, batch: Batch) -> tuple[str, ...]:
    """Return the hosts that a batch has to run on, in the order of its nodes; none if any will
    do."""
    return () if is_survey(batch) else plan.platforms[batch.platform].hosts[: batch.nodes]


def is_survey(batch: Batch) -> bool:
    return BATCH_INFIX in batch.name and not batch.points
