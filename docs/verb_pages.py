"""Generate the reference of the command line from its commands, for the site's page of verbs."""

from collections.abc import Iterator

import click

from commodel.cli import group_verbs, main
from commodel.cli._help import describe_option, wrap_command


def describe_verbs() -> str:
    """Return a section for each group of verbs, and in it one for each verb and each part of a
    verb."""
    context = click.Context(main, info_name="commodel")
    return "\n".join(
        line
        for title, verbs in group_verbs().items()
        for line in _describe_group(title, verbs, context)
    )


def _describe_group(title: str, verbs: dict, context: click.Context) -> Iterator[str]:
    yield from (f"## {title}", "")
    for name in verbs:
        yield from _describe_verb(main.get_command(context, name), name, context, "###")


def _describe_verb(
    command: click.Command, name: str, parent: click.Context, level: str
) -> Iterator[str]:
    """Yield the heading, sentence, usage, examples, arguments and options of a verb, then its
    parts."""
    context = click.Context(command, info_name=name, parent=parent)
    words = context.command_path.removeprefix("commodel ")
    yield from (f"{level} {words}", "", " ".join(command.help.split()), "")
    yield from (
        "```sh",
        *(line for example in command.examples for line in wrap_command(example)),
        "```",
        "",
    )
    yield from (
        f"Usage: `{context.command_path} {' '.join(command.collect_usage_pieces(context))}`",
        "",
    )
    rows = [f"| | `{name}` | {_cell(text)} |" for name, text in command.arguments.items()]
    for title, options in command.group_options(context).items():
        for number, (names, text) in enumerate(map(describe_option, options)):
            if names.endswith("--help"):
                continue
            rows.append(f"| {'' if number else title} | `{names}` | {_cell(text)} |")
    if rows:
        yield from ("| group | option | meaning |", "|---|---|---|", *rows, "")
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            yield from _describe_verb(
                command.get_command(context, part), part, context, f"{level}#"
            )


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
