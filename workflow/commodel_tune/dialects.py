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
    add_inner_choices,
    can_name_hierarchical,
    format_han_rules,
    list_han_specs,
    list_inner_calls,
    make_han_environment,
)
from commodel_tune.hierarchical import Placement, is_hierarchical, list_hierarchical_operations
from commodel_tune.mpich_compositions import (
    COMPOSITIONS_FILE,
    COMPOSITIONS_KEY,
    can_name_composition,
    format_compositions,
    list_calls_of_leaders,
    list_composition_specs,
)

# prefer component `han` to `tuned` by default
HAN_VERSIONS = re.compile(r"Open MPI v([5-9]|\d\d)\.")
# have a han that follows its rules; that of Open MPI 4.1.8 crashes under some
HAN_RULES_VERSIONS = re.compile(r"Open MPI v5\.")
# of the component `tuned`: higher than that of han, hcoll and ucc, which ignore its rules
TUNED_PRIORITY = "99"


@dataclass(frozen=True)
class HierarchicalRules:
    """The rules of an MPI library for hierarchical algorithms: their file beside the other rules, and
    the calls that the other rules select."""

    file: str
    list_specs: Callable[[str, Assumptions], list[str]]
    names: Callable[[str, str, int, Mapping[int, Placement], Assumptions], bool]
    list_calls: Callable[[Choice, Placement], list[Choice]]
    write: Callable[[list[Choice]], str]


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
    # of hierarchical algorithms; None: there are no rules for them
    hierarchical: HierarchicalRules | None = None
    # of each number of ranks, without which no hierarchical algorithm is named
    placements: Mapping[int, Placement] = field(default_factory=dict)

    def can_name(self, operation: str, spec: str, ranks: int) -> bool:
        if not is_hierarchical(spec):
            return self.names(operation, spec, ranks, self.assumptions)
        rules = self.hierarchical
        return rules is not None and rules.names(
            operation, spec, ranks, self.placements, self.assumptions
        )

    def list_further_specs(self, operation: str) -> list[str]:
        """Return the algorithms to try that depend on the placement of ranks."""
        rules = self.hierarchical
        return rules.list_specs(operation, self.assumptions) if rules else []

    def further_files(self, choices: Iterable[Choice]) -> dict[str, str]:
        """Return the texts of files beside the rules, by name."""
        rules = self.hierarchical
        known = [
            replace(choice, algorithm=LIBRARY) if self._lacks_place(choice) else choice
            for choice in choices
        ]
        text = rules.write(known) if rules else ""
        return {rules.file: text} if rules and text else {}

    def _lacks_place(self, choice: Choice) -> bool:
        """Return whether a hierarchical algorithm is for ranks whose nodes are unknown, as those of a
        communicator on which rules are verified."""
        return is_hierarchical(choice.algorithm) and choice.ranks not in self.placements

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
        if self.hierarchical:
            rows = add_inner_choices(rows, self.placements, self.hierarchical.list_calls)
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
            hierarchical=HAN_RULES if HAN_RULES_VERSIONS.search(version) else None,
        )
    if find_kind(version) == MPICH:
        library = find_shared_library(program)
        builtin_tree = selection.read_builtin_tree(library)
        compositions = _read_compositions(library)
        return replace(
            MPICH_DIALECT,
            hierarchical=make_composition_rules(compositions) if compositions else None,
            write=lambda choices, assumptions: selection.format_selection(choices, builtin_tree),
        )
    raise UserError(f"found the MPI library '{version}', wanted Open MPI or MPICH")


def _read_compositions(library: Path) -> selection.Tree:
    """Return the selection of compositions of an MPICH library; empty if its device has none."""
    try:
        return selection.read_builtin_tree(library, COMPOSITIONS_KEY)
    except UserError:
        return {}


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
    composed = list_hierarchical_operations(choices)
    flat = sorted({choice.operation for choice in choices} - composed)
    collectives = (selection.COLLECTIVES[operation][0].upper() for operation in flat)
    settings = {f"MPIR_CVAR_{name}_DEVICE_COLLECTIVE": "0" for name in collectives}
    if composed:
        file = path.with_name(COMPOSITIONS_FILE)
        settings["MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE"] = str(file)
    return {"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": str(path), **settings}


HAN_RULES = HierarchicalRules(
    HAN_FILE, list_han_specs, can_name_hierarchical, list_inner_calls, format_han_rules
)


def make_composition_rules(built_in: selection.Tree) -> HierarchicalRules:
    """Return the rules of MPICH's compositions, from the tree that is built into the library."""
    return HierarchicalRules(
        COMPOSITIONS_FILE,
        lambda operation, assumptions: list_composition_specs(operation),
        lambda operation, spec, ranks, placements, assumptions: can_name_composition(
            operation, spec, ranks, placements
        ),
        list_calls_of_leaders,
        lambda choices: format_compositions(choices, built_in),
    )


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
