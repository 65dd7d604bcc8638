"""Which files the names of trees and layouts may lead to where a file of somebody's says them: those of the project,
which is the folder that commodel runs in. What a user types himself may lead anywhere."""

import re
from pathlib import Path

from commodel.errors import UserError
from commodel.units import shown

NUMBERS = re.compile(r"@[0-9,]*$")  # what a full layout adds to its file


def check_inside(spec: str) -> None:
    """Refuses `file:PATH` of a path, or a link, that leads out of the project."""
    name, _, path = spec.partition(":")
    if name.strip() != "file":
        return
    home = Path.cwd().resolve()
    for written in {path.strip(), NUMBERS.sub("", path.strip())}:
        try:
            inside = Path(written).resolve().is_relative_to(home)
        except (OSError, ValueError, RuntimeError):  # no path, or links in a circle
            inside = False
        if not inside:
            raise UserError(f"found {shown(spec)}, which leads out of the project's folder; wanted a file in it")
