"""Help pages: one sentence, examples that run as printed, and options in titled groups.

`Verb` is the class of every command, `VerbGroup` that of a command with subcommands. `make_option_group` gives options
the title under which the page lists them. `--help` lists a folded group by the names of its options; `--help-all` and
the site's page of verbs explain these, too."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from commodel.errors import find_similar_name, make_printable

MAX_NAMES_LENGTH = 26  # characters of names and metavar; with longer ones, the text is on the next line
NUMBER_BOUNDS = r"(?:[\d.]+<=?)?x[<>]=?[\d.]+"  # range of a number; the help omits it, errors state it
HELP_RANGE = re.compile(rf"; {NUMBER_BOUNDS}(?=\]$)|  \[{NUMBER_BOUNDS}\]$")
EVERY_OPTION = "commodel.every_option"  # key of a click context for --help-all
EXAMPLE_WIDTH = 76  # characters of a line of an example, without its indentation


def make_option_group(title: str, *options: Callable[[Any], Any], folded: bool = False) -> Callable[[Any], Any]:
    """Return a decorator that gives a function several options, which help lists under this title in this order."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            option(function)
            added = function.__click_params__[-1]
            added.group_title, added.folded = title, folded
        return function

    return decorate


class HelpPage(click.Command):
    """Writes examples, arguments and titled groups of options below the sentence, which is the docstring."""

    def __init__(
        self, *args: Any, examples: Sequence[str] = (), arguments: Mapping[str, str] | None = None, **settings: Any
    ) -> None:
        self.examples, self.arguments = tuple(examples), dict(arguments or {})
        super().__init__(*args, **settings)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        params = super().get_params(ctx)
        if any(_is_folded(parameter) for parameter in params):
            params.append(
                click.Option(
                    ["--help-all"],
                    is_flag=True,
                    is_eager=True,
                    expose_value=False,
                    callback=self.show_every_option,
                    help="Show this message with every option explained.",
                )
            )
        return params

    def show_every_option(self, ctx: click.Context, _option: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            ctx.meta[EVERY_OPTION] = True
            click.echo(self.get_help(ctx), color=ctx.color)
            ctx.exit()

    def group_options(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """Return the options by the title of their group; options of no group, such as --help, are in the last one."""
        groups: dict[str, list[click.Option]] = {}
        title = "Options"
        for parameter in self.get_params(ctx):
            title = getattr(parameter, "group_title", title)
            if isinstance(parameter, click.Option):
                groups.setdefault(title, []).append(parameter)
        return groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write("".join(f"  {line}\n" for line in wrap_command(example)))
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)
        groups = self.group_options(ctx)
        folded = {} if ctx.meta.get(EVERY_OPTION) else {name: all(map(_is_folded, groups[name])) for name in groups}
        shown: dict[str, list[tuple[str, str]]] = {"Arguments": [*self.arguments.items()]} if self.arguments else {}
        shown |= {name: [*map(describe_option, groups[name])] for name in groups if not folded.get(name)}
        width = max(len(names) for records in shown.values() for names, _ in records if len(names) <= MAX_NAMES_LENGTH)
        for title, records in shown.items():
            with formatter.section(title):
                formatter.write_dl([(f"{names:{width}}", text) for names, text in records], MAX_NAMES_LENGTH)
        if any(folded.values()):
            with formatter.section("More options, explained by --help-all"):
                names = {title: [option.opts[-1] for option in groups[title]] for title in groups if folded[title]}
                formatter.write_dl(
                    [(f"{title:{width}}", " ".join(group)) for title, group in names.items()], MAX_NAMES_LENGTH
                )


def describe_option(option: click.Option) -> tuple[str, str]:
    """Return the names of an option with its metavar, and its text without the bounds of numbers."""
    record = option.get_help_record(click.Context(click.Command("")))
    assert record is not None, "a hidden option"
    names, text = record
    return names, HELP_RANGE.sub("", text)


def _is_folded(parameter: click.Parameter) -> bool:
    return getattr(parameter, "folded", False)


def wrap_command(text: str) -> list[str]:
    """Return the lines of a command as a shell reads them, broken before options."""
    lines = [""]
    for piece in re.split(r"(?= -)", text):
        if len(lines[-1]) + len(piece) > EXAMPLE_WIDTH - 2 and lines[-1].strip():
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += piece
    return lines


class Verb(HelpPage):
    """A command with a help page."""


class VerbGroup(HelpPage, click.Group):
    """A command with subcommands, in upper or lower case; an error about an unknown one suggests the nearest name."""

    command_class = Verb

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args and args[0].lower() in names:
            args = [args[0].lower(), *args[1:]]
        elif args and not args[0].startswith("-"):
            meant = find_similar_name(args[0], names)
            ctx.fail(
                f"No such command '{make_printable(args[0], 60)}'." + (f" Did you mean '{meant}'?" if meant else "")
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, command) for name in self.list_commands(ctx) if (command := self.get_command(ctx, name))]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help or "") for name, command in commands])
