"""From a combination of names to a Point: everything that is left open filled in, everything wrong refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from commodel.algorithms import algorithm, operation, over_tree
from commodel.config import Platform
from commodel.errors import UserError
from commodel.layouts import parse as parse_layout
from commodel.records import Point
from commodel.topologies import tree


@dataclass(frozen=True)
class Setting:
    """Where points run, and how much room there is."""

    name: str
    nodes: int
    cores: int

    @classmethod
    def of(cls, name: str, platform: Platform) -> "Setting":
        return cls(name, platform.nodes, platform.cores)

    @classmethod
    def unlimited(cls) -> "Setting":
        """Any number of ranks, one a node unless a layout says otherwise: for pricing without a platform."""
        return cls("", 1 << 30, 1 << 30)


def make_point(setting: Setting, combination: Mapping[str, object]) -> Point:
    """One combination of the matrix, checked and with everything filled in that it leaves open."""
    name = operation(combination["operation"])
    chosen, topology = combination.get("algorithm", ""), combination.get("topology", "")
    if topology:
        ranks, leaves = _tree_size(name, topology)
        if combination.get("ranks", ranks) != ranks:
            raise UserError(
                f"topology '{topology}' has {ranks} nodes, found ranks {combination['ranks']}; leave ranks out"
            )
    else:
        if not chosen:
            raise UserError(f"{name} needs an algorithm or a topology")
        _known_algorithm(name, chosen)
        ranks, leaves = combination.get("ranks"), 0
        if ranks is None:
            raise UserError("ranks are missing: give ranks, or nodes and ranks_per_node")
    if ranks < 2:
        raise UserError(f"found ranks {ranks}, wanted at least 2")
    size = 0 if name == "barrier" else combination.get("bytes")
    if size is None:
        raise UserError(f"bytes are missing; {name} needs a message size")
    layout = _full_layout(setting, combination.get("layout", "block"), ranks, combination.get("ranks_per_node"))
    return Point(setting.name, name, chosen, topology, layout, ranks, size, leaves)


@lru_cache
def _known_algorithm(name: str, spec: str) -> None:
    entry, argument = algorithm(name, spec)
    entry.build(2, 1, argument)  # an argument that cannot be read is found now


@lru_cache
def _tree_size(name: str, spec: str) -> tuple[int, int]:
    over_tree(name)
    found = tree(spec)
    return found.nodes, found.leaves


@lru_cache(maxsize=65536)
def _full_layout(setting: Setting, spec: str, ranks: int, asked: int | None) -> str:
    """The layout with its ranks a node: as written, else as ranks_per_node says, else spread over all nodes."""
    entry, written = parse_layout(spec)
    if written and asked and written != asked:
        raise UserError(f"layout '{spec}' and ranks_per_node {asked} do not agree")
    per_node = written or asked or -(-ranks // setting.nodes)
    needed = -(-ranks // per_node)
    if per_node > setting.cores or needed > setting.nodes:
        raise UserError(
            f"ranks {ranks} as {entry.name}:{per_node} need {needed} nodes of {per_node} cores; "
            f"platform '{setting.name}' has {setting.nodes} of {setting.cores}"
        )
    return f"{entry.name}:{per_node}"


def nodes_of(point: Point) -> int:
    return -(-point.ranks // int(point.layout.partition(":")[2]))
