"""The command line: one file a verb, imported only when it is called for."""

import ast
import importlib
from pathlib import Path

import click

from commodel import __version__
from commodel.errors import UserError

HERE = Path(__file__).parent
STAGES = ("run", "plan", "build", "measure", "collect", "fit", "predict", "compare", "report")


class Verbs(click.Group):
    """Finds the verbs in this folder: `verb.py` holds a command called `verb`."""

    def list_commands(self, ctx: click.Context | None) -> list[str]:
        found = sorted(path.stem for path in HERE.glob("[a-z]*.py"))
        return sorted(found, key=lambda name: STAGES.index(name) if name in STAGES else len(STAGES))

    def get_command(self, ctx: click.Context | None, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        return getattr(importlib.import_module(f"commodel.cli.{name}"), name)

    def invoke(self, ctx: click.Context):
        """What the machine refuses is no traceback's matter either."""
        try:
            return super().invoke(ctx)
        except MemoryError:
            raise UserError("this is more than fits into memory") from None
        except OSError as error:
            raise UserError(error.strerror or str(error), file=error.filename) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One line a verb, read off the first line of its file: importing all of them would take seconds."""
        rows = []
        for name in self.list_commands(ctx):
            first = (ast.get_docstring(ast.parse((HERE / f"{name}.py").read_text(encoding="utf-8"))) or "").split("\n")[
                0
            ]
            rows.append((name, first.partition(": ")[2]))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="commodel")
def main() -> None:
    """What communication will cost on your cluster: predicted by every published model, and measured.

    Start with `commodel run demo`. The verbs from plan to report are the stages that `run` goes through.
    """
