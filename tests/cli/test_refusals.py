"""Command lines that are refused: exit code 2, and one line on the standard error.

Each room of tests has a table `refusals.yaml`; that of an extension is read if it is installed. A
row has the command (`run`), and a text that the line has (`said`). The command runs in an empty
folder with the files of the row, or in the repository, where FOLDER is the folder of the files.
"""

import shlex
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from commodel.extensions import list_extensions
from tests.cli.running import refused

TESTS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Refusal:
    run: str
    said: str
    files: dict[str, str] = field(default_factory=dict)
    repository: bool = False


def read_refusals() -> list[Refusal]:
    """Return the rows of the tables of the core and of the installed extensions."""
    rooms = {"cli", *(extension.name for extension in list_extensions())}
    rows = []
    for path in sorted(TESTS.glob("*/refusals.yaml")):
        if path.parent.name in rooms:
            table = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
            rows += [Refusal(**row) for row in table]
    return rows


@pytest.mark.parametrize("row", read_refusals(), ids=lambda row: f"{row.run} ({row.said})")
def test_a_command_is_refused_in_one_line_and_writes_nothing(row, tmp_path, monkeypatch):
    if not row.repository:
        monkeypatch.chdir(tmp_path)
    for name, text in row.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    line = refused("", *shlex.split(row.run.replace("FOLDER", str(tmp_path))))
    assert line.startswith("commodel: ")
    assert row.said in line
    assert {path.name for path in tmp_path.iterdir()} == set(row.files)
