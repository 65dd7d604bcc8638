"""commodel layouts: the ways to place ranks on nodes."""

import click

from commodel.cli._output import show, style_option


@click.command()
@style_option
def layouts(style: str) -> None:
    """List the layouts, as `commodel layout` and --layout take them; Q is ranks a node."""
    from commodel.registry import discover

    entries = discover("patterns.layouts", "LAYOUT").values()
    show([{"layout": entry.form, "title": entry.title} for entry in entries], style)
