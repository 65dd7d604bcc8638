"""commodel topology: look at a tree."""

import click

from commodel.patterns.trees.drawing import svg
from commodel.patterns.trees.text import STYLES

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
def topology(spec: str, style: str) -> None:
    """Show the tree that SPEC names, such as kary:2^4 or groups:6,6,5; `commodel topologies` lists the forms."""
    from commodel.patterns.trees.topologies import tree

    click.echo(STYLES[style](tree(spec)))
