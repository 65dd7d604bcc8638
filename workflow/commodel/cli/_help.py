"""Help pages: one sentence, examples that run as printed, and options in titled groups.

`Verb` is the class of every command, `VerbGroup` that of a command with subcommands. `option_group` gives options the
title under which the page lists them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import click

from commodel.errors import near, one_line

MAX_NAMES = 26  # characters of an option's names and metavar beside its text; longer ones stand above it
BOUNDS = r"(?:[\d.]+<=?)?x[<>]=?[\d.]+"  # of a number, which the message about a mistake names
RANGE = re.compile(rf"; {BOUNDS}(?=\]$)|  \[{BOUNDS}\]$")
WIDTH = 76  # characters of an example's line, which is two columns in


def option_group(title: str, *options: Callable) -> Callable[[Callable], Callable]:
    """Return a decorator that gives a function several options, which help lists under this title in this order."""

    def decorate(function: Callable) -> Callable:
        for option in reversed(options):
            option(function)
            function.__click_params__[-1].group_title = title
        return function

    return decorate


class HelpPage:
    """Writes examples, arguments and titled groups of options below the sentence, which is the docstring."""

    def __init__(
        self, *given, examples: Sequence[str] = (), arguments: Mapping[str, str] | None = None, **settings
    ) -> None:
        self.examples, self.arguments = tuple(examples), dict(arguments or {})
        super().__init__(*given, **settings)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write("".join(f"  {line}\n" for line in wrap_command(example)))
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [*self.arguments.items()]} if self.arguments else {}
        title = "Options"
        for parameter in self.get_params(ctx):  # what is in no group, such as --help, follows the last one
            title = getattr(parameter, "group_title", title)
            if isinstance(parameter, click.Option):
                names, text = parameter.get_help_record(ctx)
                groups.setdefault(title, []).append((names, RANGE.sub("", text)))
        width = max(len(names) for records in groups.values() for names, _ in records if len(names) <= MAX_NAMES)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl([(f"{names:{width}}", text) for names, text in records], MAX_NAMES)


def wrap_command(text: str) -> list[str]:
    """Return the lines of a command as a shell reads them, broken before options."""
    lines = [""]
    for piece in re.split(r"(?= -)", text):
        if len(lines[-1]) + len(piece) > WIDTH - 2 and lines[-1].strip():
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += piece
    return lines


class Verb(HelpPage, click.Command):
    """A command with such a help page."""


class VerbGroup(HelpPage, click.Group):
    """Subcommands, whatever their case; of an unknown one the nearest name."""

    command_class = Verb

    def resolve_command(self, ctx, args):
        names = self.list_commands(ctx)
        if args and args[0].lower() in names:
            args = [args[0].lower(), *args[1:]]
        elif args and not args[0].startswith("-"):
            meant = near(args[0], names)
            ctx.fail(f"No such command '{one_line(args[0], 60)}'." + (f" Did you mean '{meant}'?" if meant else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help) for name, command in commands])
