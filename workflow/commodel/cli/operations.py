"""commodel operations: what can be measured and priced, and with which parameters."""

import click

from commodel.cli._output import show, style_option


@click.command()
@style_option
def operations(style: str) -> None:
    """List the operations as --operation takes them, what `bytes` means in each, and MPI's function for it.

    Parameters stand behind the name in any order: halo:grid=4x2:periodic=yes.
    """
    from commodel.patterns.operations import operations as entries

    listed = entries().values()
    rows = [{"operation": entry.name, "bytes": entry.bytes or "none", "mpi": entry.mpi or "none"} for entry in listed]
    if style == "table":
        show(rows, style)
        click.echo()
        named = [(entry.name, field) for entry in listed for field in entry.parameters]
        show([{"of": name, "parameter": f"{field.name}={field.form}", "": field.title} for name, field in named], style)
        return
    texts = ["; ".join(f"{field.name}={field.form}: {field.title}" for field in entry.parameters) for entry in listed]
    show([row | {"parameters": text} for row, text in zip(rows, texts, strict=True)], style)
