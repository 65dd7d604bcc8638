"""Patterns from files: `file:PATH` instead of an operation (`read_pattern`). The content determines
the format. Each module reads one format.
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
    """Return the tasks of a GOAL file, and its Schedule. `unit` is the time unit of its calc lines
    and replaces the unit that the file states."""
    with open_unpacked(path) as stream:
        binary = goal_binary.is_goal(stream.read(8))
    file_tasks = (goal_binary if binary else goal).read_tasks(path)
    file_tasks = replace(file_tasks, per_second=goal.UNITS_PER_SECOND[unit]) if unit else file_tasks
    return file_tasks, tasks.make_schedule(file_tasks)


@cache_reads(files=64)
def _read(path: AnyPath) -> Schedule:
    with open_unpacked(path) as stream:
        beginning = stream.read(4096)
    reader = next((entry for entry in (goal, goal_binary) if entry.is_goal(beginning)), None)
    schedule = tasks.make_schedule(reader.read_tasks(path)) if reader else table.read(path)
    if len(schedule.src) == 0:
        raise UserError("found no message, wanted at least one", file=path)
    return schedule
