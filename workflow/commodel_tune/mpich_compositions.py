"""Rules for MPICH's compositions of an operation among the leaders of nodes and one within each node.

MPICH has two selections: that of compositions (MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE,
`format_compositions`), and that of algorithms over a network (`mpich_selection.py`), which also
holds for the leaders. A composition such as hier:inter=rabenseifner therefore needs a rule in both:
one for all ranks, and one for as many ranks as nodes. Within nodes MPICH uses shared memory or
algorithms of its own. MPICH composes only on several nodes with several ranks, and only if a
reduction commutes; in all other cases the selection that is built into the library decides.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import pairwise

from commodel.records import LIBRARY, Choice
from commodel_tune.hierarchical import (
    HIER,
    Placement,
    is_hierarchical,
    is_spread,
    list_hierarchical_operations,
    read_composition,
)
from commodel_tune.mpich_selection import Tree, find_function

COMPOSITIONS_FILE = "compositions.json"
COMPOSITIONS_KEY = '"composition=MPIDI_'
# The composition through leaders, and that without nodes.
COMPOSITIONS = {
    "allreduce": ("alpha", "beta"),
    "bcast": ("alpha", "gamma"),
    "reduce": ("alpha", "gamma"),
}
SPECS_BETWEEN = {
    "allreduce": ("recursive-doubling", "rabenseifner"),
    "bcast": ("binomial", "scatter-allgather", "scatter-allgather-ring"),
    "reduce": ("binomial", "rabenseifner"),
}


def list_composition_specs(operation: str) -> list[str]:
    """Return the compositions to try for an operation."""
    return [f"{HIER}:inter={between}" for between in SPECS_BETWEEN.get(operation, ())]


def find_algorithm_between(operation: str, spec: str) -> str:
    """Return the algorithm among the leaders."""
    return str(read_composition(operation, spec).inter.up)


def can_name_composition(
    operation: str, spec: str, ranks: int, placements: Mapping[int, Placement]
) -> bool:
    """Return whether the two selections can name a composition."""
    if operation not in COMPOSITIONS or not is_spread(ranks, placements):
        return False
    between = find_algorithm_between(operation, spec)
    return bool(find_function(operation, between, placements[ranks].nodes))


def list_calls_of_leaders(choice: Choice, place: Placement) -> list[Choice]:
    """Return the choice of the algorithm among the leaders."""
    between = find_algorithm_between(choice.operation, choice.algorithm)
    return [Choice(choice.operation, place.nodes, choice.bytes, between)]


def format_compositions(choices: Iterable[Choice], built_in: Tree) -> str:
    """Return the text of the file: the library's own tree, with the choices before it. Empty without
    a composition."""
    choices = sorted(choices)
    composed = list_hierarchical_operations(choices)
    tree = dict(built_in)
    for operation in sorted(composed):
        name = f"collective={operation}"
        own = built_in[name]["comm_type=intra"]
        by_ranks: dict[int, list[Choice]] = {}
        for choice in choices:
            if choice.operation == operation:
                by_ranks.setdefault(choice.ranks, []).append(choice)
        selected: Tree = {"comm_size=node_comm_size": own}
        for ranks, of_ranks in by_ranks.items():  # a rule holds for exactly its number of ranks
            selected.setdefault(f"comm_size<={ranks - 1}", own)
            by_size = _make_size_tree(of_ranks, own)
            if operation != "bcast":
                by_size = {"is_commutative=yes": by_size, "is_commutative=no": own}
            selected[f"comm_size<={ranks}"] = by_size
        selected["comm_size=any"] = own
        intra = {"comm_hierarchy=parent": selected, "comm_hierarchy=any": own}
        tree[name] = {**built_in[name], "comm_type=intra": intra}
    return json.dumps(tree, indent=1) + "\n" if composed else ""


def _make_size_tree(choices: list[Choice], built_in: Tree) -> Tree:
    """Return the tree of one number of ranks: each choice from its size to the next."""
    tree: Tree = {f"avg_msg_size<{choices[0].bytes}": built_in} if choices[0].bytes else {}
    for choice, following in pairwise(choices):
        tree[f"avg_msg_size<{following.bytes}"] = _make_composition_tree(choice, built_in)
    tree["avg_msg_size=any"] = _make_composition_tree(choices[-1], built_in)
    return tree


def _make_composition_tree(choice: Choice, built_in: Tree) -> Tree:
    if choice.algorithm == LIBRARY:
        return built_in
    through_leaders, flat = COMPOSITIONS[choice.operation]
    letter = through_leaders if is_hierarchical(choice.algorithm) else flat
    return {f"composition=MPIDI_{choice.operation.capitalize()}_intra_composition_{letter}": {}}
