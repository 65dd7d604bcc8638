"""Points from combinations of the matrix (`make_point`): missing values get defaults, invalid ones
are refused."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from commodel.errors import UserError, locate_mistakes
from commodel.files.cache import cache_by_files
from commodel.patterns.algorithms import (
    canonicalize_algorithm,
    find_algorithms,
    find_tree_algorithm,
)
from commodel.patterns.build import PlacedLayout, check_placement, complete_layout
from commodel.patterns.hierarchical_specs import Levels
from commodel.patterns.layouts import count_layout_ranks
from commodel.patterns.libraries import apply_substrate, has_no_schedule
from commodel.patterns.operations import (
    FILE,
    MIN_RANKS,
    canonicalize_operation,
    fill_parameters,
    find_operation,
    find_required_ranks,
    has_size,
    list_operation_files,
)
from commodel.patterns.pattern_files import AS_WRITTEN, is_pattern_file, read_pattern
from commodel.patterns.trees.topologies import canonicalize_topology, list_tree_files, make_tree
from commodel.records import LIBRARY, Point
from commodel.units import MAX_COUNT


@dataclass(frozen=True)
class PlatformResources:
    """The nodes and cores of a platform, as far as points need them."""

    name: str
    nodes: int
    cores: int  # of a node
    largest_message: int = (1 << 31) - 1
    spread: int = 0  # ranks that determine the default of ranks per node; 0: those of the point
    types: tuple[tuple[str, int], ...] = ()  # nodes of each type, in the order of the nodes
    hosts: tuple[str, ...] = ()  # names of the nodes; empty: unknown
    substrate: str = ""  # transport of messages; empty: for predictions only
    fewer_cores: tuple[tuple[str, int], ...] = ()  # cores of node types that have fewer
    gpus: tuple[tuple[str, int], ...] = ()  # of a node of each type; empty: unknown
    # group of each node, innermost level first
    levels: tuple[tuple[str, tuple[int, ...]], ...] = ()
    launcher: str = ""  # how programs are started there; empty: for predictions only

    def for_block(self, combinations: Iterable[Mapping[str, Any]]) -> "PlatformResources":
        """Return the resources for a block of the matrix: all its points have the ranks per node of
        the largest one.

        The points therefore remain alternatives of one workload.
        """
        return replace(
            self, spread=max((find_ranks(combination) for combination in combinations), default=0)
        )

    def extended(self, ranks: int) -> "PlatformResources":
        """Return the resources with as many nodes as these ranks need, for predictions. A single
        node, nodes that differ, and nodes with levels are not continued."""
        needed = -(-ranks // self.cores)
        if not 1 < self.nodes < needed or self.types or self.fewer_cores or self.levels:
            return self
        return replace(self, nodes=needed, hosts=())

    def describe_extension(self, ranks: int) -> list[str]:
        """Return a note if more nodes are assumed for these ranks."""
        nodes = self.extended(ranks).nodes
        reason = f"platform {self.name} has {self.nodes}; the others are assumed to be like these"
        return [f"EXTRAPOLATED to {nodes} nodes: {reason}"] if nodes > self.nodes else []

    @classmethod
    def unlimited(cls) -> "PlatformResources":
        """Return resources for any number of ranks, one per node by default, for predictions
        without a platform."""
        return cls("", 1 << 30, 1 << 30, largest_message=1 << 62)


def find_ranks(combination: Mapping[str, Any]) -> int:
    """Return the ranks of a combination; 0 if a mistake in it leaves them unknown."""
    name = combination["operation"]
    topology = combination.get("topology")
    try:
        if topology:
            return make_tree(topology).nodes
        return (
            combination.get("ranks")
            or (0 if is_pattern_file(name) else find_required_ranks(name))
            or 0
        )
    except UserError:
        return 0


def make_point(resources: PlatformResources, combination: Mapping[str, Any]) -> Point:
    """Return the checked and completed point of a combination of the matrix.

    The key of a UserError names the axis.
    """
    combination = apply_substrate(resources.substrate, combination)
    if is_pattern_file(combination["operation"]):
        return _make_file_point(resources, combination)
    with locate_mistakes(key="operation"):
        name = canonicalize_operation(combination["operation"])
        _check_parameters(name)
    algorithm = combination.get("algorithm", "")
    topology = combination.get("topology", "")
    ranks = combination.get("ranks")
    leaves = 0
    requested = find_required_ranks(name)
    if requested and ranks not in (None, requested):
        raise UserError(
            f"found {ranks}, but '{name}' has {requested} ranks; leave ranks out", key="ranks"
        )
    ranks = requested or ranks or (None if topology else _count_layout_ranks(combination))
    if topology:
        topology = canonicalize_topology(topology)
        with locate_mistakes(key="topology"):
            nodes, leaves = _count_tree_nodes(name, topology)
        if ranks not in (None, nodes):
            raise UserError(
                f"found {ranks}, but '{topology}' has {nodes} nodes; leave ranks out", key="ranks"
            )
        ranks = nodes
    elif algorithm:
        with locate_mistakes(key="algorithm"):
            algorithm = _find_canonical_algorithm(name, algorithm, resources.levels)
    else:
        algorithms = ", ".join(algorithm.short_name for algorithm in find_algorithms(name).values())
        wanted = f"; algorithms are {algorithms}" if algorithms else ""
        raise UserError(f"{name} needs an algorithm or a topology{wanted}", key="operation")
    if ranks is None:
        raise UserError("ranks are missing: give ranks, or nodes and ranks_per_node", key="ranks")
    if not MIN_RANKS <= ranks <= MAX_COUNT:
        raise UserError(f"found {ranks}, wanted {MIN_RANKS} to {MAX_COUNT}", key="ranks")
    size = find_message_size(resources, name, combination.get("bytes"))
    sources = {"topology": topology, "operation": requested}
    sources |= {"nodes": combination.get("nodes") and combination.get("ranks_per_node")}
    sources |= {"ranks": combination.get("ranks"), "layout": True}
    rank_source = next(name for name, value in sources.items() if value)
    placed = _complete_layout(resources, combination, ranks, rank_source)
    if algorithm and algorithm != LIBRARY:
        with locate_mistakes(key="layout"):
            check_placement(name, algorithm, placed.layout, ranks)
    fields: dict[str, Any] = {
        "leaves": leaves,
        "waves": combination.get("waves", 1),
        **placed.point_fields,
    }
    measured_only = has_no_schedule(name)
    return Point(
        platform=resources.name,
        operation=name,
        algorithm=algorithm,
        topology=topology,
        layout=placed.layout,
        ranks=ranks,
        bytes=size,
        **fields,
        measured_only=measured_only,
    )


def _make_file_point(resources: PlatformResources, combination: Mapping[str, Any]) -> Point:
    """Return the point of a pattern from a file. Its size is that of the largest message."""
    name = f"{FILE}{combination['operation'].removeprefix(FILE).strip()}"
    for key in ("algorithm", "topology", "bytes"):
        if combination.get(key) not in (None, "", AS_WRITTEN):
            raise UserError(
                f"found {combination[key]}, wanted nothing: '{name}' defines the messages", key=key
            )
    with locate_mistakes(key="operation"):
        pattern = read_pattern(name)
        size = find_message_size(resources, name, int(pattern.bytes.max()))
    if combination.get("ranks") not in (None, pattern.ranks):
        raise UserError(
            f"found {combination['ranks']}, but '{name}' has {pattern.ranks} ranks", key="ranks"
        )
    placed = _complete_layout(resources, combination, pattern.ranks, "operation")
    fields: dict[str, Any] = {"waves": combination.get("waves", 1), **placed.point_fields}
    return Point(
        platform=resources.name,
        operation=name,
        algorithm=AS_WRITTEN,
        topology="",
        layout=placed.layout,
        ranks=pattern.ranks,
        bytes=size,
        **fields,
    )


def _count_layout_ranks(combination: Mapping[str, Any]) -> int | None:
    with locate_mistakes(key="layout"):
        return count_layout_ranks(combination.get("layout") or "block")


def _complete_layout(
    resources: PlatformResources, combination: Mapping[str, Any], ranks: int, key: str
) -> PlacedLayout:
    """Return the layout of a combination. The error about one that does not fit names the layout,
    or the ranks per node, if the ranks fit in the default layout. Otherwise it names the `key` that
    gives the ranks."""
    spec = combination.get("layout") or "block"
    per_node = combination.get("ranks_per_node")
    with locate_mistakes(key="layout"):
        placed = complete_layout(resources, spec, ranks, per_node)
    if placed.obstacle and not complete_layout(resources, "block", ranks).obstacle:
        key = "ranks_per_node" if per_node else "layout"
    return placed.check(ranks, key)


def make_library_points(resources: PlatformResources, points: Iterable[Point]) -> Iterator[Point]:
    """Yield the library default of every workload and layout.

    For a tree, it is a collective of the front end and the back ends: one rank more than there are
    leaves.
    """
    workloads = set()
    for point in points:
        if (
            (point.workload, point.layout) in workloads
            or is_pattern_file(point.operation)
            or not find_operation(point.operation).mpi
        ):
            continue
        workloads.add((point.workload, point.layout))
        ranks = point.leaves + 1 if point.leaves else point.ranks
        combination = {
            "operation": point.operation,
            "algorithm": LIBRARY,
            "ranks": ranks,
            "bytes": point.bytes,
        }
        try:
            library_point = make_point(
                resources, combination | {"layout": point.layout, "waves": point.waves}
            )
        except UserError:
            continue  # a rank file for all nodes of a tree has more ranks
        yield replace(library_point, leaves=point.leaves, per_node=point.per_node)


def find_message_size(resources: PlatformResources, operation: str, requested: int | None) -> int:
    """Return the bytes of a point for which the matrix has `requested`."""
    size = requested if is_pattern_file(operation) or has_size(operation) else 0
    if size is None:
        raise UserError(f"bytes are missing; {operation} needs a message size", key="bytes")
    if size > resources.largest_message:
        raise UserError(
            f"found {size}, wanted at most {resources.largest_message}, the largest count of MPI",
            key="bytes",
        )
    return size


@cache_by_files(128, lambda name: list_operation_files(name))
def _check_parameters(name: str) -> None:
    """Raise an error if parameters of an operation contradict each other, such as n and a partition
    of a kernel."""
    check = find_operation(name).check
    if check is not None:
        ranks = find_required_ranks(name) or MIN_RANKS
        check(ranks, **fill_parameters(name, ranks))


def _find_canonical_algorithm(name: str, spec: str, levels: Levels) -> str:
    """Return the algorithm by its name in this project, with the groups of levels that it names."""
    if spec == LIBRARY:
        if not find_operation(name).mpi:
            raise UserError(
                f"found {LIBRARY}, but MPI has no {name}; wanted one of: {', '.join(find_algorithms(name))}"
            )
        return spec
    return canonicalize_algorithm(name, spec, levels)


@cache_by_files(128, lambda name, spec: list_tree_files(spec))
def _count_tree_nodes(name: str, spec: str) -> tuple[int, int]:
    """Return the nodes and leaves of a tree over which the operation can run."""
    topology = make_tree(spec)
    if not has_no_schedule(name):
        find_tree_algorithm(name)
    return topology.nodes, topology.leaves
