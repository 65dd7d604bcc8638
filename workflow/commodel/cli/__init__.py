"""The command line: verbs in a few modules, imported only when they are called for. A verb is its options, a call and a
print; what it does lies in the rooms below."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager

import click

from commodel import __version__
from commodel.cli._options import ForgivingGroup, adapt_parameters, enter_project
from commodel.errors import UserError

VERBS = {  # in the order of help: the module of each, and what it does
    "run": ("run", "an experiment from its YAML to its report."),
    "status": ("run", "how far a campaign is, also while its jobs run elsewhere."),
    "plan": ("plan", "what an experiment will do, before anything runs."),
    "build": ("stages", "compile the native programs."),
    "measure": ("stages", "run one batch of a plan."),
    "collect": ("stages", "raw samples to one table."),
    "fit": ("fit", "parameters of a family on one platform, or of several from measured collectives."),
    "predict": ("predict", "what patterns cost under one family, or under several side by side."),
    "compare": ("stages", "predictions beside measurements."),
    "report": ("report", "the workbook and the page, pictures, or whether a workbook is what the results say."),
    "advise": ("advise", "which tree, layout or algorithm for a job, by the vote of all fitted families."),
    "algorithms": ("show", "the algorithms of every collective operation."),
    "calibrate": ("calibrate", "a few points measured in this job move the prices of another one to it."),
    "completion": ("project", "what makes a shell complete verbs, options and names by TAB."),
    "configure": ("kernels", "which processes, cores and partition make a kernel fastest, communication included."),
    "diff": ("diff", "what changed between two results, comparisons or parameter sets."),
    "doctor": ("project", "what is installed here, and what each missing thing would give."),
    "export": ("export", "schedules, trees, measurements and parameters as files of other tools."),
    "families": ("show", "the model families, what each is made of and what it leaves out."),
    "history": ("diff", "several results, comparisons or parameter sets in a row, each beside the first."),
    "import": ("import_", "what other tools measured, fitted or wrote down, as files of commodel."),
    "init": ("project", "a project of your own, with params, profiles and a Snakefile."),
    "join": ("price", "parts of a long table, one after the other."),
    "kernel": ("kernels", "what a data-parallel kernel's communication costs under all families, side by side."),
    "layout": ("show", "look at where ranks sit."),
    "layouts": ("show", "the ways to place ranks on nodes."),
    "network": ("show", "how far apart the nodes of an allocation are, by the times of their pairs."),
    "operations": ("show", "what can be measured and priced, and with which parameters."),
    "partition": ("kernels", "which rectangle of a matrix each process gets, by how fast it is."),
    "price": ("price", "a whole matrix under many parameter sets, without measuring anything."),
    "schedule": ("show", "look at the messages of a pattern."),
    "speeds": (
        "kernels",
        "measure how fast each kind of process runs a kernel, at sizes chosen where the speed bends.",
    ),
    "topologies": ("show", "the forms of tree."),
    "topology": ("show", "look at a tree, and at what its price rests on."),
    "tune": ("tune", "rules for the MPI library's own collectives, measured where it decides, and proven to pay."),
    "window": ("advise", "how many ranks may send to one at once, by the cluster model's equations."),
}


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


class Verbs(ForgivingGroup):
    """Imports the module of a verb only when the verb is called for; its command is called like the verb."""

    def list_commands(self, ctx: click.Context | None) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context | None, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        module = importlib.import_module(f"commodel.cli.{VERBS[name][0]}")
        return adapt_parameters(getattr(module, "import_" if name == "import" else name))

    def make_context(self, *arguments, **settings) -> click.Context:
        with one_line_errors():
            return super().make_context(*arguments, **settings)

    def invoke(self, ctx: click.Context):
        with one_line_errors(ctx), enter_project(ctx):
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in VERBS.items()])


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
