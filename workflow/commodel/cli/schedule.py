"""commodel schedule: look at the messages of a pattern."""

import click

from commodel.cli._output import pattern_options


@click.command()
@pattern_options
@click.option(
    "--format",
    "style",
    type=click.Choice(["csv", "dot"]),
    default="csv",
    show_default=True,
    help="csv: the table that file:PATH and the player read.",
)
def schedule(style: str, **pattern) -> None:
    """Print the messages and the local work of one pattern as a table, or as a Graphviz drawing.

    A row is a message that rank sends to peer: posted in step and waited for in wait, by its receiver
    in peer_step and peer_wait. What is empty is as step says.
    """
    from commodel.api.predictions import build_one_schedule
    from commodel.patterns.schedule_files import STYLES

    click.echo(STYLES[style](build_one_schedule(**pattern)))
