"""Algorithms for collective operations: each file builds one Schedule from ranks (or a tree) and bytes."""

from collections.abc import Callable
from dataclasses import dataclass

from commodel.errors import UserError, suggest
from commodel.patterns.libraries import Routine, routines
from commodel.patterns.operations import base
from commodel.patterns.schedule import Schedule
from commodel.patterns.trees.tree import Tree
from commodel.registry import discover

RANK_ORDER = "combines in the order of the ranks"  # an associative operation is enough
ANY_ORDER = "combines in any order: the operation must commute"
ELSEWHERE = {  # what MPI libraries call some of them
    ("bcast", "pipeline"): "chain",
    ("reduce", "in-order-binary"): "in-order",
    ("reduce", "pipeline"): "chain",
    ("allgather", "neighbour-exchange"): "neighbor-exchange",
    ("barrier", "tree"): "binomial",
}


@dataclass(frozen=True)
class Algorithm:
    """`build(ranks, bytes, argument)`, with its operation's parameters by name where there are any; `argument` is what
    stands after the colon of `chain:4KiB`, often nothing."""

    operation: str
    choice: str
    title: str
    build: Callable[..., Schedule]
    argument: str = ""  # how the argument is written; empty where there is none
    order: str = ""  # of a reduction: RANK_ORDER or ANY_ORDER

    @property
    def name(self) -> str:
        return f"{self.operation}-{self.choice}"

    @property
    def needs_argument(self) -> bool:
        return bool(self.argument) and not self.argument.startswith("[")

    @property
    def like(self) -> tuple[Routine, ...]:
        """The functions of MPI libraries that send the same messages."""
        return routines(self.name)


@dataclass(frozen=True)
class TreeAlgorithm:
    """An operation over any topology: `build(tree, bytes)`."""

    operation: str
    title: str
    build: Callable[[Tree, int], Schedule]
    order: str = ""

    @property
    def name(self) -> str:
        return f"{self.operation}-tree"


def choices(operation: str) -> dict[str, Algorithm]:
    """The algorithms for an operation, by the name a user gives."""
    entries, name = discover("patterns.algorithms", "ALGORITHM").values(), base(operation)
    return {entry.choice: entry for entry in entries if isinstance(entry, Algorithm) and entry.operation == name}


def algorithm(operation: str, spec: str) -> tuple[Algorithm, str]:
    """The algorithm that `name` or `name:argument` means for an operation, and its argument."""
    name, _, argument = spec.partition(":")
    name = name.strip().replace("_", "-")
    known = choices(operation)
    entry = known.get(ELSEWHERE.get((base(operation), name), name))
    if entry is None:
        elsewhere = [other for owner, other in ELSEWHERE if owner == base(operation)]
        raise UserError(f"no algorithm '{spec}' for {operation}; {suggest(name, [*known, *elsewhere])}")
    if argument and not entry.argument:
        raise UserError(f"algorithm {entry.operation} {entry.choice}: found argument '{argument}', it takes none")
    if entry.needs_argument and not argument:
        wanted = f"wanted {entry.choice}:{entry.argument}"
        raise UserError(f"algorithm {entry.operation} {entry.choice}: found no argument, {wanted}")
    return entry, argument.strip()


def own_spelling(operation: str, spec: str) -> str:
    """As an algorithm is called here, with its argument."""
    entry, argument = algorithm(operation, spec)
    return f"{entry.choice}:{argument}" if argument else entry.choice


def over_tree(operation: str) -> TreeAlgorithm:
    """How an operation runs over a topology."""
    entry = discover("patterns.algorithms", "ALGORITHM").get(f"{base(operation)}-tree")
    if entry is None:
        raise UserError(f"{operation} does not run over a topology; give an algorithm: {', '.join(choices(operation))}")
    return entry
