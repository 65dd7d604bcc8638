"""Points from combinations of names (`make_point`): missing values are filled in, invalid ones are refused."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from commodel.errors import UserError, mistakes_in
from commodel.patterns.algorithms import find_algorithms, over_tree, own_spelling
from commodel.patterns.build import PlacedLayout, full_layout
from commodel.patterns.layouts import ranks_of as layout_ranks
from commodel.patterns.libraries import has_no_schedule, on_substrate
from commodel.patterns.operations import FEWEST_RANKS, FILE, operation, parameters, ranks_of, sized
from commodel.patterns.operations import own_spelling as own_operation
from commodel.patterns.trees.topologies import own_spelling as own_tree
from commodel.patterns.trees.topologies import tree
from commodel.patterns.written import AS_WRITTEN, is_written, written
from commodel.records import LIBRARY, Point
from commodel.units import MAX_COUNT


@dataclass(frozen=True)
class Setting:
    """The resources for points of a platform."""

    name: str
    nodes: int
    cores: int  # of a node
    largest_message: int = (1 << 31) - 1
    spread: int = 0  # ranks to spread over the nodes if a layout leaves it open; 0: those of the point
    types: tuple[tuple[str, int], ...] = ()  # nodes of each type, in the order of the nodes
    hosts: tuple[str, ...] = ()  # names of the nodes, if known
    substrate: str = ""  # transport of messages; empty: predicted only
    fewer_cores: tuple[tuple[str, int], ...] = ()  # cores of node types that have fewer
    levels: tuple[tuple[str, tuple[int, ...]], ...] = ()  # group of each node, innermost level first

    def for_block(self, combinations: Iterable[Mapping[str, object]]) -> "Setting":
        """Return the setting of a block of the matrix: all points get the ranks per node that its largest one needs.

        They then remain alternatives to each other.
        """
        return replace(self, spread=max((find_ranks(combination) for combination in combinations), default=0))

    def extended(self, ranks: int) -> "Setting":
        """Return the setting with as many nodes as these ranks need, for predictions. A single node, and nodes that
        differ, are not continued."""
        needed = -(-ranks // self.cores)
        if not 1 < self.nodes < needed or self.types or self.fewer_cores or self.levels:
            return self
        return replace(self, nodes=needed, hosts=())

    def describe_extension(self, extended: "Setting") -> list[str]:
        """Return a note if the extended setting has more nodes than this one."""
        if extended.nodes <= self.nodes:
            return []
        reason = f"platform {self.name} has {self.nodes}; the others are assumed to be like these"
        return [f"EXTRAPOLATED to {extended.nodes} nodes: {reason}"]

    @classmethod
    def unlimited(cls) -> "Setting":
        """Return a setting with room for any number of ranks, one per node by default, for predictions without a
        platform."""
        return cls("", 1 << 30, 1 << 30, largest_message=1 << 62)


def find_ranks(combination: Mapping[str, object]) -> int:
    """Return the ranks of a combination; 0 if a mistake in it leaves them unknown."""
    name, topology = combination["operation"], combination.get("topology")
    try:
        if topology:
            return tree(topology).nodes
        return combination.get("ranks") or (0 if is_written(name) else ranks_of(name)) or 0
    except UserError:
        return 0


def make_point(setting: Setting, combination: Mapping[str, object]) -> Point:
    """Return the point of a combination of the matrix, checked and filled in.

    The key of a UserError names the axis.
    """
    combination = on_substrate(setting.substrate, combination)
    if is_written(combination["operation"]):
        return _written_point(setting, combination)
    with mistakes_in(key="operation"):
        name = own_operation(combination["operation"])
        _check_rectangles(name)
    chosen, topology = combination.get("algorithm", ""), combination.get("topology", "")
    ranks, leaves = combination.get("ranks"), 0
    requested = ranks_of(name)
    if requested and ranks not in (None, requested):
        raise UserError(f"found {ranks}, but '{name}' has {requested} ranks; leave ranks out", key="ranks")
    ranks = requested or ranks or (None if topology else _placed_ranks(combination))
    if topology:
        topology = own_tree(topology)
        with mistakes_in(key="topology"):
            nodes, leaves = _tree_facts(name, topology)
        if ranks not in (None, nodes):
            raise UserError(f"found {ranks}, but '{topology}' has {nodes} nodes; leave ranks out", key="ranks")
        ranks = nodes
    elif chosen:
        with mistakes_in(key="algorithm"):
            chosen = _own_algorithm(name, chosen)
    else:
        raise UserError(f"{name} needs an algorithm or a topology", key="operation")
    if ranks is None:
        raise UserError("ranks are missing: give ranks, or nodes and ranks_per_node", key="ranks")
    if not FEWEST_RANKS <= ranks <= MAX_COUNT:
        raise UserError(f"found {ranks}, wanted {FEWEST_RANKS} to {MAX_COUNT}", key="ranks")
    size = message_size(setting, name, combination.get("bytes"))
    placed = _placed(setting, combination, ranks, "topology" if topology else "ranks")
    room = {"leaves": leaves, "waves": combination.get("waves", 1), **placed.room}
    return Point(
        setting.name, name, chosen, topology, placed.layout, ranks, size, **room, measured_only=has_no_schedule(name)
    )


def _written_point(setting: Setting, combination: Mapping[str, object]) -> Point:
    """Return the point of a pattern from a file, which leaves only the layout open. Its size is that of its largest
    message."""
    name = f"{FILE}{combination['operation'].removeprefix(FILE).strip()}"
    for key in ("algorithm", "topology", "bytes"):
        if combination.get(key) not in (None, "", AS_WRITTEN):
            raise UserError(f"found {combination[key]}, wanted nothing: '{name}' defines the messages", key=key)
    with mistakes_in(key="operation"):
        pattern = written(name)
        size = message_size(setting, name, int(pattern.bytes.max()))
    if combination.get("ranks") not in (None, pattern.ranks):
        raise UserError(f"found {combination['ranks']}, but '{name}' has {pattern.ranks} ranks", key="ranks")
    placed = _placed(setting, combination, pattern.ranks, "operation")
    room = {"waves": combination.get("waves", 1), **placed.room}
    return Point(setting.name, name, AS_WRITTEN, "", placed.layout, pattern.ranks, size, **room)


def _placed_ranks(combination: Mapping[str, object]) -> int | None:
    with mistakes_in(key="layout"):
        return layout_ranks(combination.get("layout") or "block")


def _placed(setting: Setting, combination: Mapping[str, object], ranks: int, key: str) -> PlacedLayout:
    with mistakes_in(key="layout"):
        placed = full_layout(setting, combination.get("layout") or "block", ranks, combination.get("ranks_per_node"))
    return placed.checked(ranks, key)


def library_beside(setting: Setting, points: Iterable[Point]) -> Iterator[Point]:
    """Yield for every workload, and each layout in it, the MPI library's own collective.

    For a tree, this is a collective of the front end and the back ends, one rank more than there are leaves, without
    inner nodes.
    """
    done = set()
    for point in points:
        if (point.workload, point.layout) in done or is_written(point.operation) or not operation(point.operation).mpi:
            continue
        done.add((point.workload, point.layout))
        ranks = point.leaves + 1 if point.leaves else point.ranks
        same = {"operation": point.operation, "ranks": ranks, "bytes": point.bytes, "layout": point.layout}
        same["waves"] = point.waves
        try:
            library_point = make_point(setting, same | {"algorithm": LIBRARY})
        except UserError:
            continue  # a rank file for all nodes of a tree does not cover so few ranks
        yield replace(library_point, leaves=point.leaves, per_node=point.per_node)


def message_size(setting: Setting, operation: str, requested: int | None) -> int:
    """Return the bytes of a point for which the matrix has `requested`."""
    size = requested if is_written(operation) or sized(operation) else 0
    if size is None:
        raise UserError(f"bytes are missing; {operation} needs a message size", key="bytes")
    if size > setting.largest_message:
        raise UserError(
            f"found {size}, wanted at most {setting.largest_message}, which is what MPI counts", key="bytes"
        )
    return size


@lru_cache
def _check_rectangles(name: str) -> None:
    """Raise an error if parameters of a kernel contradict each other, such as n and a partition."""
    if (tiles := operation(name).tiles) is not None:
        ranks = ranks_of(name) or FEWEST_RANKS
        tiles(ranks, **parameters(name, ranks))


def _own_algorithm(name: str, spec: str) -> str:
    """Return the algorithm by its name in this project."""
    if spec == LIBRARY:
        if not operation(name).mpi:
            raise UserError(
                f"found {LIBRARY}, but MPI has no {name}; wanted one of: {', '.join(find_algorithms(name))}"
            )
        return spec
    return own_spelling(name, spec)


@lru_cache
def _tree_facts(name: str, spec: str) -> tuple[int, int]:
    """Return the nodes and leaves of a tree over which the operation can run."""
    topology = tree(spec)
    if not has_no_schedule(name):
        over_tree(name)
    return topology.nodes, topology.leaves
