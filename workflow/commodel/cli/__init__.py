"""The command line: one file a verb, imported only when it is called for."""

import importlib
import pkgutil

import click

from commodel import __version__


class Verbs(click.Group):
    """Finds the verbs in this folder; `verb.py` holds a command called `verb`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        order = ("run", "plan", "build", "measure", "collect", "fit", "predict", "compare", "report")
        found = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
        return sorted(found, key=lambda name: order.index(name) if name in order else len(order))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        return getattr(importlib.import_module(f"commodel.cli.{name}"), name)


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="commodel")
def main() -> None:
    """What communication will cost on your cluster: predicted by every published model, and measured.

    Start with `commodel run demo`. The verbs from plan to report are the stages that `run` goes through.
    """
