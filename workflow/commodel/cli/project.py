"""The verbs that set a project up: its files, the installed software, and completion by TAB."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from commodel.cli._help import VerbCommand, make_option_group
from commodel.cli._options import PATH


def make_partition_option(text: str) -> Callable[[Any], Any]:
    """Return the option --slurm, whose value may be left out: the default partition."""
    return click.option(
        "--slurm", "partition", metavar="PARTITION", is_flag=False, flag_value="", help=text
    )


@click.command(
    cls=VerbCommand,
    examples=("commodel init mine --here", "commodel init mycluster --slurm standard"),
    arguments={"DIR": "Folder to make, or one without other files of these names."},
)
@click.argument("folder", metavar="DIR", type=PATH)
@make_option_group(
    "Where it measures: a platform and a first experiment",
    make_partition_option(
        "Describe this partition of Slurm, else the default one, and the profile."
    ),
    click.option(
        "--here",
        is_flag=True,
        help="Describe the allocation of this job script, else this machine.",
    ),
    click.option(
        "--hosts",
        metavar="A,B,C",
        help="Describe those of these hosts that ssh reaches.",
    ),
)
def init(folder: Path, partition: str | None, here: bool, hosts: str | None) -> None:
    from commodel.api.projects import init as make_project
    from commodel.cli._output import ProgressLine, can_rewrite_line

    line = ProgressLine(quiet=not can_rewrite_line())
    project = make_project(
        folder, slurm=partition, here=here, hosts=hosts, progress=line.show_progress
    )
    line.clear()
    click.echo(project.text())


@click.command(
    cls=VerbCommand,
    examples=("commodel doctor", "commodel doctor --slurm"),
)
@make_option_group(
    "Cluster",
    make_partition_option(
        "Prove by a job of two nodes in this partition, else the default one, that MPI programs start."
    ),
    click.option(
        "--wait",
        "seconds",
        metavar="SECONDS",
        type=click.FloatRange(min=1),
        default=60.0,
        show_default="60",
        help="Cancel this job after so many seconds.",
    ),
)
@make_option_group(
    "Output",
    click.option(
        "--need",
        metavar="PROGRAM",
        help="Print nothing, and exit with code 1 if this program is missing.",
    ),
)
def doctor(partition: str | None, seconds: float, need: str | None) -> None:
    from commodel.platforms.tools import find_tool

    if need:
        raise SystemExit(0 if find_tool(need) else 1)
    from commodel.api.installation import check_slurm
    from commodel.api.installation import doctor as list_programs
    from commodel.cli._output import ProgressLine

    if partition is None:
        click.echo(list_programs().text())
        return
    line = ProgressLine(False)
    start = check_slurm(partition, seconds=seconds, progress=line.show_progress)
    line.clear()
    click.echo(start.text())
    raise SystemExit(int(start.is_wrong))


@click.command(
    cls=VerbCommand,
    examples=(
        'eval "$(commodel completion bash)"  # in ~/.bashrc; zsh: in ~/.zshrc',
        "commodel completion fish | source   # in ~/.config/fish/config.fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    from click.shell_completion import get_completion_class

    from commodel.cli import main

    completion_class = get_completion_class(shell)
    assert completion_class is not None
    click.echo(completion_class(main, {}, "commodel", "_COMMODEL_COMPLETE").source())
