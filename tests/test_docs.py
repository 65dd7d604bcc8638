"""Commands in README and docs exist in commodel, make or Snakemake, and links have a target."""

import re
import subprocess
import sys

import click
import pytest
from docs.table_pages import TABLES, list_probe_settings, read_meanings
from docs.verb_pages import describe_verbs

from commodel.cli import main
from commodel.models.families import find_family, list_family_names
from tests.cli.test_help import PAGES as COMMANDS
from tests.doc_values import VALUE, fill_values
from tests.documented import PAGES, ROOT, Command, inline, of

TARGETS = set(
    re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
)


def identity(command: Command) -> str:
    return f"{command.place} {' '.join(command.words[1:3])}"


def test_every_verb_is_documented():
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert not [verb for verb in main.list_commands(None) if f"commodel {verb}" not in text]


@pytest.mark.parametrize("command", of("commodel"), ids=identity)
def test_documented_commands_use_existing_verbs_and_options(command):
    words = command.words[3:] if command.words[1] == "-C" else command.words[1:]
    context = main.make_context("commodel", words)
    verb, *arguments = [*context._protected_args, *context.args]
    entry = main.get_command(context, verb)
    assert entry, f"{command.place}: no verb {verb}"
    while (
        hasattr(entry, "get_command") and arguments and arguments[0] in entry.list_commands(context)
    ):
        entry, arguments = entry.get_command(context, arguments[0]), arguments[1:]
    entry.make_context(verb, list(arguments))


def test_sentences_name_verbs_and_targets_that_there_are():
    for command in inline():
        name = command.words[1]
        if command.words[0] == "commodel" and re.fullmatch(r"[a-z]+", name):
            assert main.get_command(None, name), command
        elif command.words[0] == "make":
            assert name in TARGETS, command


@pytest.mark.parametrize("command", of("make"), ids=identity)
def test_targets_of_make_are_there(command):
    words = command.words[1:]
    if "-C" in words:
        assert (ROOT / words[words.index("-C") + 1] / "Makefile").exists()
        return
    assert not {word for word in words if "=" not in word} - TARGETS, command.place


def test_files_of_the_project_that_are_named_are_there():
    files = re.compile(
        r"(?:params|docs|workflow|examples|envs|profiles|reports/example)/[\w./-]+\.\w+"
    )
    # examples
    written = {
        "params/experiments/E.yaml",
        "params/platforms/P.yaml",
        "params/platforms/mycluster.yaml",
    }
    written |= {"params/platforms/model.yaml"}  # by a command
    for page in PAGES:
        named = set(files.findall(page.read_text(encoding="utf-8"))) - written
        assert not [name for name in named if not (ROOT / name).exists() and "NAME" not in name], (
            page
        )


# when the site is built
MADE = {ROOT / "docs" / "families" / f"{name}.md" for name in list_family_names()}


def heads(page):
    """Return the anchors of a page's headings."""
    lines = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line.lower()).strip().replace(" ", "-") for line in lines}


def test_links_lead_somewhere():
    for page in PAGES:
        text = re.sub(r"`[^`]*`", "", page.read_text(encoding="utf-8"))
        for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
            name, _, anchor = target.partition("#")
            file = (page.parent / name).resolve() if name else page
            assert file.exists() or file in MADE, f"{page.name}: {target}"
            assert not anchor or anchor in heads(file), f"{page.name}: {target}"


def test_the_readme_is_one_screen_and_leads_to_every_page():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150
    assert not [
        page.name
        for page in ROOT.glob("docs/*.md")
        if page.name != "index.md" and f"(docs/{page.name})" not in text
    ]


def test_every_column_has_a_meaning_and_no_other_has_one():
    columns = {field.name for _, schema in TABLES.values() for field in schema}
    meanings = set(read_meanings())
    assert meanings <= columns
    assert columns - meanings <= list_probe_settings()


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    page = (tmp_path / "families" / "loggp.html").read_text(encoding="utf-8")
    assert "<math" in page
    table = (tmp_path / "families" / "index.html").read_text(encoding="utf-8")
    for name in list_family_names():
        assert f'href="{name}.html"' in table
        assert find_family(name).title in page  # the menu
    assert "parameter_low" in (tmp_path / "tables.html").read_text(encoding="utf-8")
    assert 'id="advise"' in (tmp_path / "verbs.html").read_text(encoding="utf-8")
    gallery = (tmp_path / "gallery.html").read_text(encoding="utf-8")
    for report in re.findall(r'href="(gallery/[^"]+)"', gallery):
        assert (tmp_path / report).stat().st_size > 100_000
    assert len(set(re.findall(r'href="(gallery/[^"]+)"', gallery))) == 2
    assert not re.findall(
        r'(?:src|href)="https?://(?!squidfunk|[\w.]*(?:github|ethz|ohio))[^"]+\.(?:js|css)', page
    )


def test_constants_in_pages_equal_the_code():
    texts = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
    assert sum(len(VALUE.findall(text)) for text in texts.values()) >= 5
    assert not [name for name, text in texts.items() if fill_values(text) != text], "make pages"


def test_the_page_of_verbs_has_every_command_example_and_option():
    sections = dict(
        re.findall(r"^#{3,4} (.+)\n((?:(?!#{2,4} ).*\n)*)", describe_verbs(), re.MULTILINE)
    )
    assert list(sections) == list(COMMANDS)
    for words, command in COMMANDS.items():
        text = " ".join(sections[words].replace("\\", "").split())
        options = [option for option in command.params if isinstance(option, click.Option)]
        assert command.examples
        assert all(" ".join(example.split()) in text for example in command.examples)
        assert not [name for option in options for name in option.opts if f"{name}" not in text], (
            words
        )
        assert not [name for name in command.arguments if f"| `{name}` |" not in text], words


MAX_WORDS = 25  # of a sentence


def list_sentences(text: str) -> list[str]:
    """Return the sentences of a page's paragraphs, list items and table cells; code counts as one
    word."""
    text = re.sub(r"^```.*?^```|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`]*`", "X", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"^(?: {4}|#).*$", "", text, flags=re.MULTILINE)
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:-|\d+\.) )|\|", text)
    return [sentence for part in parts for sentence in re.split(r"(?<=[.!?:;])\s+", part)]


def test_no_sentence_is_long():
    pages = [*PAGES, ROOT / "CHANGELOG.md"]
    every = [
        (page.name, text)
        for page in pages
        for text in list_sentences(page.read_text(encoding="utf-8"))
    ]
    assert len(every) > 1000
    assert not [
        entry for entry in every if len(re.findall(r"\w[\w.'’µ%×/-]*", entry[1])) > MAX_WORDS
    ]
