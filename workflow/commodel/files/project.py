"""Which files the names of trees and layouts may lead to where a file of somebody's says them: those of the project,
which is the folder that commodel runs in. What a user types himself may lead anywhere."""

import re
from pathlib import Path

from commodel.errors import UserError
from commodel.units import shown

FILES = ("file", "processes")  # what stands before the path of one
NUMBERS = re.compile(r"@[0-9,]*$")  # what a full layout adds to its file


PARTITION = "partition"  # the parameter of an operation that names a file


def file_of(spec: str) -> str:
    """PATH of `file:PATH`; empty where it is something else. A full layout's nodes may follow it."""
    name, _, path = spec.partition(":")
    return path.strip() if name.strip() in FILES else ""


def partitions_of(spec: str) -> list[str]:
    """PATH of `summa:partition=PATH`, however often it is there."""
    named = (part.partition("=") for part in spec.split(":")[1:])
    return [path.strip() for name, equals, path in named if equals and name.strip() == PARTITION]


def check_inside(spec: str) -> None:
    """Refuses `file:PATH`, `processes:PATH` or `partition=PATH` of a path, or a link, that leads out of the project."""
    path = file_of(spec)
    paths = {path, NUMBERS.sub("", path)} - {""} or partitions_of(spec)
    for written in paths:
        check_path(written, spec)


def check_path(path: str, spec: str = "") -> None:
    """The same of a path that stands alone, or in a text."""
    try:
        inside = Path(path).resolve().is_relative_to(Path.cwd().resolve())
    except (OSError, ValueError, RuntimeError):  # no path, or links in a circle
        inside = False
    if not inside:
        raise UserError(f"found {shown(spec or path)}, which leads out of the project's folder; wanted a file in it")
