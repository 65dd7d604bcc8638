"""Options that several verbs share, and parameter types: names in any case, files relative to the
user's folder.

Names are read from folders, so that completion by TAB imports nothing but the verb.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import chdir, contextmanager
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from commodel.cli._help import make_option_group
from commodel.errors import UserError, make_printable
from commodel.extensions import list_names_in_text
from commodel.files.results_folder import PLAN
from commodel.records import Statistic
from commodel.registry import list_names
from commodel.sources import PACKAGE, ROOT

PATH = click.Path(path_type=Path)
STATISTIC = click.Choice([word.value for word in Statistic if word is not Statistic.UNKNOWN])
# a folder with one of these is a project
PROJECT_FOLDERS = ("params/experiments", "params/platforms")
PUBLISHED_FOLDER = "params/published/"


def format_option(
    *styles: str, help_text: str = "Print a table, or all digits as JSON or CSV."
) -> Callable:
    """Return the option for one of several formats, of which the first is the default."""
    return click.option(
        "--format",
        "style",
        type=click.Choice(styles),
        default=styles[0],
        show_default=True,
        help=help_text,
    )


statistic_option = click.option(
    "--statistic",
    type=STATISTIC,
    default=Statistic.COMPLETION.value,
    show_default=True,
    help="Which ranks' times; OSU prints the rank mean.",
)


def out_option(help_text: str, required: bool = False) -> Callable:
    return click.option("-o", "--out", type=PATH, required=required, help=help_text)


style_option = format_option("table", "json", "csv")
WORKBOOK_STYLES = ("table", "json", "csv", "xlsx")
workbook_style_option = click.option(
    "--format",
    "style",
    type=click.Choice(WORKBOOK_STYLES),
    help="Format.  [default: as --out ends, else table]",
)
# Explanations of arguments on help pages.
EXPERIMENT_ARGUMENT = {"EXPERIMENT": "Name of a file in params/experiments, or a path."}
RESULTS_ARGUMENT = {"EXPERIMENT": "Name of a folder in results."}
process_count_option = click.option(
    "--ranks", type=click.IntRange(1, 1 << 20), help="Number of processes.  [default: the layout's]"
)
cores_option = click.option(
    "--cores",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Use so many cores of this machine.",
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
verbose_option = click.option(
    "--verbose", is_flag=True, help="Print all notes, not only the first five."
)
platform_option = click.option(
    "--platform", help="Platform: the name of a file in params/platforms, or a path."
)
experiment_option = click.option(
    "--experiment",
    help="Experiment whose results to use.  [default: all runs of the platform that measured the operation]",
)
params_option = click.option(
    "--params",
    type=PATH,
    multiple=True,
    help="Parameter sets (YAML), folders of sets or workbooks of reports; repeated.",
)
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Replace a parameter (L=2.5us) or a setting (posting=list); MODEL:NAME=VALUE for one model only; repeated.",
)
commutative_option = click.option(
    "--commutative",
    is_flag=True,
    help="Assume that all reductions commute, which allows more rules.",
)
same_types_option = click.option(
    "--same-types", is_flag=True, help="Assume one datatype a message, which allows more rules."
)


def choose_style(requested: str | None, out: Path | None, styles: Sequence[str]) -> str:
    """Return the requested format, else that in which the file's name ends, else a table. A
    workbook is written only to a file .xlsx, and nothing else is."""
    suffix = out.suffix[1:] if out else ""
    style = requested or (suffix if suffix in (*styles, "xlsx") else "table")
    if style not in styles:
        raise UserError(f"--format: found {style}, wanted {' or '.join(styles)}")
    if style == "xlsx" and not out:
        raise UserError("a workbook needs a file: give -o NAME.xlsx")
    if out and (style == "xlsx") != (suffix == "xlsx"):
        raise UserError(f"--out: found {out.name} for the format {style}")
    return style


def check_workbook(out: Path | None) -> None:
    if out is not None and out.suffix != ".xlsx":
        raise UserError(f"--out: found {out.name}, wanted a name that ends with .xlsx")


def refuse_campaign(out: Path) -> None:
    """Refuse to write predictions of values set by hand into a folder of results, where readers
    would take them for predictions of fitted values."""
    for folder in out.absolute().parents:
        if (folder / PLAN).exists():
            raise UserError(
                f"--set: --out lies in the results {folder}, wanted a file outside of results"
            )


def find_project(start: Path) -> Path:
    """Return the folder that a verb works in: this one, or the nearest project above it. A project
    above that belongs to another user is not taken, because the files of a project name programs
    that run."""
    # False, too, without permission
    if any(os.path.isdir(start / name) for name in ("params", "results")):
        return start
    owned = (
        folder
        for folder in start.parents
        if any(os.path.isdir(folder / name) for name in PROJECT_FOLDERS)
    )
    return next((folder for folder in owned if folder.stat().st_uid == os.getuid()), start)


def find_start_folder(ctx: click.Context) -> Path:
    """Return the folder from which the user's paths start: -C, or the working folder."""
    return Path(ctx.find_root().params.get("directory") or ".").absolute()


@contextmanager
def enter_project(ctx: click.Context) -> Iterator[None]:
    start = find_start_folder(ctx)
    with chdir(start):
        folder = find_project(start)
        # From now on the working folder is the project; `ctx.obj` leads from it to the user's
        # folder.
        ctx.obj, ctx.params["directory"] = os.path.relpath(start, folder), None
        with chdir(folder):
            yield


def resolve_path(text: str, ctx: click.Context | None) -> str:
    """Return a path of the user's folder, relative to the project's folder. A file of published
    values that the project lacks is taken from the installation."""
    prefix = ctx.find_root().obj if ctx else None
    if prefix and prefix != "." and not os.path.isabs(text):
        return os.path.normpath(os.path.join(prefix, text))
    if text.startswith(PUBLISHED_FOLDER) and not os.path.exists(text) and (ROOT / text).is_file():
        return str(ROOT / text)
    return text


class File(click.Path):
    """A path relative to the user's folder."""

    def convert(self, value, param, ctx):
        return super().convert(resolve_path(os.fspath(value), ctx) if value else value, param, ctx)


class Name(click.ParamType):
    """A name in any case, perhaps with arguments after a colon; or a file, if the option accepts
    one."""

    name = "text"

    def __init__(self, names: Callable[[click.Context], Iterable[str]]):
        self.names = names

    def convert(self, value, param, ctx):
        head, colon, argument = value.partition(":")
        if head in ("file", "processes") and argument:
            return f"{head}:{resolve_path(argument, ctx)}"
        if "/" in value or value.endswith((".yaml", ".yml", ".xlsx")):
            return resolve_path(value, ctx)
        if "," in head.partition("(")[0] and isinstance(param, click.Option):
            repeat = f"; repeat {param.opts[0]} for each" if param.multiple else ""
            raise UserError(
                f"{param.opts[0]}: found '{make_printable(value, 60)}', wanted one name{repeat}"
            )
        spellings = (
            {name.lower(): name for name in self.names(ctx)} if ctx and head.lower() != head else {}
        )
        return spellings.get(head.lower(), head) + colon + argument

    def shell_complete(self, ctx, param, incomplete):
        return [
            CompletionItem(name)
            for name in sorted(self.names(ctx))
            if name.startswith(incomplete.lower())
        ]


def list_model_names(ctx: click.Context) -> list[str]:
    """Return the names of the models: those of their files, and those that extensions bring."""
    own = [path.stem.replace("_", "-") for path in (PACKAGE / "models/families").glob("[a-z]*.py")]
    return own + [name for name, *_ in list_names_in_text("FAMILY")]


def make_file_lister(kind: str) -> Callable[[click.Context], list[str]]:
    return lambda ctx: [
        path.stem for path in find_project(find_start_folder(ctx)).glob(f"params/{kind}/*.yaml")
    ]


def list_campaigns(ctx: click.Context) -> list[str]:
    finished = (
        path.parent.name
        for path in find_project(find_start_folder(ctx)).glob("results/*/plan.json")
    )
    return [*{*make_file_lister("experiments")(ctx), *finished}]


def list_profiles(ctx: click.Context) -> list[str]:
    directories = (find_project(find_start_folder(ctx)), ROOT)
    names = {
        path.parent.name
        for directory in directories
        for path in directory.glob("profiles/*/config.yaml")
    }
    return [name for name in names if name != "default"]


def list_known_algorithms(ctx: click.Context) -> list[str]:
    """Return the algorithms of the given operations, or of all."""
    option_value = ctx.params.get("operation") or ctx.params.get("operations") or ""
    heads = [option_value] if isinstance(option_value, str) else option_value
    operations = [head.partition(":")[0] for head in heads if head]
    found: list[str] = []
    for operation, *name in list_names("patterns.algorithms", "ALGORITHM"):
        # an algorithm over any topology has no name of its own
        if name and (operation in operations or not operations):
            found += name
    return list(dict.fromkeys(found))


def make_name_lister(folder: str, constant: str) -> Callable[..., list[str]]:
    return lambda ctx=None: [name for name, *_ in list_names(folder, constant)]


operation_names = make_name_lister("patterns.operations", "OPERATION")
topology_names = make_name_lister("patterns.trees.topologies", "TOPOLOGY")
OPERATIONS, TOPOLOGIES = Name(operation_names), Name(topology_names)
LAYOUTS, FAMILIES = (
    Name(make_name_lister("patterns.layouts", "LAYOUT")),
    Name(list_model_names),
)
PLATFORMS, PLANNED = Name(make_file_lister("platforms")), Name(make_file_lister("experiments"))
PARAMETER_TYPES = {  # by what a parameter of a verb is called
    "experiment": Name(list_campaigns),
    "platform": PLATFORMS,
    "profile": Name(list_profiles),
    "model": FAMILIES,
    "models": Name(lambda ctx: [*list_model_names(ctx), "all"]),
    "operation": OPERATIONS,
    "operations": OPERATIONS,
    "algorithm": Name(list_known_algorithms),
    "topology": TOPOLOGIES,
    "layout": LAYOUTS,
    "layouts": LAYOUTS,
    "partition": File(),
    ("models", "name"): FAMILIES,
    ("operations", "name"): OPERATIONS,
    ("topologies", "name"): TOPOLOGIES,
    ("layouts", "name"): LAYOUTS,
    ("network", "name"): Name(
        lambda ctx: [*list_campaigns(ctx), *make_file_lister("platforms")(ctx)]
    ),
    ("matrix", "experiment"): PLANNED,
    ("topology", "spec"): TOPOLOGIES,
    ("mrnet", "spec"): TOPOLOGIES,
    ("layout", "spec"): LAYOUTS,
    ("run", "experiment"): PLANNED,
    ("plan", "experiment"): PLANNED,
    ("run", "only"): PLATFORMS,
    ("plan", "only"): PLATFORMS,
    ("advise", "only"): Name(lambda ctx: [*list_known_algorithms(ctx), *topology_names()]),
}


def adapt_parameters(command: click.Command) -> click.Command:
    """Return the verb with parameters that accept names in any case, and files relative to the
    user's folder."""
    for parameter in command.params:
        kind = PARAMETER_TYPES.get(
            (command.name or "", parameter.name or "")
        ) or PARAMETER_TYPES.get(parameter.name)
        if type(parameter.type) is click.Path:
            parameter.type = File(path_type=parameter.type.type)
        elif kind and isinstance(parameter.type, click.types.StringParamType):
            parameter.type = kind
        elif isinstance(parameter.type, click.Choice):
            parameter.type.case_sensitive = False
        elif isinstance(parameter.type, click.IntRange | click.FloatRange):
            parameter.metavar = "N"
    for part in getattr(command, "commands", {}).values():
        adapt_parameters(part)
    return command


PATTERN_OPTIONS = (
    click.option(
        "--operation", help=f"Operation: {', '.join(sorted(operation_names()))}, or file:PATH."
    ),
    click.option(
        "--algorithm", multiple=True, help="Algorithm; repeated.  [default: every algorithm]"
    ),
    click.option(
        "--topology",
        multiple=True,
        help="Tree in place of an algorithm, e.g. balanced:4x4; repeated.",
    ),
    click.option("--ranks", help="Number of ranks: 16, or 2,4,8, or 2:64:*2; not with --topology."),
    click.option("--bytes", "sizes", help="Message size: 1KiB, or 8,1KiB, or 1:1MiB:*4."),
    click.option(
        "--layout",
        help="Layout of ranks on nodes, e.g. cyclic:2.  [default: as few ranks a node as fit]",
    ),
)
pattern_options = make_option_group("Workload", *PATTERN_OPTIONS)
