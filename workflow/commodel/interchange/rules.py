"""Open MPI's rules file (coll_tuned_dynamic_rules_filename) from a table of algorithms by
operation, ranks and size (`format_rules`).

The numbers of collectives and algorithms are those of Open MPI 4.1 and 5.0. A rule applies from its
communicator size and message size up to the next ones. The first communicator size also applies to
all smaller communicators. An additional first entry therefore leaves these to Open MPI (algorithm
0). The message size of gather, allgather, scatter and alltoall is that of the whole result. An
algorithm that Open MPI lacks, or that no rule can select, also becomes 0, with a comment.

Every rank looks up a rule by itself, and runs the algorithm that it finds. `LOOKUP_QUANTITIES` has
the quantity that it looks up. If this quantity can differ between the ranks of a correct program,
all sizes get one algorithm. `Assumptions` has further assumptions about the programs that will use
the file. Without them, the file names only algorithms that are right for every correct program.
`commodel tune` tests this on the library itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from commodel.errors import Mistakes, UserError, make_printable
from commodel.files.tables import add_line_to_errors, parse_cell, read_rows
from commodel.interchange import Format
from commodel.parameters import DATA_SHEET_SOURCE
from commodel.patterns.algorithms import find_algorithms
from commodel.patterns.arguments import UNSEGMENTED
from commodel.patterns.libraries import OPEN_MPI, Routine
from commodel.patterns.operations import MIN_RANKS, canonicalize_operation, has_size
from commodel.records import LIBRARY, Choice
from commodel.stats import NEGLIGIBLE_DIFFERENCE
from commodel.units import parse_bytes, parse_count

if TYPE_CHECKING:
    import pandas as pd

COLLECTIVE_NUMBERS = {
    "allgather": 0,
    "allreduce": 2,
    "alltoall": 3,
    "barrier": 6,
    "bcast": 7,
    "gather": 9,
    "reduce": 11,
    "reduce-scatter": 12,
    "scatter": 15,
}
WHOLE_RESULT_COLLECTIVES = ("allgather", "alltoall", "gather", "scatter")
# By operation: the size by which a rank looks up its rule (the same in Open MPI 4.1, 5.0 and main),
# and whether this size can differ between the ranks of a correct call. The root of an in-place
# gather passes no send count; only the root of a scatter needs one. MPI ignores the send count of
# an in-place allgather or alltoall, so each rank may pass another.
LOOKUP_QUANTITIES = {
    "allgather": ("own send count × size of its datatype × ranks", True),
    "allreduce": ("count × size of the datatype", False),
    "alltoall": ("own send count × size of its datatype × ranks", True),
    "barrier": ("0", False),
    "bcast": ("own count × size of its datatype: the same bytes on all ranks", False),
    "gather": ("own send count × size of its datatype × ranks", True),
    "reduce": ("count × size of the datatype", False),
    "reduce-scatter": ("sum of all receive counts × size of the datatype", False),
    "scatter": ("own send count × size of its datatype × ranks", True),
}
SIZE_INDEPENDENT_OPERATIONS = tuple(
    name for name, (_, differs) in LOOKUP_QUANTITIES.items() if differs
)
WANTED_COLUMNS = ("operation", "ranks", "bytes", "algorithm")
# Reasons why a rule may break a program.
REORDERS_OPERANDS = "changes the order of operands"
FAILS_WITH_MIXED_DATATYPES = "fails if ranks describe the message by different datatypes"


@dataclass(frozen=True)
class Assumptions:
    """Assumptions about the programs that will use the rules."""

    commutative: bool = False  # every reduction's operation commutes
    same_types: bool = False  # all ranks describe a message by the same count and datatype
    same_counts: bool = (
        # all ranks pass the counts, even if MPI ignores them, as the player's library benchmark
        # does
        False
    )

    @property
    def text(self) -> str:
        """The assumptions as text for the head of a rules file."""
        order = (
            "every reduction's operation commutes"
            if self.commutative
            else "operations need not commute"
        )
        types = "the same datatype and count" if self.same_types else "any datatypes"
        return f"assumed of programs: {order}; ranks describe a message by {types}"


NO_ASSUMPTIONS = Assumptions()
# of player/library.c, which times the library's collectives
BENCHMARK_ASSUMPTIONS = Assumptions(True, True, True)


@dataclass(frozen=True)
class Rule:
    algorithm: int = 0
    fanout: int = 0
    segment: int = 0


def read_choices(path: Path) -> list[Choice]:
    """Return the choices in a table with the columns operation, ranks, bytes and algorithm.

    The columns platform, simulated, doubt, gain_over_default and leaves are optional; others are
    ignored.
    """
    rows: dict[tuple, Choice] = {}
    mistakes = Mistakes()
    for line, row in read_rows(path, WANTED_COLUMNS):
        with add_line_to_errors(path, line, mistakes):
            choice = _parse_choice(row)
            if rows.setdefault((choice.operation, choice.ranks, choice.bytes), choice) != choice:
                where = f"{choice.operation} at {choice.ranks} ranks and {choice.bytes} B"
                raise UserError(f"found {where} twice, with different algorithms")
    mistakes.raise_any()
    return list(rows.values())


def parse_choice_frame(table: pd.DataFrame) -> list[Choice]:
    """Return the choices in a data frame."""
    choices = []
    for row in table.to_dict("records"):
        choices.append(_parse_choice({name: str(value) for name, value in row.items()}))
    return choices


def _parse_choice(row: dict[str, str]) -> Choice:
    name = parse_cell(row, "operation", canonicalize_operation)
    size = parse_cell(row, "bytes", parse_bytes) if has_size(name) else 0
    if row.get("leaves", "") not in ("", "0"):
        raise UserError(
            f"found {row['leaves']}, wanted 0: these rules name algorithms, no topology",
            key="leaves",
        )
    algorithm = row["algorithm"].replace("_", "-")
    if not algorithm:
        raise UserError("found nothing, wanted the name of an algorithm", key="algorithm")
    basis = " (simulated)" if row.get("simulated", "").lower() == "true" else ""
    basis += f" ({DATA_SHEET_SOURCE})" if DATA_SHEET_SOURCE in str(row.get("doubt")) else ""
    ranks = parse_cell(row, "ranks", lambda text: parse_count(text, 2))
    if _is_default_faster(row.get("gain_over_default", "")):
        algorithm = LIBRARY
    return Choice(
        operation=name,
        ranks=ranks,
        bytes=size,
        algorithm=algorithm,
        platform=row.get("platform", "") + basis,
    )


def _is_default_faster(times: str) -> bool:
    """Return whether the library default is faster, given its time over that of the fastest
    measured alternative."""
    try:
        return float(times) < 1 - NEGLIGIBLE_DIFFERENCE
    except ValueError:
        return False


def arrange_choices(
    choices: Iterable[Choice], whole_result: Collection[str]
) -> dict[str, dict[int, dict[int, str]]]:
    """Return the algorithm of each choice by operation, ranks and size. The size of an operation in
    `whole_result` is that of its whole result."""
    table: dict[str, dict[int, dict[int, str]]] = {}
    for choice in sorted(choices):
        size = choice.bytes * (choice.ranks if choice.operation in whole_result else 1)
        table.setdefault(choice.operation, {}).setdefault(choice.ranks, {})[size] = choice.algorithm
    return table


def format_rules(choices: Iterable[Choice], assumptions: Assumptions = NO_ASSUMPTIONS) -> str:
    """Return the text of the rules file. A rule equal to the one before it is omitted."""
    choices = list(choices)
    table = arrange_choices(choices, WHOLE_RESULT_COLLECTIVES)
    unknown = [operation for operation in table if operation not in COLLECTIVE_NUMBERS]
    if unknown:
        raise UserError(f"Open MPI's rules have no operation '{unknown[0]}'")
    platforms = ", ".join(sorted({choice.platform for choice in choices} - {""}))
    platform_comment = make_printable(f", advice for {platforms}") if platforms else ""
    lines = [f"{len(table)} # collectives{platform_comment}; {assumptions.text}"]
    for name in sorted(table, key=COLLECTIVE_NUMBERS.__getitem__):
        smaller_communicators = {} if min(table[name]) <= MIN_RANKS else {MIN_RANKS: {0: LIBRARY}}
        sizes_by_ranks = smaller_communicators | table[name]
        lines += [
            f"{COLLECTIVE_NUMBERS[name]} # {name}",
            f"{len(sizes_by_ranks)} # communicator sizes",
        ]
        for ranks, sizes in sizes_by_ranks.items():
            rows = _group_rows_by_size(name, sizes, assumptions)
            lines += [f"{ranks} # ranks and more", f"{len(rows)} # message sizes"]
            for size, (rule, comment) in rows.items():
                lines.append(f"{size} {rule.algorithm} {rule.fanout} {rule.segment} # {comment}")
    return "\n".join(lines) + "\n"


def _group_rows_by_size(
    name: str, sizes: Mapping[int, str], assumptions: Assumptions
) -> dict[int, tuple[Rule, str]]:
    """Return the rules of a communicator size with their comments, by the message size from which
    they apply; the first applies from 0 bytes on."""
    if name in SIZE_INDEPENDENT_OPERATIONS and not assumptions.same_counts:
        specs = list(dict.fromkeys(sizes.values()))
        if len(specs) > 1:
            reason = (
                f"{len(specs)} algorithms by size, but ranks may look up different sizes, so Open "
                "MPI decides"
            )
            return {0: (Rule(), make_printable(f"{', '.join(specs)}: {reason}"))}
        sizes = {0: specs[0]}
    rows = (
        {} if 0 in sizes else {0: (Rule(), "smaller than all sizes of the table: Open MPI decides")}
    )
    previous_spec = None
    for size, spec in sizes.items():
        if spec == previous_spec:
            continue
        previous_spec = spec
        rule = find_rule(name, spec)
        reason = (
            f": {_describe_nearest_function(name, spec)}, so Open MPI decides itself"
            if rule == Rule() and spec != LIBRARY
            else ""
        )
        risk = "" if reason else find_risk(name, spec, assumptions)
        if risk:
            rule = Rule()
            reason = f": {risk}, so Open MPI decides itself"
        rows[size] = (rule, make_printable(f"{spec}{reason}"))
    return rows


def find_risk(name: str, spec: str, assumptions: Assumptions = NO_ASSUMPTIONS) -> str:
    """Return why a rule for this algorithm could break a correct program; empty if it cannot."""
    rule = find_rule(name, spec)
    for routine in find_routines(name, spec.partition(":")[0]):
        if routine.number != rule.algorithm:
            continue
        if not routine.keeps_order and not assumptions.commutative:
            return REORDERS_OPERANDS
        if routine.segments_by_own_count(rule.segment) and not assumptions.same_types:
            return FAILS_WITH_MIXED_DATATYPES
    return ""


def _describe_nearest_function(name: str, spec: str) -> str:
    """Return the nearest function of Open MPI to an algorithm that no rule can select."""
    for routine in find_routines(name, spec.partition(":")[0]):
        return (
            f"only {routine.function}, {routine.differs}"
            if routine.differs
            else f"not so in {routine.function}"
        )
    return "none in Open MPI"


def can_select(name: str, spec: str, assumptions: Assumptions = BENCHMARK_ASSUMPTIONS) -> bool:
    """Return whether a rule can select this algorithm, and may do so under these assumptions."""
    return find_rule(name, spec) != Rule() and not find_risk(name, spec, assumptions)


def find_routines(name: str, algorithm: str) -> list[Routine]:
    """Return Open MPI's functions that send the messages of an algorithm."""
    entry = find_algorithms(name).get(algorithm)
    return (
        [routine for routine in entry.mpi_functions if routine.library == OPEN_MPI] if entry else []
    )


def find_rule(name: str, spec: str) -> Rule:
    """Return the rule that selects an algorithm; Rule(0) if there is none."""
    algorithm, _, argument = spec.partition(":")
    numbers = [routine.number for routine in find_routines(name, algorithm)]
    if not numbers or not numbers[0]:
        return Rule()
    parameter = find_algorithms(name)[algorithm].argument
    if not argument:  # Open MPI's segment of 0 means none
        return Rule(numbers[0], 0, parameter.default or 0 if parameter and parameter.is_size else 0)
    if parameter is None:
        return Rule()
    value = parameter.read(argument)
    # a rule cannot set the radix of a tree, so only its default can be selected
    if not parameter.is_size:
        return Rule(numbers[0]) if value == parameter.default else Rule()
    return Rule(numbers[-1], 0, value) if value < UNSEGMENTED else Rule(numbers[0])


FORMAT = Format("rules", "Open MPI's rules")
