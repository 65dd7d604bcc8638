"""The terms of reports and documentation, with symbols and sources, read from `glossary.csv`.

`make_glossary_section` is a report's sheet of all terms, `explain_terms` their meanings for the
page. `make pages` writes the tables of docs/glossary.md."""

import csv
import re
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from commodel.reports.elements import Section, make_table, select_columns

LINK = re.compile(r"\[([^\]]*)\]\(([^)#]*)[^)]*\)")


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the glossary. `spellings` are the words that a page explains, separated by bars."""

    section: str
    term: str
    symbol: str
    meaning: str  # with Markdown's links and code
    source: str
    spellings: str


@cache
def read_glossary() -> tuple[Term, ...]:
    with Path(__file__).with_name("glossary.csv").open(encoding="utf-8", newline="") as stream:
        return tuple(Term(**row) for row in csv.DictReader(stream))


def explain_terms() -> dict[str, str]:
    """Return the meaning of each spelling of a term."""
    meanings = {}
    for term in read_glossary():
        for word in filter(None, term.spellings.split("|")):
            meanings[word] = write_out_links(term.meaning)
    return meanings


def write_out_links(text: str) -> str:
    """Return a text with the files of its links in place of these, since a report is read without
    the documentation."""
    return LINK.sub(r"\1 (docs/\2)", text).replace("`", "")


def make_glossary_section() -> Section:
    keys = [column.key for column in select_columns("Glossary")]
    rows = pd.DataFrame(map(asdict, read_glossary()))[keys]
    return Section(
        "Glossary", "", (make_table("Glossary", "Terms", rows.map(write_out_links), fixed=2),)
    )
