"""Help pages: a sentence, two examples that run, and options in groups."""

import re
import shlex

import click
import pytest

from commodel.cli import GROUPS, main
from commodel.sources import PACKAGE, ROOT, list_source_files
from tests.cli.running import run

MAX_WIDTH = 80  # columns of the terminal
MAX_LENGTH = 60  # lines of a page: a screen


def list_pages(command=main, words=()):
    """Yield the words of each command, and the command."""
    context = click.Context(command, info_name="commodel")
    for name in command.list_commands(context):
        entry = command.get_command(context, name)
        yield (*words, name), entry
        if isinstance(entry, click.Group):
            yield from list_pages(entry, (*words, name))


PAGES = {" ".join(words): command for words, command in list_pages()}
EXAMPLES = [example for command in (main, *PAGES.values()) for example in command.examples]


def read_words(example: str) -> list[str]:
    """Return the arguments of the first commodel command of an example, split as by a shell."""
    if "completion" in example:
        return ["completion", re.search(r"completion (\w+)", example)[1]]
    lexer = shlex.shlex(example, posix=True, punctuation_chars="|>&;")
    lexer.whitespace_split = True
    words = list(lexer)
    end = next((at for at, word in enumerate(words) if set(word) <= set("|>&;")), len(words))
    return words[1:end]


def test_the_overview_has_at_most_22_verbs_in_groups_in_the_order_of_use():
    verbs = main.list_commands(None)
    assert {name for group in GROUPS.values() for name in group} <= set(verbs)
    assert len(verbs) <= 22
    text = run("--help").output
    titles = re.findall(r"^(\w.+):$", text, re.MULTILINE)
    # the first has examples, the last options; our extensions' verbs are in these
    assert titles[1:-1] == list(GROUPS)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_a_sentence_two_examples_and_titled_options(page, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(MAX_WIDTH))
    command = PAGES[page]
    text = run(f"{page} --help").output
    sentence = command.help
    # only the dots of file names and the last one
    assert re.fullmatch(r"[A-Z][^.]*(?:\.\w+[^.]*)*\.", sentence), sentence
    assert sentence.split()[0] not in ("A", "The", "What", "How", "Which")
    assert len(command.examples) == 2
    assert all(
        page in " ".join(read_words(example)) or page == "init" for example in command.examples
    )
    assert not [line for line in text.splitlines() if len(line) > MAX_WIDTH]
    assert len(text.splitlines()) <= MAX_LENGTH
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert all(hasattr(option, "group_title") for option in options)
    # a title is a noun that names the options
    assert not {"What", "Where"} & {option.group_title for option in options}
    for option in options:
        assert re.match(r"[A-Z].*(\.|\])$", option.help.replace("\n", " ")), (page, option.name)
        assert len(option.help.split()) <= 22, (page, option.name)


def test_results_do_not_depend_on_help_texts():
    """Snakemake runs a rule again if one of its source files changes. These include no file of the
    package `cli`."""
    calls = " ".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "workflow/rules").glob("*.smk")
    )
    names = re.findall(
        r'(?<![\w"])"([a-z_.]+)"', " ".join(re.findall(r"\blist_source_files\(([^()]*)\)", calls))
    )
    assert names
    assert not [
        file
        for name in names
        for file in list_source_files(name)
        if file.startswith(str(PACKAGE / "cli"))
    ]
