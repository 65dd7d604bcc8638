"""commodel algorithms: the algorithms of every collective operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from commodel.cli._output import show, style_option

if TYPE_CHECKING:
    from commodel.patterns.algorithms import Algorithm, TreeAlgorithm
    from commodel.patterns.libraries import Routine


@click.command()
@click.argument("operation", required=False)
@click.option("--libraries", is_flag=True, help="Functions of Open MPI and MPICH that send the same messages.")
@style_option
def algorithms(operation: str | None, libraries: bool, style: str) -> None:
    """List the algorithms, all or those of one OPERATION, as --algorithm takes them."""
    from commodel.patterns.operations import operation as operation_named
    from commodel.registry import discover

    wanted = operation_named(operation).name if operation else None
    entries = sorted(discover("patterns.algorithms", "ALGORITHM").values(), key=lambda entry: entry.name)
    entries = [entry for entry in entries if wanted in (None, entry.operation)]
    show([line for entry in entries for line in (alike(entry) if libraries else [row(entry)])], style)


def alike(entry: Algorithm | TreeAlgorithm) -> list[dict[str, str]]:
    """A row for every function of a library; one that names none where there is none."""
    named = row(entry)
    counterparts = [
        (routine.library, routine.function, _operand_order(entry, routine), routine.differs)
        for routine in getattr(entry, "like", ())
    ]
    return [
        {"operation": named["operation"], "algorithm": named["algorithm"], "library": library, "function": function}
        | {"operands": order, "differs": differs}
        for library, function, order, differs in counterparts or [("none", "", "", "")]
    ]


def _operand_order(entry: Algorithm, routine: Routine) -> str:
    """Return whether a library's function is right for reductions whose operation does not commute."""
    from commodel.patterns.operations import operation

    if not operation(entry.operation).reduces:
        return ""
    return "in order" if routine.keeps_order else "reordered"


def row(entry: Algorithm | TreeAlgorithm) -> dict[str, str]:
    return {"operation": entry.operation, "algorithm": entry.form, "title": entry.title, "order": entry.order}
