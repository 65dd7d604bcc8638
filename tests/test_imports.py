"""Every import of this package in any text exists: in pages, notebooks, doctests, and in modules
that tests write. No type checker sees these."""

import re
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("workflow", "tests", "docs", "examples", "benchmarks")
SUFFIXES = (".py", ".md", ".ipynb", ".smk", ".txt", ".yaml")
IMPORT = re.compile(r"from (commodel(?:\.\w+)*) import (\([^()]*\)|[\w, ]+)")


def list_texts():
    pages = [*ROOT.glob("*.md"), ROOT / "workflow" / "Snakefile"]
    return pages + [
        path
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in SUFFIXES and "node_modules" not in path.parts
    ]


def list_imports(text):
    """Return the modules and names that a text imports."""
    found = set()
    for module, names in IMPORT.findall(text):
        for name in re.split(r",|\\n|\n", names.strip("()")):
            words = name.split(" #")[0].split()
            if words:
                found.add((module, words[0]))
    return found


@cache
def exists(module, name):
    try:
        return hasattr(import_module(module), name) or find_spec(f"{module}.{name}") is not None
    except ModuleNotFoundError:
        return False


def test_every_import_in_a_text_exists():
    imports = {
        (path.relative_to(ROOT).as_posix(), *found)
        for path in list_texts()
        for found in list_imports(path.read_text(encoding="utf-8", errors="ignore"))
    }
    assert len(imports) > 1000
    missing = sorted(found for found in imports if not exists(*found[1:]))
    assert not missing


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from commodel.units import parse_bytes, parse_count", {"parse_bytes", "parse_count"}),
        ("from commodel.units import (\n    parse_bytes,  # comment\n)", {"parse_bytes"}),
        ("from commodel.units import parse_bytes as p", {"parse_bytes"}),
        ("from commodel_tune import tune", set()),
    ],
)
def test_imports_are_found_in_all_their_forms(text, found):
    assert {name for _, name in list_imports(text)} == found


def test_a_missing_name_is_noticed():
    assert exists("commodel.units", "parse_bytes")
    assert not exists("commodel.units", "KIB_OF_ANOTHER_TIME")
    assert not exists("commodel.unit", "parse_bytes")
