"""From a combination of names to a Point: everything that is left open filled in, everything wrong refused."""

import hashlib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

from commodel.algorithms import algorithm, operation, over_tree
from commodel.config import Platform
from commodel.errors import UserError
from commodel.layouts import parse as parse_layout
from commodel.records import Point, digest
from commodel.topologies import tree


@dataclass(frozen=True)
class Setting:
    """Where points run, and how much room there is."""

    name: str
    nodes: int
    cores: int
    largest_message: int = (1 << 31) - 1
    spread: int = 0  # ranks that are to be spread over the nodes where no layout says how; 0: those of the point

    @classmethod
    def of(cls, name: str, platform: Platform) -> "Setting":
        return cls(name, platform.nodes, platform.cores)

    def for_block(self, combinations: Iterable[Mapping[str, object]]) -> "Setting":
        """The setting of a block of the matrix: its points all get as many ranks a node as its largest one needs, so
        that they stay alternatives to each other."""
        return replace(self, spread=max((_ranks(combination) for combination in combinations), default=0))

    @classmethod
    def unlimited(cls) -> "Setting":
        """Any number of ranks, one a node unless a layout says otherwise: for pricing without a platform."""
        return cls("", 1 << 30, 1 << 30, largest_message=1 << 62)


def _ranks(combination: Mapping[str, object]) -> int:
    """The ranks of a combination, 0 where they are not known yet because something in it is wrong."""
    topology = combination.get("topology")
    if not topology:
        return combination.get("ranks") or 0
    try:
        return tree(topology).nodes
    except UserError:
        return 0


def make_point(setting: Setting, combination: Mapping[str, object]) -> Point:
    """One combination of the matrix, checked and with everything filled in that it leaves open. The key of a UserError
    says which axis it is about."""
    with _about("operation"):
        name = operation(combination["operation"])
    chosen, topology = combination.get("algorithm", ""), combination.get("topology", "")
    ranks, leaves = combination.get("ranks"), 0
    if topology:
        with _about("topology"):
            nodes, leaves, pattern = _tree_facts(name, topology)
        if ranks not in (None, nodes):
            raise UserError(f"found {ranks}, but '{topology}' has {nodes} nodes; leave ranks out", key="ranks")
        ranks = nodes
    elif chosen:
        with _about("algorithm"):
            pattern = _algorithm_facts(name, chosen)
    else:
        raise UserError(f"{name} needs an algorithm or a topology", key="operation")
    if ranks is None:
        raise UserError("ranks are missing: give ranks, or nodes and ranks_per_node", key="ranks")
    if ranks < 2:
        raise UserError(f"found {ranks}, wanted at least 2", key="ranks")
    size = message_size(setting, name, combination.get("bytes"))
    with _about("layout"):
        layout, per_node = _full_layout(
            setting, combination.get("layout", "block"), ranks, combination.get("ranks_per_node")
        )
    needed = -(-ranks // per_node)
    if per_node > setting.cores or needed > setting.nodes:
        room = f"platform '{setting.name}' has {setting.nodes} of {setting.cores}"
        asked = f"{ranks} ranks as {layout} need {needed} nodes of {per_node} cores"
        raise UserError(f"{asked}; {room}", key="topology" if topology else "ranks")
    return Point(setting.name, name, chosen, topology, layout, ranks, size, leaves, needed, pattern)


def message_size(setting: Setting, operation: str, asked: int | None) -> int:
    """The bytes of a point where the matrix says `asked`."""
    size = 0 if operation == "barrier" else asked
    if size is None:
        raise UserError(f"bytes are missing; {operation} needs a message size", key="bytes")
    if size > setting.largest_message:
        raise UserError(
            f"found {size}, wanted at most {setting.largest_message}, which is what MPI counts", key="bytes"
        )
    return size


@contextmanager
def _about(key: str) -> Iterator[None]:
    try:
        yield
    except UserError as error:
        raise UserError(error.message, key=key) from None


@lru_cache
def _algorithm_facts(name: str, spec: str) -> str:
    """The digest of the algorithm's code."""
    entry, argument = algorithm(name, spec)
    entry.build(2, 1, argument)  # an argument that cannot be read is found now
    return digest(inspect.getsource(inspect.getmodule(entry.build)), 8)


@lru_cache
def _tree_facts(name: str, spec: str) -> tuple[int, int, str]:
    """Nodes and leaves of a tree, and the digest of the tree itself and of the code that runs over it."""
    code = inspect.getsource(inspect.getmodule(over_tree(name).build))
    found = tree(spec)
    return found.nodes, found.leaves, digest([code, hashlib.blake2b(found.parent.tobytes()).hexdigest()], 8)


@lru_cache(maxsize=65536)
def _full_layout(setting: Setting, spec: str, ranks: int, asked: int | None) -> tuple[str, int]:
    """The layout with its ranks a node: as written, else as ranks_per_node says, else spread over all nodes."""
    entry, written = parse_layout(spec)
    if written and asked and written != asked:
        raise UserError(f"found '{spec}' beside ranks_per_node {asked}; they do not agree")
    per_node = written or asked or -(-max(ranks, setting.spread) // setting.nodes)
    return f"{entry.name}:{per_node}", per_node
