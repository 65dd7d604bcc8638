"""commodel completion: what makes a shell complete verbs, options and names by TAB."""

import click

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that lets TAB complete verbs, options, experiments, platforms, families and algorithms.

    \b
    eval "$(commodel completion bash)"            # in ~/.bashrc
    eval "$(commodel completion zsh)"             # in ~/.zshrc
    commodel completion fish | source             # in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    from commodel.cli import main

    click.echo(get_completion_class(shell)(main, {}, "commodel", "_COMMODEL_COMPLETE").source())
