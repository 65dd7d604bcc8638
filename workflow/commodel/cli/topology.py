"""commodel topology: look at a tree, and at what its price rests on."""

from pathlib import Path

import click

from commodel.errors import UserError
from commodel.patterns.trees.drawing import svg
from commodel.patterns.trees.files import STYLES

STYLES = STYLES | {"svg": svg}


@click.command()
@click.argument("spec")
@click.option(
    "--format",
    "style",
    type=click.Choice(list(STYLES)),
    default="summary",
    show_default=True,
    help="mrnet: the file format of MRNet; csv: node,parent; text and svg: drawings.",
)
@click.option(
    "--params", type=click.Path(path_type=Path), help="Parameter set (YAML): which messages its price rests on."
)
@click.option("--operation", default="bcast", show_default=True, help="With --params: bcast, reduce, …")
@click.option("--bytes", "size", default="1KiB", show_default=True, help="With --params: of a message.")
def topology(spec: str, style: str, params: Path | None, operation: str, size: str) -> None:
    """Show the tree that SPEC names, such as kary:2^4 or groups:6,6,5; `commodel topologies` lists the forms.

    With --params the critical path stands out in the drawing (svg), or a table tells it: the
    messages that the price waits for, and how many of its seconds each answers for. Were that
    message alone 1 % slower, the price would rise by 1 % of these.

    \b
    commodel topology kary:2^3 --params loggp.yaml --operation reduce --format svg > tree.svg
    """
    from commodel.patterns.trees.topologies import tree

    if params is None:
        click.echo(STYLES[style](tree(spec)))
        return
    if style not in ("summary", "svg"):
        raise UserError(f"--format: found {style} beside --params, wanted svg, or summary for a table")
    from commodel.cli._output import show
    from commodel.cli._waits import answering

    waits = answering(spec, operation, size, params)
    if style == "svg":
        click.echo(svg(tree(spec), waits.words, waits.about))
    else:
        show(waits.rows, "table")
        click.echo(f"\n{waits.about}")
