"""What can be said to MPI libraries about which algorithm to use, and how each is told."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from commodel.errors import UserError
from commodel.interchange import rules, selection
from commodel.interchange.rules import BENCHMARK, NONE_ASSUMED, Assumptions
from commodel.patterns.libraries import MPICH, OPEN_MPI
from commodel.platforms.mpikinds import kind, library_of, shared_library
from commodel.records import LIBRARY, Choice

HAN_FIRST = re.compile(r"Open MPI v([5-9]|\d\d)\.")  # has it before `tuned`, unless told otherwise
PRIORITY = "99"  # of `tuned`, so that it comes before han, hcoll and ucc, which know nothing of its rules


@dataclass(frozen=True)
class Dialect:
    library: str
    file: str  # what the rules are called
    operations: Collection[str]
    names: Callable[[str, str, int, Assumptions], bool]  # whether a rule may name an algorithm
    write: Callable[[list[Choice], Assumptions], str]
    environment: Callable[[Path, Iterable[str]], Mapping[str, str]]  # of a file with rules for some operations
    spread: bool  # whether a rule changes what the library does by itself at other sizes of the operation
    # Operations for which ranks of a correct program may look up different sizes.
    one_for_all_sizes: tuple[str, ...] = ()
    assumptions: Assumptions = NONE_ASSUMED  # of the programs that will use the rules

    def can_name(self, operation: str, spec: str, ranks: int) -> bool:
        return self.names(operation, spec, ranks, self.assumptions)

    def text(self, choices: Iterable[Choice]) -> str:
        """Return rules to time: our own program passes the same counts on all ranks."""
        return self._text(choices, BENCHMARK)

    def offered(self, choices: Iterable[Choice]) -> str:
        """Return rules to use."""
        return self._text(choices, self.assumptions)

    def _text(self, choices: Iterable[Choice], assumptions: Assumptions) -> str:
        """Nothing is said of more ranks than there are choices for."""
        choices = list(choices)
        most = {row.operation: max(row.ranks, 0) for row in sorted(choices)}
        beyond = (Choice(name, ranks + 1, 0, LIBRARY) for name, ranks in most.items())
        return self.write([*choices, *beyond], assumptions)


def dialect(program: Path) -> Dialect:
    """Of the MPI library that a native program was built with."""
    version = library_of([str(program)])
    if kind(version) == OPEN_MPI:
        return replace(OPEN, spread=HAN_FIRST.search(version) is not None)
    if kind(version) == MPICH:
        own = selection.own_tree(shared_library(program))
        return replace(OF_MPICH, write=lambda choices, assumptions: selection.selection(choices, own))
    raise UserError(f"found the MPI library '{version}', wanted Open MPI or MPICH: no rules of others are known here")


def _open_mpi(path: Path, operations: Iterable[str]) -> dict[str, str]:
    return {
        "OMPI_MCA_coll_tuned_priority": PRIORITY,
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_dynamic_rules_filename": str(path),
    }


def _mpich(path: Path, operations: Iterable[str]) -> dict[str, str]:
    """Collectives of a device come before the selection, so they are off where there is a rule."""
    called = (selection.COLLECTIVES[operation][0].upper() for operation in sorted(set(operations)))
    off = {f"MPIR_CVAR_{name}_DEVICE_COLLECTIVE": "0" for name in called}
    return {"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": str(path), **off}


OPEN = Dialect(
    OPEN_MPI,
    "rules.conf",
    tuple(rules.COLLECTIVES),
    lambda name, spec, ranks, assumptions: rules.has(name, spec, assumptions),
    rules.rules,
    _open_mpi,
    spread=False,  # rule 0 is the choice that `tuned` makes without rules, where nothing comes before it
    one_for_all_sizes=rules.ONE_FOR_ALL_SIZES,
)
OF_MPICH = Dialect(
    MPICH,
    "rules.json",
    tuple(selection.COLLECTIVES),
    lambda name, spec, ranks, assumptions: bool(selection.function_of(name, spec, ranks)),
    lambda choices, assumptions: "",
    _mpich,
    spread=True,  # the device's own collectives are off where there is a rule
)
