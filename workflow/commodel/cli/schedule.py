"""commodel schedule: look at the messages of a pattern."""

import click

from commodel.cli._points import one_schedule, pattern_options
from commodel.patterns.notation import STYLES


@click.command()
@pattern_options
@click.option(
    "--format",
    "style",
    type=click.Choice(list(STYLES)),
    default="csv",
    show_default=True,
    help="csv: step,src,dst,bytes.",
)
def schedule(style: str, **pattern) -> None:
    """Print the messages of one pattern: step,src,dst,bytes; or a Graphviz drawing."""
    click.echo(STYLES[style](one_schedule(**pattern)))
