"""commodel build: compile the native programs."""

import click

from commodel.cli._output import waiting
from commodel.platforms.build import COMPILERS


@click.command()
@click.argument("toolchain", type=click.Choice(list(COMPILERS)), default="mpi")
def build(toolchain: str) -> None:
    """Compile what measures: probes, player and kernels with the MPI at hand (mpi) or for SimGrid (smpi), the overlay
    network and its benchmark (overlay), or that benchmark on MRNet (mrnet); or what prices family shares sooner
    (prices)."""
    from commodel.platforms.build import build as compile_programs
    from commodel.platforms.tools import workshop

    with waiting("compiling"):
        folder = compile_programs(workshop(), toolchain)
    click.echo(folder)
