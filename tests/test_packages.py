"""The packages of commodel: each has one subject, and imports go only to lower layers."""

import importlib.util
import re

import pytest

from tests.packages import (
    PACKAGES,
    ROOT,
    SOURCE,
    draw_map,
    find_imported_modules,
    find_imports_between_packages,
    read_docstring,
    read_modules_for_extensions,
    split_page,
)

TOP_MODULES = {
    "extensions",
    "__init__",
    "__main__",
    "errors",
    "hierarchy",
    "parallel",
    "parameters",
    "progress",
    "records",
    "registry",
}
TOP_MODULES |= {"sources", "stats", "substrates", "torus", "units"}

# Modules of the core that each of our extensions imports beside those promised to every package.
# None of these numbers may grow.
MAX_INNER_MODULES = {"formats": 3, "kernels": 19, "overlay": 2, "papers": 6, "tune": 16}


def test_every_folder_is_a_listed_package_and_top_modules_are_few():
    assert sorted(PACKAGES) == sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
    assert {path.stem for path in SOURCE.glob("*.py")} == TOP_MODULES
    assert len(PACKAGES) <= 16


@pytest.mark.parametrize("name", PACKAGES)
def test_package_docstrings_state_the_subject_in_two_sentences(name):
    first = read_docstring(name).split("\n\n")[0].replace("\n", " ")
    assert first.count(". ") + 1 == 2, first


def test_imports_between_packages_go_to_lower_layers_and_are_few():
    between = {
        pair: files
        for pair, files in find_imports_between_packages().items()
        if pair[0] in PACKAGES
    }
    assert not {
        pair: files
        for pair, files in between.items()
        if PACKAGES.index(pair[1]) > PACKAGES.index(pair[0])
    }
    assert len({pair for pair in between if pair[0] not in ("api", "cli")}) <= 45


def test_top_modules_except_the_public_functions_import_only_the_command_line():
    between = find_imports_between_packages()
    assert {end for start, end in between if start not in (*PACKAGES, "__init__")} <= {"cli"}
    assert {end for start, end in between if start == "__init__"} <= {"advice", "api"}


def test_the_map_shows_the_imports():
    _, drawing, _ = split_page((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert drawing == draw_map().strip("\n"), "run `make map`"


def test_every_workflow_step_in_contributing_names_an_existing_function():
    rows = re.findall(
        r"^\|.*\| (`[a-z]+/.*) \|$",
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    steps = [step for row in rows for step in re.findall(r"`([a-z_/]+\.py)` `(\w+)`", row)]
    assert len(steps) == 10
    for file, name in steps:
        assert f"\ndef {name}(" in (SOURCE / file).read_text(encoding="utf-8"), file


def test_the_example_of_an_extension_imports_only_modules_that_keep_their_names():
    promised = read_modules_for_extensions()
    assert all(importlib.util.find_spec(module) for module in promised)
    example = ROOT / "examples" / "extension" / "commodel_maxrate"
    assert find_imported_modules(example) <= promised


@pytest.mark.parametrize("name", MAX_INNER_MODULES)
def test_our_extensions_import_few_modules_that_may_change(name):
    imported = find_imported_modules(ROOT / "workflow" / f"commodel_{name}")
    inner = imported - read_modules_for_extensions()
    assert len(inner) <= MAX_INNER_MODULES[name], sorted(inner)
