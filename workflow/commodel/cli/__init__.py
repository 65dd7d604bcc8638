"""The command line: one file a verb, imported only when it is called for. What a verb does lies in the rooms
below."""

import ast
import importlib
import keyword
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from commodel import __version__
from commodel.cli._output import Forgiving, standing_in_project, understood
from commodel.errors import UserError

HERE = Path(__file__).parent
STAGES = ("run", "status", "plan", "build", "measure", "collect", "fit", "predict", "compare", "report")


def stem(name: str) -> str:
    """Python keeps some words for itself: `import` is in import_.py."""
    return f"{name}_" if keyword.iskeyword(name) else name


@contextmanager
def one_line_errors(ctx: click.Context | None = None) -> Iterator[None]:
    """What the machine refuses is no traceback's matter either, and an option's mistake not worth four lines."""
    try:
        yield
    except (click.exceptions.NoArgsIsHelpError, BrokenPipeError):
        raise
    except click.UsageError as error:
        raise UserError(error.format_message(), key=(ctx and ctx.invoked_subcommand) or "") from None
    except KeyboardInterrupt:
        click.echo("commodel: stopped by Ctrl-C", err=True)
        raise SystemExit(130) from None
    except MemoryError:
        raise UserError("this is more than fits into memory") from None
    except FileExistsError as error:  # a folder that was to be made
        raise UserError("found a file, wanted a folder", file=error.filename) from None
    except OSError as error:
        raise UserError(error.strerror or str(error), file=error.filename) from None


class Verbs(Forgiving):
    """Finds the verbs in this folder: `verb.py` holds a command called `verb`."""

    def list_commands(self, ctx: click.Context | None) -> list[str]:
        names = sorted(path.stem.removesuffix("_") for path in HERE.glob("[a-z]*.py"))
        return sorted(names, key=lambda name: STAGES.index(name) if name in STAGES else len(STAGES))

    def get_command(self, ctx: click.Context | None, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        return understood(getattr(importlib.import_module(f"commodel.cli.{stem(name)}"), stem(name)))

    def make_context(self, *arguments, **settings) -> click.Context:
        with one_line_errors():
            return super().make_context(*arguments, **settings)

    def invoke(self, ctx: click.Context):
        with one_line_errors(ctx), standing_in_project(ctx):
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One line a verb, read off the first line of its file: importing all of them would take seconds."""
        rows = []
        for name in self.list_commands(ctx):
            text = ast.get_docstring(ast.parse((HERE / f"{stem(name)}.py").read_text(encoding="utf-8"))) or ""
            first = text.split("\n")[0]
            rows.append((name, first.partition(": ")[2]))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="commodel")
@click.option(
    "-C",
    "directory",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="Work in this folder.  [default: this one, or the nearest project above it]",
)
def main(directory: str | None) -> None:
    """What communication will cost on your cluster: predicted by published models, and measured.

    Start with `commodel run demo`, or `commodel init DIR` for a project of your own.
    The verbs from plan to report are the stages that `run` goes through.
    """
