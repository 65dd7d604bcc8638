"""Rules for the hierarchical algorithms of Open MPI's component `han`.

han's `simple` algorithms call collectives of `tuned` within each node and among the leaders of
nodes. Three things together select a hierarchical algorithm, such as
hier:inter=recursive-doubling:intra=binomial+binomial-near:

- a file of han (`format_han_rules`) names the ranks and sizes at which han does an operation; at
  all others `tuned` does it;
- rules of `tuned` for as many ranks as nodes, and as a node has, name the inner algorithms
  (`add_inner_choices`);
- variables give han a higher priority and its simple algorithms (`make_han_environment`).

Numbers of collectives and levels are digits, as Open MPI 4.1 and 5.0 both read them. Components are
names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from commodel.errors import UserError
from commodel.interchange.rules import COLLECTIVE_NUMBERS, Assumptions, can_select
from commodel.records import LIBRARY, Choice
from commodel_tune.hierarchical import (
    HIER,
    Placement,
    is_hierarchical,
    is_spread,
    list_hierarchical_operations,
    read_composition,
)

HAN_FILE = "han.conf"
HAN_PRIORITY = "100"  # above that of `tuned` with rules
GLOBAL_LEVEL = 2  # han's number of the level of a whole communicator
# All operations that han has. Without a rule, it would do them in place of `tuned`.
HAN_OPERATIONS = ("allgather", "allreduce", "barrier", "bcast", "gather", "reduce", "scatter")
# The operations within a node, in the order of UP+DOWN; that among the leaders is the same one.
OPERATIONS_WITHIN = {
    "allgather": ("gather", "bcast"),
    "allreduce": ("reduce", "bcast"),
    "bcast": ("bcast",),
    "gather": ("gather",),
    "reduce": ("reduce",),
    "scatter": ("scatter",),
}
# Algorithms to try among the leaders. Within nodes, each operation has one algorithm, because all
# hierarchical algorithms share the rules for the ranks of a node.
SPECS_BETWEEN = {
    "allgather": ("recursive-doubling", "bruck", "ring"),
    "allreduce": ("recursive-doubling", "rabenseifner", "ring"),
    "bcast": ("binomial-near", "linear", "scatter-allgather"),
    "gather": ("binomial", "linear"),
    "reduce": ("binomial", "linear", "rabenseifner"),
    "scatter": ("binomial", "linear"),
}
BLOCK_OPERATIONS = ("allgather", "gather", "scatter")  # leaders exchange the blocks of their nodes


def list_han_specs(operation: str, assumptions: Assumptions) -> list[str]:
    """Return the hierarchical algorithms to try for an operation."""
    within = {
        # a binomial reduction combines operands in another order
        "reduce": "binomial" if assumptions.commutative else "linear",
        "bcast": "binomial-near",
        "gather": "binomial",
        "scatter": "binomial",
    }
    parts = [within[inner] for inner in OPERATIONS_WITHIN.get(operation, ())]
    intra = "+".join(parts)
    return [f"{HIER}:inter={between}:intra={intra}" for between in SPECS_BETWEEN.get(operation, ())]


def can_name_hierarchical(
    operation: str,
    spec: str,
    ranks: int,
    placements: Mapping[int, Placement],
    assumptions: Assumptions,
) -> bool:
    """Return whether rules can select a hierarchical algorithm."""
    if operation not in OPERATIONS_WITHIN or not is_spread(ranks, placements):
        return False
    inner = find_inner_algorithms(operation, spec)
    return bool(inner) and all(can_select(*part, assumptions) for part in inner)


def find_inner_algorithms(operation: str, spec: str) -> list[tuple[str, str]]:
    """Return the operation and algorithm among leaders, then those within nodes; empty if han has
    no such algorithm."""
    composition = read_composition(operation, spec)
    if composition.levels or composition.leaders != 1 or composition.segment:
        return []
    if composition.inter.split:
        return []
    within = (composition.intra.up, composition.intra.down)
    return [
        (operation, composition.inter.up),
        *zip(OPERATIONS_WITHIN[operation], within, strict=False),
    ]


def add_inner_choices(
    choices: Sequence[Choice],
    placements: Mapping[int, Placement],
    list_calls: Callable[[Choice, Placement], list[Choice]],
) -> list[Choice]:
    """Return the choices with the library default in place of a hierarchical algorithm, and with its
    inner algorithms, which `list_calls` returns, on fewer ranks. Rules for inner algorithms hold
    for exactly their number of ranks, and leave those of other choices as they are."""
    own = [
        replace(choice, algorithm=LIBRARY) if is_hierarchical(choice.algorithm) else choice
        for choice in choices
    ]
    inner: dict[tuple[str, int], dict[int, str]] = {}
    for choice in sorted(choices):
        place = placements.get(choice.ranks)
        if place is None:
            continue
        if is_hierarchical(choice.algorithm):
            for call in list_calls(choice, place):
                _add_inner(call, inner)
        else:
            _end_inner(choice, place, inner)
    kept = [
        choice
        for choice in own
        if choice.algorithm != LIBRARY or (choice.operation, choice.ranks) not in inner
    ]
    with_rules = {(choice.operation, choice.ranks) for choice in kept} | set(inner)
    for (operation, ranks), sizes in inner.items():
        kept += [Choice(operation, ranks, size, spec) for size, spec in sizes.items()]
        if (operation, ranks + 1) not in with_rules:
            kept.append(Choice(operation, ranks + 1, 0, LIBRARY))
    return list(dict.fromkeys(kept))


def list_inner_calls(choice: Choice, place: Placement) -> list[Choice]:
    """Return the choices of han's inner calls."""
    between, *within = find_inner_algorithms(choice.operation, choice.algorithm)
    is_of_blocks = choice.operation in BLOCK_OPERATIONS
    calls = [(between, place.nodes, choice.bytes * (place.per_node if is_of_blocks else 1))]
    for part in within:
        is_result = choice.operation == "allgather" and part[0] == "bcast"
        calls.append((part, place.per_node, choice.bytes * (choice.ranks if is_result else 1)))
    return [Choice(operation, ranks, size, spec) for (operation, spec), ranks, size in calls]


def _add_inner(call: Choice, inner: dict[tuple[str, int], dict[int, str]]) -> None:
    sizes = inner.setdefault((call.operation, call.ranks), {})
    if sizes.setdefault(call.bytes, call.algorithm) not in (call.algorithm, LIBRARY):
        raise UserError(
            f"found two algorithms of {call.operation} over {call.ranks} ranks, {call.bytes} B: "
            f"{sizes[call.bytes]} and {call.algorithm}"
        )
    sizes[call.bytes] = call.algorithm


def _end_inner(
    choice: Choice, place: Placement, inner: dict[tuple[str, int], dict[int, str]]
) -> None:
    """Leave inner algorithms of smaller sizes to the library from a size with another algorithm
    on."""
    sizes = inner.get((choice.operation, place.nodes))
    if sizes:
        sizes.setdefault(choice.bytes, LIBRARY)


def format_han_rules(choices: Iterable[Choice]) -> str:
    """Return the text of han's file; empty without a hierarchical algorithm."""
    choices = list(choices)
    if not list_hierarchical_operations(choices):
        return ""
    lines = [f"{len(HAN_OPERATIONS)} # collectives"]
    for operation in sorted(HAN_OPERATIONS, key=COLLECTIVE_NUMBERS.__getitem__):
        by_ranks = _arrange_components(operation, choices)
        lines += [
            f"{COLLECTIVE_NUMBERS[operation]} # {operation}",
            "1 # level",
            f"{GLOBAL_LEVEL} # the whole communicator",
            f"{len(by_ranks)} # communicator sizes",
        ]
        for ranks in sorted(by_ranks):
            lines += [f"{ranks} # ranks and more", f"{len(by_ranks[ranks])} # message sizes"]
            lines += [f"{size} {component}" for size, component in by_ranks[ranks].items()]
    return "\n".join(lines) + "\n"


def _arrange_components(operation: str, choices: Sequence[Choice]) -> dict[int, dict[int, str]]:
    """Return the component by ranks and size. A rule holds for exactly its number of ranks."""
    by_ranks: dict[int, dict[int, str]] = {}
    for choice in sorted(choices):
        if choice.operation == operation:
            component = "han" if is_hierarchical(choice.algorithm) else "tuned"
            by_ranks.setdefault(choice.ranks, {0: "tuned"})[choice.bytes] = component
    ends = [ranks + 1 for ranks in by_ranks]
    for ranks in (1, *ends):
        by_ranks.setdefault(ranks, {0: "tuned"})
    return by_ranks


def make_han_environment(path: Path, choices: Iterable[Choice]) -> dict[str, str]:
    """Return the variables of han's file, which is beside the rules of `tuned`; none without a
    hierarchical algorithm."""
    operations = sorted(list_hierarchical_operations(choices))
    if not operations:
        return {}
    simple = {f"OMPI_MCA_coll_han_use_simple_{operation}": "1" for operation in operations}
    return {
        "OMPI_MCA_coll_han_priority": HAN_PRIORITY,
        "OMPI_MCA_coll_han_use_dynamic_file_rules": "1",
        "OMPI_MCA_coll_han_dynamic_rules_filename": str(path.with_name(HAN_FILE)),
        **simple,
    }
