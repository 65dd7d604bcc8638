"""Progress on long work: one line that is rewritten on a terminal, plain lines elsewhere, nothing with -q."""

import sys
from collections.abc import Callable

import click


def progress(quiet: bool) -> Callable[[str], None]:
    if quiet:
        return lambda message: None
    return lambda message: click.echo(message, file=sys.stderr)
