"""Algorithms of collective operations (`find_algorithm`): each builds a Schedule from ranks (or a
tree) and bytes. A module defines one algorithm, or a table of those for an operation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from commodel.errors import UserError, suggest_name
from commodel.patterns.arguments import Argument, Kind
from commodel.patterns.hierarchical_specs import Composition, Levels, open_brackets
from commodel.patterns.libraries import Routine, find_routines
from commodel.patterns.operations import find_base_name
from commodel.patterns.schedule import Schedule
from commodel.patterns.trees.tree import Tree
from commodel.registry import discover

RANK_ORDER = "combines in the order of the ranks"  # needs an associative operation
ANY_ORDER = "combines in any order: the operation must commute"
ALIASES = {  # names in MPI libraries
    ("bcast", "pipeline"): "chain",
    ("reduce", "in-order-binary"): "in-order",
    ("reduce", "pipeline"): "chain",
    ("allgather", "neighbour-exchange"): "neighbor-exchange",
    ("barrier", "tree"): "binomial",
}


@dataclass(frozen=True)
class Placement:
    """Marks an algorithm whose messages depend on the node of every rank: `build` takes these as
    `node`."""

    # Returns whether the algorithm makes use of the placement, for the node of every rank.
    is_useful: Callable[[np.ndarray], bool]
    # Refuses nodes with which an argument is impossible.
    check: Callable[[Any, np.ndarray], None]
    # Returns the canonical spelling of an argument, with the groups of the platform's levels.
    canonicalize: Callable[[str, Levels], str]


@dataclass(frozen=True)
class Algorithm:
    """An algorithm for an operation: `build(ranks, bytes, argument, **parameters)` returns its
    schedule.

    `argument` is passed only to algorithms that take one (8192 for `chain:8KiB`). The parameters of
    the operation are passed by name.
    """

    operation: str
    short_name: str  # unique within the operation
    title: str
    build: Callable[..., Schedule]
    argument: Argument | None = None
    order: str = ""  # of a reduction: RANK_ORDER or ANY_ORDER
    placement: Placement | None = None  # None: messages do not depend on nodes

    @property
    def name(self) -> str:
        return f"{self.operation}-{self.short_name}"

    @property
    def form(self) -> str:
        """The syntax, such as `chain[:SEGMENT BYTES, else 8 KiB]`."""
        form = f":{self.argument.form}" if self.argument else ""
        return self.short_name + form.replace(":[", "[:")

    @property
    def needs_argument(self) -> bool:
        return self.argument is not None and not self.argument.optional

    @property
    def mpi_functions(self) -> tuple[Routine, ...]:
        """The functions of MPI libraries that send the same messages."""
        return find_routines(self.name)

    def parse_argument(self, text: str) -> tuple[Any, ...]:
        """Return the value of the argument, whose text may be empty, as a tuple; empty if there is
        no argument."""
        if self.needs_argument and not text:
            raise UserError(
                f"algorithm {self.operation} {self.short_name}: found no argument, wanted {self.form}"
            )
        if text and not self.argument:
            raise UserError(
                f"algorithm {self.operation} {self.short_name}: found argument '{text}', it takes none"
            )
        return (self.argument.read(text),) if self.argument else ()


@dataclass(frozen=True)
class TreeAlgorithm:
    """An operation over any topology: `build(tree, bytes)`."""

    operation: str
    title: str
    build: Callable[[Tree, int], Schedule]
    order: str = ""
    form: str = "over any topology"

    @property
    def name(self) -> str:
        return f"{self.operation}-tree"


def find_algorithms(operation: str) -> dict[str, Algorithm]:
    """Return the algorithms for an operation, by their short names."""
    entries = discover("patterns.algorithms", "ALGORITHM").values()
    name = find_base_name(operation)
    return {
        algorithm.short_name: algorithm
        for algorithm in entries
        if isinstance(algorithm, Algorithm) and algorithm.operation == name
    }


def find_algorithm(operation: str, spec: str) -> tuple[Algorithm, str]:
    """Return the algorithm of a spec `name` or `name:argument`, and the text of its argument."""
    name, _, argument = open_brackets(spec).partition(":")
    name = name.strip().replace("_", "-")
    argument = argument.strip()
    base_name = find_base_name(operation)
    own_name = ALIASES.get((base_name, name), name)
    entry = discover("patterns.algorithms", "ALGORITHM").get(f"{base_name}-{own_name}")
    if not isinstance(entry, Algorithm):
        aliases = [alias for owner, alias in ALIASES if owner == base_name]
        names = [*find_algorithms(operation), *aliases]
        raise UserError(f"no algorithm '{spec}' for {operation}; {suggest_name(name, names)}")
    entry.parse_argument(argument)
    return entry, argument


@lru_cache(maxsize=4096)
def find_segment(operation: str, spec: str) -> int | None:
    """Return the bytes of the smallest segments of an algorithm; None if it sends whole messages,
    or is not in the catalogue."""
    try:
        algorithm, text = find_algorithm(operation, spec)
        values = algorithm.parse_argument(text)
    except UserError:
        return None
    value = values[0] if values else None
    if isinstance(value, Composition):
        ways = [value.inter, value.intra, *(level.way for level in value.levels)]
        of_ways = [find_segment(operation, spec) for way in ways for spec in (way.up, way.down)]
        return min((size for size in (value.segment, *of_ways) if size), default=None)
    is_segment = algorithm.argument is not None and algorithm.argument.kind is Kind.SEGMENT
    return value if is_segment else None


def canonicalize_algorithm(operation: str, spec: str, levels: Levels = ()) -> str:
    """Return the spec with the name of the algorithm in this project, and with the groups of the
    platform's levels if it names some."""
    algorithm, argument = find_algorithm(operation, spec)
    if algorithm.placement and argument:
        argument = algorithm.placement.canonicalize(argument, levels)
    return f"{algorithm.short_name}:{argument}" if argument else algorithm.short_name


def find_tree_algorithm(operation: str) -> TreeAlgorithm:
    """Return the algorithm of an operation over a topology."""
    entry = discover("patterns.algorithms", "ALGORITHM").get(f"{find_base_name(operation)}-tree")
    if entry is None:
        raise UserError(
            f"{operation} does not run over a topology; give an algorithm: {', '.join(find_algorithms(operation))}"
        )
    return entry
