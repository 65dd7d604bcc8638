"""Command lines that are refused: exit code 2, and one line on the standard error.

Each room of tests has a table `refusals.yaml`; that of an extension is read if it is installed. A
row has the command (`run`), and a text or several that the line has (`said`). If it has files, the
command runs in a folder with these, otherwise in the repository.
"""

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
    said: str | list[str]
    files: dict[str, str] = field(default_factory=dict)


def read_refusals() -> list[Refusal]:
    """Return the rows of the tables of the core and of the installed extensions."""
    installed = {extension.name for extension in list_extensions()}
    rooms = [room for room in sorted(TESTS.iterdir()) if (room / "refusals.yaml").exists()]
    rows = []
    for room in rooms:
        if room.name == "cli" or room.name in installed:
            text = (room / "refusals.yaml").read_text(encoding="utf-8")
            rows += [Refusal(**row) for row in yaml.safe_load(text)]
    return rows


@pytest.mark.parametrize("row", read_refusals(), ids=lambda row: row.run)
def test_a_command_is_refused_in_one_line(row, tmp_path, monkeypatch):
    if row.files:
        monkeypatch.chdir(tmp_path)
    for name, text in row.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    line = refused(row.run)
    for text in [row.said] if isinstance(row.said, str) else row.said:
        assert text in line
    # Nothing else was written.
    assert {path.name for path in tmp_path.iterdir()} == set(row.files)
