"""commodel build: compile the native programs."""

import click

from commodel.platforms.build import COMPILERS


@click.command()
@click.argument("toolchain", type=click.Choice(list(COMPILERS)), default="mpi")
def build(toolchain: str) -> None:
    """Compile probes and player: `mpi` with the MPI at hand, `smpi` for SimGrid."""
    from commodel.platforms.build import build as compile_programs
    from commodel.platforms.tools import ROOT

    click.echo(compile_programs(ROOT, toolchain))
