"""Open MPI's rules file (coll_tuned_dynamic_rules_filename) from a table of which algorithm to use where.

Numbers of collectives and algorithms are those of Open MPI 4.1 and 5.0. A rule holds from its communicator size, and in
it from its message size, upwards to the next one. The first communicator size holds for all below it, too, so one more
stands before it: below the table Open MPI decides, which is algorithm 0. Its message size is the whole result of
gather, allgather, scatter and alltoall. What Open MPI has no algorithm for, or none that a rule can start, becomes 0
too, and a comment says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from commodel.errors import UserError, one_line
from commodel.files.tables import cell, on_line, read_rows
from commodel.interchange import Format
from commodel.parameters import SHEETS
from commodel.patterns.algorithms import choices
from commodel.patterns.algorithms.gather_linear_sync import FIRST
from commodel.patterns.libraries import OPEN_MPI, Routine
from commodel.patterns.operations import FEWEST_RANKS, own_spelling, sized
from commodel.patterns.segments import DEFAULT_SEGMENT, PIPELINED, UNCUT
from commodel.records import LIBRARY, Choice
from commodel.stats import NEGLIGIBLE
from commodel.units import parse_bytes, parse_count

if TYPE_CHECKING:
    import pandas as pd

COLLECTIVES = {
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
WHOLE = ("allgather", "alltoall", "gather", "scatter")
WANTED_COLUMNS = ("operation", "ranks", "bytes", "algorithm")
RADIX = "4"  # of a k-nomial tree unless it is set for the whole run; it is no part of a rule


@dataclass(frozen=True)
class Rule:
    algorithm: int = 0
    fanout: int = 0
    segment: int = 0


def read_table(path: Path) -> list[Choice]:
    """Columns operation, ranks, bytes, algorithm, maybe platform, simulated, doubt and library; no others count."""
    rows: dict[tuple, Choice] = {}
    for line, row in read_rows(path, WANTED_COLUMNS):
        with on_line(path, line):
            choice = _choice(row)
            if rows.setdefault((choice.operation, choice.ranks, choice.bytes), choice) != choice:
                where = f"{choice.operation} at {choice.ranks} ranks and {choice.bytes} B"
                raise UserError(f"found {where} twice, with different algorithms")
    return list(rows.values())


def of_frame(table: pd.DataFrame) -> list[Choice]:
    """The same of a table that is no file yet."""
    return [_choice({name: str(value) for name, value in row.items()}) for row in table.to_dict("records")]


def _choice(row: Mapping[str, str]) -> Choice:
    name = cell(row, "operation", own_spelling)
    size = cell(row, "bytes", parse_bytes) if sized(name) else 0
    if row.get("leaves", "") not in ("", "0"):
        raise UserError(f"found {row['leaves']}, wanted 0: these rules name algorithms, no topology", key="leaves")
    algorithm = row["algorithm"].replace("_", "-")
    if not algorithm:
        raise UserError("found nothing, wanted the name of an algorithm", key="algorithm")
    ground = " (simulated)" if row.get("simulated", "").lower() == "true" else ""
    ground += f" ({SHEETS})" if SHEETS in str(row.get("doubt")) else ""
    ranks = cell(row, "ranks", lambda text: parse_count(text, 2))
    if _library_is_faster(row.get("library", "")):
        algorithm = LIBRARY
    return Choice(name, ranks, size, algorithm, row.get("platform", "") + ground)


def _library_is_faster(times: str) -> bool:
    """Advice tells what the library's own choice took over the fastest measured of ours: then it is best left alone."""
    try:
        return float(times) < 1 - NEGLIGIBLE
    except ValueError:
        return False


def rules(choices: Iterable[Choice]) -> str:
    """The file. Rules that say the same as the one before are left out."""
    table: dict[str, dict[int, dict[int, str]]] = {}
    choices = sorted(choices)
    for choice in choices:
        if choice.operation not in COLLECTIVES:
            raise UserError(f"Open MPI's rules have no operation '{choice.operation}'")
        size = choice.bytes * (choice.ranks if choice.operation in WHOLE else 1)
        table.setdefault(choice.operation, {}).setdefault(choice.ranks, {})[size] = choice.algorithm
    platforms = ", ".join(sorted({choice.platform for choice in choices} - {""}))
    lines = [f"{len(table)} # collectives{one_line(f', advice for {platforms}') if platforms else ''}"]
    for name in sorted(table, key=COLLECTIVES.get):
        below = {} if min(table[name]) <= FEWEST_RANKS else {FEWEST_RANKS: {0: LIBRARY}}
        of_ranks = below | table[name]
        lines += [f"{COLLECTIVES[name]} # {name}", f"{len(of_ranks)} # communicator sizes"]
        for ranks, sizes in of_ranks.items():
            rows = _of_size(name, sizes)
            lines += [f"{ranks} # ranks and more", f"{len(rows)} # message sizes"]
            for size, (rule, comment) in rows.items():
                lines.append(f"{size} {rule.algorithm} {rule.fanout} {rule.segment} # {comment}")
    return "\n".join(lines) + "\n"


def _of_size(name: str, sizes: Mapping[int, str]) -> dict[int, tuple[Rule, str]]:
    rows = {} if 0 in sizes else {0: (Rule(), "below the table: Open MPI decides")}
    last = None
    for size, spec in sizes.items():
        if spec == last:
            continue
        last, rule = spec, rule_of(name, spec)
        missing = "" if rule.algorithm or spec == LIBRARY else f": {_nearest(name, spec)}, so Open MPI decides itself"
        rows[size] = (rule, one_line(f"{spec}{missing}"))
    return rows


def _nearest(name: str, spec: str) -> str:
    """What Open MPI has where no rule can start the algorithm."""
    for routine in routines(name, spec.partition(":")[0]):
        return f"only {routine.function}, {routine.differs}" if routine.differs else f"not so in {routine.function}"
    return "none in Open MPI"


def has(name: str, spec: str) -> bool:
    """Whether a rule can name this algorithm."""
    return rule_of(name, spec) != Rule()


def routines(name: str, algorithm: str) -> list[Routine]:
    """Open MPI's functions that send what the algorithm sends."""
    entry = choices(name).get(algorithm)
    return [routine for routine in entry.like if routine.library == OPEN_MPI] if entry else []


def rule_of(name: str, spec: str) -> Rule:
    """What Open MPI calls an algorithm; Rule(0) where it has none."""
    algorithm, _, argument = spec.partition(":")
    numbers = [routine.number for routine in routines(name, algorithm)]
    if not numbers or not numbers[0]:
        return Rule()
    if not argument:
        return Rule(numbers[0], 0, _cut_without_argument(name, algorithm))
    if (name, algorithm) == ("bcast", "knomial"):
        return Rule(numbers[0]) if argument == RADIX else Rule()
    if "BYTES" not in choices(name)[algorithm].argument:
        return Rule()
    size = parse_bytes(argument)
    return Rule(numbers[-1], 0, size) if size < UNCUT else Rule(numbers[0])


def _cut_without_argument(name: str, algorithm: str) -> int:
    """The segment that an algorithm here has where none is named; Open MPI's 0 means none."""
    if (name, algorithm) == ("gather", "linear-sync"):
        return FIRST
    return DEFAULT_SEGMENT if choices(name)[algorithm].argument == PIPELINED else 0


FORMAT = Format("rules", "Open MPI's rules")
