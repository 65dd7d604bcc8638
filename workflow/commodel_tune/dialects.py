"""The rules that each MPI library can express (`Dialect`), and the dialect of a library
(`find_dialect`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from commodel.errors import UserError
from commodel.interchange import rules
from commodel.interchange.rules import BENCHMARK_ASSUMPTIONS, NO_ASSUMPTIONS, Assumptions
from commodel.patterns.libraries import MPICH, OPEN_MPI
from commodel.platforms.mpi_libraries import find_kind, find_library_version, find_shared_library
from commodel.records import LIBRARY, Choice
from commodel_tune import mpich_selection as selection
from commodel_tune.han_rules import (
    HAN_FILE,
    Placement,
    add_inner_choices,
    can_name_hierarchical,
    format_han_rules,
    is_hierarchical,
    list_han_specs,
    make_han_environment,
)

# prefer component `han` to `tuned` by default
HAN_VERSIONS = re.compile(r"Open MPI v([5-9]|\d\d)\.")
# have a han that follows its rules; that of Open MPI 4.1.8 crashes under some
HAN_RULES_VERSIONS = re.compile(r"Open MPI v5\.")
# of the component `tuned`: higher than that of han, hcoll and ucc, which ignore its rules
TUNED_PRIORITY = "99"


@dataclass(frozen=True)
class Dialect:
    """The rules of one MPI library: file format, operations, and the algorithms that a rule can
    name."""

    library: str
    file: str  # name of the rules
    operations: Collection[str]
    names: Callable[[str, str, int, Assumptions], bool]  # whether a rule may name an algorithm
    write: Callable[[list[Choice], Assumptions], str]
    # of a file with rules
    environment: Callable[[Path, Sequence[Choice]], Mapping[str, str]]
    # True if a rule also changes the library default at other sizes of the operation
    changes_defaults: bool
    # Operations for which ranks of a correct program may look up different sizes.
    size_independent_operations: tuple[str, ...] = ()
    assumptions: Assumptions = NO_ASSUMPTIONS  # of the programs that will use the rules
    # hierarchical algorithms are tried, for which `placements` has the nodes of numbers of ranks
    has_han_rules: bool = False
    placements: Mapping[int, Placement] = field(default_factory=dict)

    def can_name(self, operation: str, spec: str, ranks: int) -> bool:
        if is_hierarchical(spec):
            return self.has_han_rules and can_name_hierarchical(
                operation, spec, ranks, self.placements, self.assumptions
            )
        return self.names(operation, spec, ranks, self.assumptions)

    def list_further_specs(self, operation: str) -> list[str]:
        """Return the algorithms to try that depend on the placement of ranks."""
        return list_han_specs(operation, self.assumptions) if self.has_han_rules else []

    def further_files(self, choices: Iterable[Choice]) -> dict[str, str]:
        """Return the texts of files beside the rules, by name."""
        text = format_han_rules(choices) if self.has_han_rules else ""
        return {HAN_FILE: text} if text else {}

    def text(self, choices: Iterable[Choice]) -> str:
        """Return the rules file for timing: our own program passes the same counts on all ranks."""
        return self._text(choices, BENCHMARK_ASSUMPTIONS)

    def user_text(self, choices: Iterable[Choice]) -> str:
        """Return the rules file for the user's programs, under the assumptions about them."""
        return self._text(choices, self.assumptions)

    def _text(self, choices: Iterable[Choice], assumptions: Assumptions) -> str:
        """Return the rules file. Numbers of ranks above the measured ones get no rule."""
        choices = list(choices)
        max_ranks = {row.operation: max(row.ranks, 0) for row in sorted(choices)}
        rules_above = (Choice(name, ranks + 1, 0, LIBRARY) for name, ranks in max_ranks.items())
        rows = [*choices, *rules_above]
        if self.has_han_rules:
            rows = add_inner_choices(rows, self.placements)
        return self.write(rows, assumptions)


def find_dialect(program: Path, start: Sequence[str] = ()) -> Dialect:
    """Return the rules dialect of the MPI library with which a native program was built. `start` is
    the command that starts one rank: some programs find their library only in the environment that
    it sets."""
    version = find_library_version([str(program)]) or find_library_version([*start, str(program)])
    if find_kind(version) == OPEN_MPI:
        return replace(
            OPEN_MPI_DIALECT,
            changes_defaults=HAN_VERSIONS.search(version) is not None,
            has_han_rules=HAN_RULES_VERSIONS.search(version) is not None,
        )
    if find_kind(version) == MPICH:
        builtin_tree = selection.read_builtin_tree(find_shared_library(program))
        return replace(
            MPICH_DIALECT,
            write=lambda choices, assumptions: selection.format_selection(choices, builtin_tree),
        )
    raise UserError(f"found the MPI library '{version}', wanted Open MPI or MPICH")


def _make_open_mpi_environment(path: Path, choices: Sequence[Choice]) -> dict[str, str]:
    return {
        **make_han_environment(path, choices),
        "OMPI_MCA_coll_tuned_priority": TUNED_PRIORITY,
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_dynamic_rules_filename": str(path),
    }


def _make_mpich_environment(path: Path, choices: Sequence[Choice]) -> dict[str, str]:
    """Return the environment for MPICH. Collectives of a device would precede the selection, so
    they are off for operations with a rule."""
    operations = sorted({choice.operation for choice in choices})
    collectives = (selection.COLLECTIVES[operation][0].upper() for operation in operations)
    settings = {f"MPIR_CVAR_{name}_DEVICE_COLLECTIVE": "0" for name in collectives}
    return {"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": str(path), **settings}


OPEN_MPI_DIALECT = Dialect(
    OPEN_MPI,
    "rules.conf",
    tuple(rules.COLLECTIVE_NUMBERS),
    lambda name, spec, ranks, assumptions: rules.can_select(name, spec, assumptions),
    rules.format_rules,
    _make_open_mpi_environment,
    # rule 0 is the default of `tuned`, unless another component has priority
    changes_defaults=False,
    size_independent_operations=rules.SIZE_INDEPENDENT_OPERATIONS,
)
MPICH_DIALECT = Dialect(
    MPICH,
    "rules.json",
    tuple(selection.COLLECTIVES),
    lambda name, spec, ranks, assumptions: bool(selection.find_function(name, spec, ranks)),
    lambda choices, assumptions: "",
    _make_mpich_environment,
    changes_defaults=True,  # for an operation with a rule, the device's own collectives are off
)
