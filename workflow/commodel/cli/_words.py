"""What people type: names whatever their case, verbs nearly right, files from where they stand; and what TAB offers.

Names are read off folders, so that TAB imports nothing but the verb.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from commodel.errors import near, one_line
from commodel.sources import HERE, ROOT

PROJECT = ("params/experiments", "params/platforms")  # what makes a folder a project, beside which results lie
PUBLISHED = "params/published/"


def project(start: Path) -> Path:
    """The folder that a verb works in: this one, or the nearest one above it that is a project. A folder above that is
    somebody else's is none, for a project's files name what may run."""
    if any(os.path.isdir(start / name) for name in ("params", "results")):  # False, too, where nobody may look
        return start
    owned = (folder for folder in start.parents if any(os.path.isdir(folder / name) for name in PROJECT))
    return next((folder for folder in owned if folder.stat().st_uid == os.getuid()), start)


def here(ctx: click.Context) -> Path:
    """Where the user stands: -C, or the working folder."""
    return Path(ctx.find_root().params.get("directory") or ".").absolute()


@contextmanager
def standing_in_project(ctx: click.Context) -> Iterator[None]:
    start = here(ctx)
    with chdir(start):
        folder = project(start)
        ctx.obj, ctx.params["directory"] = os.path.relpath(start, folder), None  # whoever asks later stands there
        with chdir(folder):
            yield


def from_here(text: str, ctx: click.Context | None) -> str:
    """A path as the user typed it, seen from the project's folder. Published values may be the installation's."""
    prefix = ctx.find_root().obj if ctx else None
    if prefix and prefix != "." and not os.path.isabs(text):
        return os.path.normpath(os.path.join(prefix, text))
    if text.startswith(PUBLISHED) and not os.path.exists(text) and (ROOT / text).is_file():
        return str(ROOT / text)
    return text


class File(click.Path):
    """A path from where the user stands."""

    def convert(self, value, param, ctx):
        return super().convert(from_here(os.fspath(value), ctx) if value else value, param, ctx)


class Name(click.ParamType):
    """A name, with what belongs to it after a colon; or a file, where a name may be one."""

    name = "text"

    def __init__(self, names: Callable[[click.Context], Iterable[str]]):
        self.names = names

    def convert(self, value, param, ctx):
        head, colon, rest = value.partition(":")
        if head in ("file", "processes") and rest:
            return f"{head}:{from_here(rest, ctx)}"
        if "/" in value or value.endswith((".yaml", ".yml", ".xlsx")):
            return from_here(value, ctx)
        known = {name.lower(): name for name in self.names(ctx)} if ctx and head.lower() != head else {}
        return known.get(head.lower(), head) + colon + rest

    def shell_complete(self, ctx, param, incomplete):
        return [CompletionItem(name) for name in sorted(self.names(ctx)) if name.startswith(incomplete.lower())]


def stems(folder: str) -> list[str]:
    """Of a registry's folder: the names of its entries."""
    return [path.stem.replace("_", "-") for path in (HERE / folder).glob("[a-z]*.py")]


def files(kind: str) -> Callable[[click.Context], list[str]]:
    return lambda ctx: [path.stem for path in project(here(ctx)).glob(f"params/{kind}/*.yaml")]


def campaigns(ctx: click.Context) -> list[str]:
    finished = (path.parent.name for path in project(here(ctx)).glob("results/*/plan.json"))
    return [*{*files("experiments")(ctx), *finished}]


def profiles(ctx: click.Context) -> list[str]:
    places = (project(here(ctx)), ROOT)
    names = {path.parent.name for place in places for path in place.glob("profiles/*/config.yaml")}
    return [name for name in names if name != "default"]


def choices(ctx: click.Context) -> list[str]:
    """Algorithms of the operation that is given, or of all."""
    given = ctx.params.get("operation") or ctx.params.get("operations") or ""
    heads = [given] if isinstance(given, str) else given
    operations = [head.partition(":")[0] for head in heads if head] or stems("patterns/operations")
    # The longest name first: a file `reduce-scatter-ring` is of reduce-scatter, not of reduce.
    every = sorted(stems("patterns/operations"), key=len, reverse=True)
    of = {
        stem: next((name for name in every if stem.startswith(f"{name}-")), "") for stem in stems("patterns/algorithms")
    }
    return list(dict.fromkeys(stem.removeprefix(f"{name}-") for stem, name in of.items() if name in operations))


OPERATIONS, TOPOLOGIES = (
    Name(lambda ctx: stems("patterns/operations")),
    Name(lambda ctx: stems("patterns/trees/topologies")),
)
LAYOUTS, FAMILIES = Name(lambda ctx: stems("patterns/layouts")), Name(lambda ctx: stems("models/families"))
PLATFORMS, EXPERIMENTS = Name(files("platforms")), Name(campaigns)
KNOWN = {  # by what a parameter of a verb is called
    "experiment": EXPERIMENTS,
    "platform": PLATFORMS,
    "profile": Name(profiles),
    "family": FAMILIES,
    "families": Name(lambda ctx: [*stems("models/families"), "all"]),
    "operation": OPERATIONS,
    "operations": OPERATIONS,
    "algorithm": Name(choices),
    "topology": TOPOLOGIES,
    "layout": LAYOUTS,
    "layouts": LAYOUTS,
    "partition": File(),
}
OF_VERBS = {
    ("families", "name"): FAMILIES,
    ("topology", "spec"): TOPOLOGIES,
    ("mrnet", "spec"): TOPOLOGIES,
    ("layout", "spec"): LAYOUTS,
    ("run", "experiment"): Name(files("experiments")),
    ("plan", "experiment"): Name(files("experiments")),
    ("run", "only"): PLATFORMS,
    ("plan", "only"): PLATFORMS,
    ("advise", "only"): Name(lambda ctx: [*choices(ctx), *stems("patterns/trees/topologies")]),
}


def understood(command: click.Command) -> click.Command:
    """The verb, with names, files and choices read as people type them."""
    for parameter in command.params:
        kind = OF_VERBS.get((command.name, parameter.name)) or KNOWN.get(parameter.name)
        if type(parameter.type) is click.Path:
            parameter.type = File(path_type=parameter.type.type)
        elif kind and isinstance(parameter.type, click.types.StringParamType):
            parameter.type = kind
        elif isinstance(parameter.type, click.Choice):
            parameter.type.case_sensitive = False
    for part in getattr(command, "commands", {}).values():
        understood(part)
    return command


class Forgiving(click.Group):
    """Commands whatever their case; of one that is not there the nearest name."""

    def resolve_command(self, ctx, args):
        names = self.list_commands(ctx)
        if args and args[0].lower() in names:
            args = [args[0].lower(), *args[1:]]
        elif args and not args[0].startswith("-"):
            meant = near(args[0], names)
            ctx.fail(f"No such command '{one_line(args[0], 60)}'." + (f" Did you mean '{meant}'?" if meant else ""))
        return super().resolve_command(ctx, args)
