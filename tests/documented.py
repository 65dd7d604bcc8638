"""The commands in README and docs: their places, and their words as split by a shell."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMES = ("README.md", "CONTRIBUTING.md", "config/README.md", "profiles/README.md")
PAGES = (*(ROOT / name for name in NAMES), *sorted(ROOT.glob("docs/**/*.md")))
PROGRAMS = ("commodel", "make", "snakemake")
FENCE = re.compile(r"^```(\w*)$")
INLINE = re.compile(r"`((?:commodel|make|snakemake) [^`]+)`")


@dataclass(frozen=True)
class Command:
    place: str  # README.md:12
    text: str  # on one line

    @property
    def page(self) -> str:
        return self.place.rpartition(":")[0]

    @property
    def words(self) -> list[str]:
        """The words of the first program's command line, up to a comment, pipe or redirection of
        the shell."""
        lexer = shlex.shlex(self.text, posix=True, punctuation_chars="|>&;")
        lexer.whitespace_split = True
        words = []
        for word in lexer:
            if set(word) <= set("|>&;"):
                break
            words.append(word)
        return [words[0].removeprefix(".venv/bin/"), *words[1:]]


def blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of shell code blocks with their numbers: indented blocks, and fences without
    a language or with `sh`."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        match = FENCE.match(line)
        if match:
            fence = match[1] if fence is None else None
        elif (fence in ("", "sh") and line.strip()) or (fence is None and line.startswith("    ")):
            yield number, line.strip()


def commands() -> list[Command]:
    """Return every line of a code block that calls one of the programs; continued lines are
    joined."""
    every = []
    for page in PAGES:
        begun = ""
        for number, line in blocks(page.read_text(encoding="utf-8")):
            begun = f"{begun} {line}".strip()
            if begun.endswith("\\"):
                begun = begun[:-1].strip()
                continue
            for part in begun.split(" && "):
                if part.removeprefix(".venv/bin/").split(" ")[0] in PROGRAMS:
                    every.append(Command(f"{page.relative_to(ROOT)}:{number}", part))
            begun = ""
    return every


def files(page: str) -> list[str]:
    """Return the complete YAML files that a page shows, recognized by a title."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        block
        for block in re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        if "title: " in block
    ]


def of(program: str) -> list[Command]:
    return [command for command in commands() if command.words[0] == program]


def inline() -> list[Command]:
    """Return commands within sentences, which may be shortened: `commodel fit table`."""
    texts = [(page, " ".join(page.read_text(encoding="utf-8").split())) for page in PAGES]
    return [
        Command(str(page.relative_to(ROOT)), text)
        for page, flat in texts
        for text in INLINE.findall(flat)
    ]
