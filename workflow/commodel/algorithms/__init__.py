"""Collective operations and the algorithms for them: each file builds one Schedule from ranks (or a tree) and bytes."""

from collections.abc import Callable
from dataclasses import dataclass

from commodel.errors import UserError, suggest
from commodel.registry import discover
from commodel.schedule import Schedule
from commodel.tree import Tree

OPERATIONS = {  # what `bytes` means
    "bcast": "the message that the root sends to all",
    "gather": "the block that each rank sends to the root",
    "reduce": "the vector that every rank contributes, and the root's result",
    "allreduce": "the vector that every rank contributes, and everyone's result",
    "allgather": "the block that each rank sends to all",
    "barrier": "nothing: always 0",
}
ALIASES = {"broadcast": "bcast"}


@dataclass(frozen=True)
class Algorithm:
    """`build(ranks, bytes, argument)`; `argument` is what stands after the colon of `chain:4KiB`, often nothing."""

    operation: str
    choice: str
    title: str
    build: Callable[[int, int, str], Schedule]
    argument: str = ""  # how the argument is written; empty where there is none

    @property
    def name(self) -> str:
        return f"{self.operation}-{self.choice}"


@dataclass(frozen=True)
class TreeAlgorithm:
    """An operation over any topology: `build(tree, bytes)`."""

    operation: str
    title: str
    build: Callable[[Tree, int], Schedule]

    @property
    def name(self) -> str:
        return f"{self.operation}-tree"


def operation(name: str) -> str:
    """The operation's own name; `broadcast` is understood."""
    name = ALIASES.get(name, name)
    if name not in OPERATIONS:
        raise UserError(f"unknown operation '{name}'; {suggest(name, OPERATIONS)}")
    return name


def choices(operation: str) -> dict[str, Algorithm]:
    """The algorithms for an operation, by the name a user gives."""
    entries = discover("algorithms", "ALGORITHM").values()
    return {entry.choice: entry for entry in entries if isinstance(entry, Algorithm) and entry.operation == operation}


def algorithm(operation: str, spec: str) -> tuple[Algorithm, str]:
    """The algorithm that `name` or `name:argument` means for an operation, and its argument."""
    name, _, argument = spec.partition(":")
    known = choices(operation)
    entry = known.get(name.strip().replace("_", "-"))
    if entry is None:
        raise UserError(f"no algorithm '{spec}' for {operation}; {suggest(name, known)}")
    if argument and not entry.argument:
        raise UserError(f"algorithm {operation} {entry.choice}: found argument '{argument}', it takes none")
    return entry, argument.strip()


def over_tree(operation: str) -> TreeAlgorithm:
    """How an operation runs over a topology."""
    entry = discover("algorithms", "ALGORITHM").get(f"{operation}-tree")
    if entry is None:
        raise UserError(f"{operation} does not run over a topology; give an algorithm: {', '.join(choices(operation))}")
    return entry
