"""Fills constants and tables into the documentation: `make pages` rewrites the text from these
marks to their ends:

- `<!-- value: package.module.NAME -->`: a constant of the code,
- `<!-- keys: experiment -->`: the keys of a kind of YAML file,
- `<!-- glossary: SECTION -->`: terms.
"""

import importlib
import re
from pathlib import Path

from commodel.reports.glossary import read_glossary
from tests.doc_keys import describe_keys

DOCS = Path(__file__).resolve().parents[1] / "docs"
VALUE = re.compile(r"(<!-- value: ([\w.]+)\.(\w+) -->).*?(<!-- end -->)")
GLOSSARY = re.compile(r"(<!-- glossary: ([\w ]+) -->\n).*?(<!-- end of glossary -->)", re.DOTALL)
KEYS = re.compile(r"(<!-- keys: (\w+) -->\n).*?(<!-- end of keys -->)", re.DOTALL)


def fill_values(text: str) -> str:
    """Return a page with the present values of the constants, and tables of the keys, that it
    names."""

    def fill(match: re.Match) -> str:
        value = getattr(importlib.import_module(f"commodel.{match[2]}"), match[3])
        return f"{match[1]}{value:g}{match[4]}"

    text = KEYS.sub(lambda match: f"{match[1]}\n{describe_keys(match[2])}\n{match[3]}", text)
    text = GLOSSARY.sub(lambda match: f"{match[1]}\n{tabulate_terms(match[2])}\n{match[3]}", text)
    return VALUE.sub(fill, text)


def tabulate_terms(section: str) -> str:
    """Return the table of the glossary's terms of a section."""
    rows = [
        f"| {term.term} | {term.symbol} | {term.meaning} | {term.source} |"
        for term in read_glossary()
        if term.section == section
    ]
    return "\n".join(
        ["| term | symbol, unit or column | meaning | from |", "|---|---|---|---|", *rows, ""]
    )


if __name__ == "__main__":
    for page in sorted(DOCS.rglob("*.md")):
        page.write_text(fill_values(page.read_text(encoding="utf-8")), encoding="utf-8")
