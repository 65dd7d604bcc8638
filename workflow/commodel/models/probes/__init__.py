"""Probes, the micro-benchmarks to which models are fitted (`Probe`), and the placement of their
ranks on a platform.

`plans` has the table of all probes. Programs are in native/probes/; a probe that only sends
messages of a schedule is run by the player.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from commodel.errors import UserError, suggest_name
from commodel.hierarchy import Hierarchy
from commodel.models.keys import SAME_NODE, Pair
from commodel.patterns.schedule import Schedule
from commodel.records import Case
from commodel.registry import discover_in_extensions
from commodel.substrates import MPI, find_substrate

PACKET = 1024  # bytes of a packet in the TAN paper's experiments
MAX_VECTOR_BYTES = 256 << 20  # bytes: longer vectors take the same time per byte
SIZE_RATIO = 4  # ratio of two successive sizes in a probe
# bytes: a protocol's size limit is a power of two, minus a header in some MPI libraries
HEADER_BYTES = 128
MIN_NODES_FOR_PARTNERS = 5  # nodes: a fit of time over the number of partners needs 4 partners
# a probe's distance classes: all, or all but that within a node
EVERYWHERE, BETWEEN = "everywhere", "between"
LOCAL_WORK_PROBES = frozenset({"work", "memcopy"})  # probes without messages
PLAYER = "player"  # program of a probe whose cases are all schedules

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Site:
    """The resources of a platform for probes. `types` counts its nodes by type, in the order of the
    nodes."""

    nodes: int
    cores: int
    types: Mapping[str, int] = field(default_factory=dict)
    simulated: bool = False
    substrate: str = MPI  # transport of messages
    # cores of node types that have fewer
    fewer_cores: Mapping[str, int] = field(default_factory=dict)
    levels: Hierarchy = field(default_factory=Hierarchy)  # network levels of the nodes
    # Bytes of the longest vector that any point reduces (`reduce`), or copies (`copy`).
    vectors: Mapping[str, int] = field(default_factory=dict)
    thinning: int = 1  # 2: slow probes use every second size

    @property
    def fewest_cores(self) -> int:
        """The cores that every node has."""
        return min(map(self.count_cores, self.members()))

    @property
    def ranks(self) -> int:
        """The most ranks that are placed evenly over all nodes."""
        return self.nodes * self.fewest_cores

    def members(self) -> dict[str, range]:
        """Return the nodes of each type."""
        members, first = {}, 0
        for name, count in (self.types or {"node": self.nodes}).items():
            members[name] = range(first, first + count)
            first += count
        return members

    def count_cores(self, type: str) -> int:
        return self.fewer_cores.get(type, self.cores)

    def find_type(self, node: int) -> str:
        return next(name for name, nodes in self.members().items() if node in nodes)


@dataclass(frozen=True)
class CasePlacement:
    """Placement of the ranks of a case: a layout on `nodes` (empty: the platform's first nodes)."""

    ranks: int
    layout: str
    nodes: tuple[int, ...] = ()
    pair: str = ""  # types of the two nodes, or the type and `same`


ProbePlan = Iterable[tuple[CasePlacement, Settings]]  # the cases of a probe


def place_spread(site: Site, ranks: int) -> CasePlacement:
    """Return ranks in blocks over all nodes. If there are two ranks, the placement names their node
    types as a pair."""
    pair = (
        str(Pair(site.find_type(0), SAME_NODE if site.nodes == 1 else site.find_type(1)))
        if ranks == 2
        else ""
    )
    return CasePlacement(ranks, f"block:{-(-ranks // site.nodes)}", pair=pair)


def place_cyclically(site: Site, ranks: int) -> CasePlacement:
    """Return ranks cyclically over all nodes, so that consecutive ranks are on different nodes if
    possible."""
    return CasePlacement(
        ranks, f"{'block' if site.nodes == 1 else 'cyclic'}:{-(-ranks // site.nodes)}"
    )


def place_one_per_node(site: Site, max_ranks: int) -> CasePlacement:
    """Return one rank on each node, at most `max_ranks`, so that all partners use the same channel.
    If there are fewer than MIN_NODES_FOR_PARTNERS nodes, several ranks share a node, and the fit
    notes this."""
    return (
        CasePlacement(min(site.nodes, max_ranks), "block:1")
        if site.nodes >= MIN_NODES_FOR_PARTNERS
        else place_cyclically(site, min(site.ranks, max_ranks))
    )


def place_on_one_node(site: Site, ranks: int) -> list[CasePlacement]:
    """Return all ranks on one node, once for each type of node with enough cores."""
    return [
        CasePlacement(ranks, f"block:{ranks}", (nodes[0],), str(Pair(name, SAME_NODE)))
        for name, nodes in site.members().items()
        if ranks <= site.count_cores(name)
    ]


def place_on_node_pairs(site: Site, per_node: int = 1) -> list[CasePlacement]:
    """Return `per_node` ranks on each of two nodes, in turn, once for each pair of node types. For
    two types these are the last node of one and the first node of the other."""
    members = {
        name: nodes for name, nodes in site.members().items() if per_node <= site.count_cores(name)
    }
    pairs = [
        (name, name, (nodes[0], nodes[1])) for name, nodes in members.items() if len(nodes) > 1
    ]
    pairs += [
        (one, two, (members[one][-1], members[two][0])) for one, two in combinations(members, 2)
    ]
    return [
        CasePlacement(2 * per_node, f"cyclic:{per_node}", nodes, str(Pair(one, two)))
        for one, two, nodes in pairs
    ]


def find_nodes_in_other_classes(site: Site, count: int, type: str = "") -> list[tuple[int, ...]]:
    """Return, for every distance class that the first two nodes do not have, a node near the middle
    of the machine and `count` others at that distance. On platforms with node types, all are of
    `type`; empty without it."""
    if not site.levels.groups or site.nodes < 2 or (site.types and not type):
        return []
    nodes = np.array(site.members()[type] if type else range(site.nodes))
    first_distance, groups = int(site.levels.distance(0, 1)), []
    for distance in range(1, len(site.levels.names)):
        for node in (
            nodes[np.argsort(abs(nodes - nodes[len(nodes) // 2]), kind="stable")]
            if distance != first_distance
            else ()
        ):
            at_distance = nodes[site.levels.distance(node, nodes) == distance]
            if len(at_distance) >= count:
                first = (len(at_distance) - count + 1) // 2
                groups.append((int(node), *at_distance[first : first + count].tolist()))
                break
    return groups


def place_in_other_classes(site: Site) -> list[CasePlacement]:
    """Return two ranks at every distance class that the first two nodes do not have, also within a
    node; on nodes of the first type."""
    first = site.find_type(0)
    far = find_nodes_in_other_classes(site, 1, first if site.types else "")
    other_classes = [CasePlacement(2, "block:1", nodes, str(Pair(first, first))) for nodes in far]
    on_one_node = place_on_one_node(site, 2) if site.levels.groups and site.nodes > 1 else []
    return [*(placement for placement in on_one_node if placement.nodes == (0,)), *other_classes]


@dataclass(frozen=True)
class Probe:
    """A probe: `plan(site, sizes)` returns the placement and the settings of each case. `columns`
    names the settings: the input of the program, or of `pattern`."""

    name: str
    title: str
    columns: tuple[str, ...]
    plan: Callable[[Site, list[int]], ProbePlan]
    program: str = ""  # if not the probe's own: that of another probe, or PLAYER
    optional: bool = False  # a platform without a case of it is accepted
    samples: int = 0  # of each case; 0: as many as the requested precision needs
    classes: str = ""  # other distance classes in which it also runs: EVERYWHERE or BETWEEN
    # the schedule of a case, if there is one
    pattern: Callable[[Settings], Schedule | None] | None = None

    @property
    def program_name(self) -> str:
        """The name of the program that runs the cases."""
        return self.program or self.name

    def cases(self, platform: str, site: Site, sizes: list[int]) -> Iterator[Case]:
        for placement, settings in self.plan(site, sizes):
            if site.substrate != MPI and not find_substrate(site.substrate).runs_case(
                self.name, settings
            ):
                continue
            yield Case(
                platform,
                self.name,
                placement.ranks,
                dict(settings),
                placement.layout,
                placement.nodes,
                placement.pair,
            )


def list_vector_sizes(site: Site, sizes: list[int], *kinds: str) -> list[int]:
    """Return sizes for local work of `kinds` (`reduce`, `copy`): those of messages from 64 B, and
    larger ones up to the longest vector of any point."""
    larger, length = [], min(max(site.vectors.get(kind, 0) for kind in kinds), MAX_VECTOR_BYTES)
    while length > max(*sizes, PACKET):
        larger.append(length)
        length //= SIZE_RATIO
    return sorted({*(size for size in sizes if size >= 64), *larger})


def list_powers_of_two(smallest: int, largest: int) -> list[int]:
    """Return the powers of two from `smallest`, a power of two, to `largest`."""
    return [1 << power for power in range(smallest.bit_length() - 1, largest.bit_length())]


def make_round_trip(bytes: int) -> Schedule:
    """Return the schedule of a round trip of `bytes` each way between two ranks."""
    return Schedule.of(2, [0, 1], [0, 1], [1, 0], bytes, root=0)


def list_counts(limit: int) -> list[int]:
    """Return 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, … and the limit itself: dense at small counts, where
    curves bend."""
    counts = sorted(
        {base << power for base in (2, 3) for power in range(limit.bit_length())} | {1, limit}
    )
    return [count for count in counts if count <= limit]


def find_probe(name: str) -> Probe:
    from commodel.models.probes.plans import PROBES  # here, since the table imports this module

    if name in PROBES:
        return PROBES[name]
    brought = discover_in_extensions("PROBE")
    if name not in brought:
        raise UserError(f"unknown probe '{name}'; {suggest_name(name, [*PROBES, *brought])}")
    return brought[name]
