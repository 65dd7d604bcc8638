"""commodel algorithms: the algorithms of every collective operation."""

import click

from commodel.algorithms import Algorithm, TreeAlgorithm
from commodel.algorithms import operation as operation_named
from commodel.cli._output import show, style_option
from commodel.registry import discover


@click.command()
@click.argument("operation", required=False)
@style_option
def algorithms(operation: str | None, style: str) -> None:
    """List the algorithms, all or those of one OPERATION, as --algorithm takes them."""
    wanted = operation_named(operation) if operation else None
    entries = sorted(discover("algorithms", "ALGORITHM").values(), key=lambda entry: entry.name)
    show([row(entry) for entry in entries if wanted in (None, entry.operation)], style)


def row(entry: Algorithm | TreeAlgorithm) -> dict[str, str]:
    form = "over any topology" if isinstance(entry, TreeAlgorithm) else entry.choice
    argument = getattr(entry, "argument", "")
    if argument:
        form += f"[:{argument[1:]}" if argument.startswith("[") else f":{argument}"
    return {"operation": entry.operation, "algorithm": form, "title": entry.title}
