"""The command line: verbs in a few modules, each imported only when it is called. A verb has
options, one call, and the printing of its result; the other packages do the work."""

import gc
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

import click

from commodel import __version__
from commodel.cli._help import VerbGroup
from commodel.cli._options import adapt_parameters, enter_project
from commodel.errors import UserError
from commodel.extensions import Verb, list_usable_extensions, report_problem

# Matrices are small here. Threads of linear algebra that wait for a busy processor take ten times
# as long as one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Reference cycles are rare here. By default, Python searches all tables and modules for them so
# often that it takes a twentieth of the time.
gc.set_threshold(50_000, 20, 100)

GROUPS = {  # in the order of use: the module of each verb, and its sentence
    "Start: set up and run an experiment": {
        "init": ("project", "Make a project with experiments, platforms and profiles."),
        "doctor": (
            "project",
            "List installed programs, and the features that need each missing one.",
        ),
        "run": ("run", "Measure, fit, predict, compare and report an experiment."),
        "status": ("run", "Show the progress of an experiment, from any machine."),
    },
    "Ask: predict and choose": {
        "predict": ("predict", "Predict the time of a workload or of a whole matrix."),
        "advise": ("advise", "Rank the alternatives for a workload by all fitted models."),
        "calibrate": ("calibrate", "Adapt fitted models to this allocation by a few points."),
    },
    "Look: reports and catalogues": {
        "report": ("report", "Write the workbook, the page or pictures of an experiment."),
        "diff": ("diff", "Compare results, comparisons or parameter sets."),
        "show": ("show", "List algorithms, models and more, or draw one of them."),
    },
    "Files: exchange with other tools": {
        "import": ("import_", "Read files of other tools."),
        "export": ("export", "Write files for other tools."),
        "completion": ("project", "Print the script that completes commands by TAB in a shell."),
    },
    "Stages: the single steps of a run": {
        "plan": ("plan", "List the points, batches and estimated time of an experiment."),
        "build": ("stages", "Compile the native programs."),
        "measure": ("stages", "Measure one batch of a plan, or the speeds of processes."),
        "collect": ("stages", "Collect raw samples into tables."),
        "fit": ("fit", "Fit models to probes, measured collectives or a data sheet."),
        "compare": ("stages", "Compare predictions with measurements."),
    },
}
VERBS = {name: entry for verbs in GROUPS.values() for name, entry in verbs.items()}


@contextmanager
def print_errors_as_lines(ctx: click.Context | None = None) -> Iterator[None]:
    """Print refusals of the operating system, and mistakes in options, as one line."""
    try:
        yield
    except (click.exceptions.NoArgsIsHelpError, BrokenPipeError):
        raise
    except click.UsageError as error:
        # The parser of options knows no command: then the verb's name is all there is.
        command = (
            error.ctx.command_path.partition(" ")[2]
            if error.ctx
            else ctx and ctx.invoked_subcommand
        )
        raise UserError(error.format_message(), key=command or "") from None
    except KeyboardInterrupt:
        click.echo("commodel: stopped by Ctrl-C", err=True)
        raise SystemExit(130) from None
    except MemoryError:
        raise UserError("out of memory") from None
    except FileExistsError as error:  # a folder that was to be made
        raise UserError("found a file, wanted a folder", file=error.filename) from None
    except OSError as error:
        raise UserError(error.strerror or str(error), file=error.filename) from None


def list_extension_verbs() -> dict[str, Verb]:
    """Return the verbs that extensions bring, by name. A name that is taken is reported, and left
    out."""
    verbs: dict[str, Verb] = {}
    for installed in list_usable_extensions():
        for name, verb in installed.extension.verbs.items():
            if name in VERBS or name in verbs:
                report_problem(installed.name, f"found verb '{name}', which another package has")
            else:
                verbs[name] = verb
    return verbs


def group_verbs() -> dict[str, dict[str, str]]:
    """Return the sentence of each verb by the title of its group. Verbs of extensions that name no
    group are last."""
    groups = {
        title: {name: sentence for name, (_, sentence) in verbs.items()}
        for title, verbs in GROUPS.items()
    }
    titles = {title.partition(":")[0]: title for title in GROUPS}
    for name, verb in list_extension_verbs().items():
        title = titles.get(verb.group, "Extensions: verbs of other packages")
        groups.setdefault(title, {})[name] = verb.sentence
    return groups


class Verbs(VerbGroup):
    """Imports the module of a verb only when the verb is called. The command has the name of the
    verb."""

    def list_commands(self, ctx: click.Context | None) -> list[str]:
        return [name for verbs in group_verbs().values() for name in verbs]

    def get_command(self, ctx: click.Context | None, name: str) -> click.Command | None:
        if name not in VERBS:
            verb = list_extension_verbs().get(name)
            if verb is None:
                return None
            command = verb.load()
            command.help = verb.sentence
            return adapt_parameters(command)
        module_name, sentence = VERBS[name]
        command = getattr(
            importlib.import_module(f"commodel.cli.{module_name}"),
            "import_" if name == "import" else name,
        )
        command.help = sentence
        return adapt_parameters(command)

    def make_context(self, *arguments, **settings) -> click.Context:
        with print_errors_as_lines():
            return super().make_context(*arguments, **settings)

    def invoke(self, ctx: click.Context):
        with print_errors_as_lines(ctx), enter_project(ctx):
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, verbs in group_verbs().items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:10}", sentence) for name, sentence in verbs.items()])


@click.command(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    examples=(
        "commodel run sample",
        "commodel advise --platform fast-ethernet-32 --operation bcast --ranks 16 --bytes 64KiB",
    ),
)
@click.version_option(__version__, prog_name="commodel", help="Show the version.")
@click.option(
    "-C",
    "directory",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="Work in this folder.  [default: the nearest project, upwards from here]",
)
def main(directory: str | None) -> None:
    """Predict what communication costs on a cluster by published models, and measure it."""
