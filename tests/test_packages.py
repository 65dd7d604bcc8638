"""Each package has one subject, and imports between packages only go down."""

import re

import pytest

from tests.packages import PACKAGE, PACKAGES, ROOT, draw_map, find_imports, read_docstring, split_page

MODULES = {"__init__", "__main__", "errors", "hierarchy", "parameters", "progress", "records", "registry"}
MODULES |= {"sources", "stats", "torus", "units"}


def test_every_folder_is_a_package_and_few_modules_lie_in_none():
    assert sorted(PACKAGES) == sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    assert {path.stem for path in PACKAGE.glob("*.py")} == MODULES
    assert len(PACKAGES) <= 16


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_states_its_content_in_two_sentences(name):
    first = read_docstring(name).split("\n\n")[0].replace("\n", " ")
    assert first.count(". ") + 1 == 2, first


def test_imports_between_packages_only_go_down_and_are_few():
    between = {pair: files for pair, files in find_imports().items() if pair[0] in PACKAGES}
    assert not {pair: files for pair, files in between.items() if PACKAGES.index(pair[1]) > PACKAGES.index(pair[0])}
    assert len({pair for pair in between if pair[0] not in ("api", "cli")}) <= 45


def test_modules_in_no_package_import_from_the_command_line_only():
    assert {end for start, end in find_imports() if start not in PACKAGES} <= {"cli"}


def test_the_map_is_true():
    _, drawing, _ = split_page((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert drawing == draw_map().strip("\n"), "run `make map`"


def test_every_step_from_an_experiment_to_its_report_is_a_function():
    rows = re.findall(r"^\|.*\| (`[a-z]+/.*) \|$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    steps = [step for row in rows for step in re.findall(r"`([a-z_/]+\.py)` `(\w+)`", row)]
    assert len(steps) == 9
    for file, name in steps:
        assert f"\ndef {name}(" in (PACKAGE / file).read_text(encoding="utf-8"), file
