"""Hierarchical algorithms, such as hier:inter=ring, as rules of any MPI library select them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from commodel.patterns.algorithms import find_algorithm
from commodel.records import Choice

HIER = "hier"


@dataclass(frozen=True)
class Placement:
    """The nodes of a number of ranks, and the ranks on each."""

    nodes: int
    per_node: int


def is_hierarchical(spec: str) -> bool:
    return spec.partition(":")[0] == HIER


def list_hierarchical_operations(choices: Iterable[Choice]) -> set[str]:
    """Return the operations with a hierarchical algorithm among their choices."""
    return {choice.operation for choice in choices if is_hierarchical(choice.algorithm)}


def is_spread(ranks: int, placements: Mapping[int, Placement]) -> bool:
    """Return whether every node has equally many ranks and rules for leaders, for the ranks of a
    node and for all ranks are different ones."""
    place = placements.get(ranks)
    if place is None:
        return False
    sizes = {place.nodes, place.per_node}
    is_equal = ranks == place.nodes * place.per_node
    return is_equal and len(sizes) == 2 and min(sizes) > 1 and not sizes & set(placements)


def read_composition(operation: str, spec: str) -> Any:
    """Return the Composition of a hierarchical algorithm; parts left out are the defaults."""
    algorithm, argument = find_algorithm(operation, spec)
    assert algorithm.argument is not None
    return algorithm.argument.parse(argument)
