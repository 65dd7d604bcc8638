"""Markers of cases that were given up: <id>.unmeasured.json beside the raw files, with the reason in one line.

A marked case counts as finished. Whoever wants it tried again removes its marker.
"""

import datetime
from pathlib import Path

from commodel.errors import UserError, one_line
from commodel.tables import read_json, write_json

CRASH, TIMEOUT, BUDGET, UNFINISHED = "crash", "timeout", "budget", "unfinished"
LATE = "late"  # never marked: there are samples, of which none is valid
SUFFIX = ".unmeasured.json"


def marker(folder: Path, case: str) -> Path:
    return folder / f"{case}{SUFFIX}"


def mark(folder: Path, case: str, status: str, reason: str, attempt: int) -> None:
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    found = {"id": case, "status": status, "reason": one_line(reason), "attempt": attempt, "date": date}
    write_json(marker(folder, case), found)


def unmark(folder: Path, case: str) -> None:
    marker(folder, case).unlink(missing_ok=True)


def why_unmeasured(folder: Path, case: str) -> tuple[str, str] | None:
    """Status and reason of a case that was given up. A case that has samples was measured after all."""
    path = marker(folder, case)
    if (folder / f"{case}.csv").exists() or not path.exists():
        return None
    try:
        found = read_json(path)
        return str(found["status"]), one_line(found["reason"])
    except (UserError, KeyError, TypeError):
        return CRASH, "the file that says why is damaged"


def finished(folder: Path) -> tuple[set[str], set[str]]:
    """The cases of a folder that are measured, and those that were given up."""
    names = {path.name for path in folder.glob("*")} if folder.exists() else set()
    measured = {name.removesuffix(".csv") for name in names if name.endswith(".csv")}
    marked = {name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)}
    return measured, marked - measured
