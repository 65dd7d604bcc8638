"""commodel doctor: what is installed here, and what each missing thing would give."""

import os

import click

from commodel.cli._output import table


@click.command()
@click.option("--need", metavar="PROGRAM", help="Print nothing; exit 1 if this program is missing. For scripts.")
def doctor(need: str | None) -> None:
    """Tell which compilers, MPI, SimGrid, Slurm and Apptainer are here, and what a missing one would give."""
    from commodel.platforms.tools import TOOLS, find, version
    from commodel.platforms.transport import within_node

    if need:
        raise SystemExit(0 if find(need) else 1)
    rows = []
    for tool in TOOLS:
        path = find(tool.program)
        answer = version([path, *tool.version_arguments]) if path else "missing"
        rows.append({"tool": tool.name, "found": answer[:45], "where": path or "-", "gives": tool.gives})
        if not path:
            rows[-1]["gives"] += f"; get it: {tool.get}"
    click.echo(table(rows))
    if carrier := within_node():
        click.echo(f"\nWhat carries messages between two ranks here: {carrier}")
    click.echo(f"\n{os.cpu_count()} cores here: measure with no more ranks than that, MPI libraries wait busily.")
