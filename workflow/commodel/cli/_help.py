"""Help pages: one sentence, examples that run as printed, and options in titled groups.

`VerbCommand` is the class of every command, `VerbGroup` that of a command with subcommands, and
`VerbWithModes` that of a verb which answers its main question itself and further ones by
subcommands. `make_option_group` gives options the title under which the page lists them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import click
from click.core import ParameterSource

from commodel.errors import find_similar_name, make_printable
from commodel.extensions import find_absent_package, list_subcommands

# characters of names and metavar; with longer ones, the text is on the next line
MAX_NAMES_LENGTH = 26
# range of a number; the help omits it, errors state it
NUMBER_BOUNDS = r"(?:[\d.]+<=?)?x[<>]=?[\d.]+"
HELP_RANGE = re.compile(rf"; {NUMBER_BOUNDS}(?=\]$)|  \[{NUMBER_BOUNDS}\]$")
EXAMPLE_WIDTH = 76  # characters of a line of an example, without its indentation


def make_option_group(title: str, *options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a decorator that gives a function several options, which help lists under this title
    in this order."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            option(function)
            function.__click_params__[-1].group_title = title
        return function

    return decorate


class HelpPage(click.Command):
    """Writes examples, arguments and titled groups of options below the sentence, which is the
    docstring."""

    def __init__(
        self,
        *args: Any,
        examples: Sequence[str] = (),
        arguments: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        self.examples, self.arguments = tuple(examples), dict(arguments or {})
        super().__init__(*args, **settings)

    def group_options(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """Return the options by the title of their group; options of no group, such as --help, are
        in the last one."""
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
        shown: dict[str, list[tuple[str, str]]] = (
            {"Arguments": [*self.arguments.items()]} if self.arguments else {}
        )
        shown |= {
            title: [*map(describe_option, options)]
            for title, options in self.group_options(ctx).items()
        }
        width = max(
            len(names)
            for records in shown.values()
            for names, _ in records
            if len(names) <= MAX_NAMES_LENGTH
        )
        for title, records in shown.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(f"{names:{width}}", text) for names, text in records], MAX_NAMES_LENGTH
                )


def describe_option(option: click.Option) -> tuple[str, str]:
    """Return the names of an option with its metavar, and its text without the bounds of
    numbers."""
    record = option.get_help_record(click.Context(click.Command("")))
    assert record is not None, "a hidden option"
    names, text = record
    return names, HELP_RANGE.sub("", text)


def wrap_command(text: str) -> list[str]:
    """Return the lines of a command as a shell reads them, broken before options."""
    lines = [""]
    for piece in re.split(r"(?= -)", text):
        if len(lines[-1]) + len(piece) > EXAMPLE_WIDTH - 2 and lines[-1].strip():
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += piece
    return lines


class VerbCommand(HelpPage):
    """A command with a help page."""


class VerbGroup(HelpPage, click.Group):
    """A command with subcommands, in upper or lower case; an error about an unknown one suggests
    the nearest name.

    Those that extensions bring are imported when they are called."""

    command_class = VerbCommand

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.commands, *list_subcommands(self.name or "", self.commands)})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        brought = list_subcommands(self.name or "", self.commands).get(name)
        if brought is None:
            return super().get_command(ctx, name)
        from commodel.cli._options import adapt_parameters  # which imports this module

        return adapt_parameters(brought.load())

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args and args[0].lower() in names:
            args = [args[0].lower(), *args[1:]]
        elif args and not args[0].startswith("-"):
            meant = find_similar_name(args[0], names)
            hint = f" Did you mean '{meant}'?" if meant else f" Wanted one of: {', '.join(names)}."
            package = find_absent_package(args[0])
            if package:
                hint = f" It is in {package}, which is not installed."
            ctx.fail(f"No such command '{make_printable(args[0], 60)}'.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command:
                lines.append((name, command.help or ""))
        # Without extensions, `measure` has no subcommand.
        if lines:
            with formatter.section("Commands"):
                formatter.write_dl(lines)


class VerbWithModes(VerbGroup):
    """A verb that answers its main question without a subcommand. A subcommand takes none of the
    verb's options."""

    def __init__(self, *args: Any, callback: Callable[..., Any], **settings: Any) -> None:
        @wraps(callback)
        def answer(**options: Any) -> None:
            ctx = click.get_current_context()
            if ctx.invoked_subcommand is None:
                callback(**options)
                return
            for parameter in self.params:
                if ctx.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE:
                    ctx.fail(
                        f"found {parameter.opts[0]} before '{ctx.invoked_subcommand}', wanted options behind it"
                    )

        super().__init__(
            *args,
            callback=answer,
            invoke_without_command=True,
            subcommand_metavar="[COMMAND]",
            **settings,
        )
