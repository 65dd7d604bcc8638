"""commodel topology: look at a tree."""

import click

from commodel.topologies import tree
from commodel.treetext import STYLES


@click.command()
@click.argument("spec")
@click.option(
    "--format",
    "style",
    type=click.Choice(list(STYLES)),
    default="summary",
    show_default=True,
    help="mrnet: the file format of MRNet; csv: node,parent.",
)
def topology(spec: str, style: str) -> None:
    """Show the tree that SPEC names: flat:16, kary:2^4, balanced:4x4, binomial:5, groups:6,6,5, chain:3, file:PATH."""
    click.echo(STYLES[style](tree(spec)))
