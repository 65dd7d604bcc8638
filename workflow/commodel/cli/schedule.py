"""commodel schedule: look at the messages of a pattern."""

import click

from commodel.cli._points import pattern_options, points
from commodel.notation import STYLES
from commodel.patterns import schedule as schedule_of


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
    chosen = points(**pattern)
    if len(chosen) != 1:
        raise click.UsageError(f"these options mean {len(chosen)} patterns; name one algorithm or topology, one size")
    click.echo(STYLES[style](schedule_of(chosen[0])))
