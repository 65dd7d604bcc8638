"""Patterns from files: `file:PATH` instead of an operation (`read_pattern`). The content determines the format. Each
module reads one format.
"""

from dataclasses import replace
from pathlib import Path

from commodel.errors import UserError
from commodel.files.cache import find_input
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import cache_reads, open_unpacked
from commodel.patterns.operations import FILE
from commodel.patterns.pattern_files import goal, goal_binary, table, tasks
from commodel.patterns.pattern_files.tasks import Tasks
from commodel.patterns.schedule import Schedule

AS_WRITTEN = "as-written"  # the only algorithm of a pattern from a file


def is_pattern_file(operation: str) -> bool:
    return operation.startswith(FILE)


def read_pattern(operation: str, root: Path = Path()) -> Schedule:
    """Return the Schedule of `file:PATH`. A file is read again only if it has changed."""
    return _read(find_input(operation.removeprefix(FILE).strip(), root))


def read_goal(path: Path, unit: str | None = None) -> tuple[Tasks, Schedule]:
    """Return the tasks of a GOAL file, and its Schedule; `unit` of calc replaces that of the text."""
    with open_unpacked(path) as stream:
        binary = goal_binary.is_goal(stream.read(8))
    read = (goal_binary if binary else goal).read_tasks(path)
    read = replace(read, per_second=goal.UNITS_PER_SECOND[unit]) if unit else read
    return read, tasks.make_schedule(read)


@cache_reads(files=64)
def _read(path: AnyPath) -> Schedule:
    with open_unpacked(path) as stream:
        beginning = stream.read(4096)
    formats = (entry for entry in (goal, goal_binary) if entry.is_goal(beginning))
    schedule = next(formats, table).read(path)
    if len(schedule.src) == 0:
        raise UserError("found no message, wanted some", file=path)
    return schedule
