"""The packages (rooms): each has one subject, and imports between them only go down."""

import re

import pytest

from tests.rooms import PACKAGE, ROOMS, ROOT, arrows, docstring, drawn, split

TOP = {"__init__", "__main__", "errors", "hierarchy", "parameters", "progress", "records", "registry"}
TOP |= {"sources", "stats", "torus", "units"}


def test_every_folder_is_a_room_and_the_top_floor_is_small():
    assert sorted(ROOMS) == sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    assert {path.stem for path in PACKAGE.glob("*.py")} == TOP
    assert len(ROOMS) <= 16


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_states_what_it_is_in_two_sentences(name):
    first = docstring(name).split("\n\n")[0].replace("\n", " ")
    assert first.count(". ") + 1 == 2, first


def test_imports_between_rooms_only_go_down_and_are_few():
    between = {pair: files for pair, files in arrows().items() if pair[0] in ROOMS}
    assert not {pair: files for pair, files in between.items() if ROOMS.index(pair[1]) > ROOMS.index(pair[0])}
    assert len({pair for pair in between if pair[0] not in ("api", "cli")}) <= 45


def test_the_top_floor_imports_from_no_room_but_the_command_line():
    assert {end for start, end in arrows() if start not in ROOMS} <= {"cli"}


def test_the_map_is_true():
    _, drawing, _ = split((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert drawing == drawn().strip("\n"), "run `make map`"


def test_every_step_from_an_experiment_to_its_report_is_a_function():
    rows = re.findall(r"^\|.*\| (`[a-z]+/.*) \|$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    steps = [step for row in rows for step in re.findall(r"`([a-z_/]+\.py)` `(\w+)`", row)]
    assert len(steps) == 9
    for file, name in steps:
        assert f"\ndef {name}(" in (PACKAGE / file).read_text(encoding="utf-8"), file
