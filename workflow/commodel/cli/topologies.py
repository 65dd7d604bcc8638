"""commodel topologies: the forms of tree."""

import click

from commodel.cli._output import show, style_option


@click.command()
@style_option
def topologies(style: str) -> None:
    """List the topologies, as `commodel topology` and --topology take them.

    What MRNet's generator calls b:F^D, b:AxB, k:K@N and g:… is understood too.
    """
    from commodel.registry import discover

    entries = discover("patterns.trees.topologies", "TOPOLOGY").values()
    show([{"topology": entry.form, "title": entry.title} for entry in entries], style)
