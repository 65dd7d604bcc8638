"""What was not measured, and why: marks beside the raw files of a batch, and the table of a whole campaign's.

A marked case counts as finished: <id>.unmeasured.json says why it was given up, and <id>.late.csv has its samples, of
which none is valid. Whoever wants it tried again removes its marks.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from commodel.errors import UserError, one_line
from commodel.files.atomic import read_json, write_json
from commodel.files.columns import UNMEASURED, names
from commodel.files.paths import AnyPath
from commodel.files.tables import read_table
from commodel.results.rawfiles import LATE_SUFFIX

if TYPE_CHECKING:
    import pandas as pd

CRASH, TIMEOUT, BUDGET, UNFINISHED, LATE = "crash", "timeout", "budget", "unfinished", "late"
GIVEN_UP = "three cases in a row failed"  # how the reason of a case begins that was not tried for that
SUFFIX = ".unmeasured.json"
COUNTS, TEXTS = names(UNMEASURED, int), names(UNMEASURED, str)


def marker(folder: AnyPath, case: str) -> AnyPath:
    return folder / f"{case}{SUFFIX}"


def mark(folder: AnyPath, case: str, status: str, reason: str, attempt: int) -> None:
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    about = {"id": case, "status": status, "reason": one_line(reason), "attempt": attempt, "date": date}
    write_json(marker(folder, case), about)


def unmark(folder: AnyPath, case: str) -> None:
    for suffix in (SUFFIX, LATE_SUFFIX):
        (folder / f"{case}{suffix}").unlink(missing_ok=True)


def why_unmeasured(folder: AnyPath, case: str) -> tuple[str, str] | None:
    """Status and reason of a case that was given up. A case that has valid samples was measured after all."""
    path = marker(folder, case)
    if (folder / f"{case}.csv").exists():
        return None
    if (folder / f"{case}{LATE_SUFFIX}").exists():
        return LATE, "none of its samples is valid: in each a rank started late, or a clock was set"
    if not path.exists():
        return None
    try:
        mark = read_json(path)
        return str(mark["status"]), one_line(mark["reason"])
    except (UserError, KeyError, TypeError):
        return CRASH, "the file that says why is damaged"


def finished(folder: AnyPath) -> tuple[set[str], set[str]]:
    """The cases of a folder that are measured, and those that were given up."""
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    marked = {name.removesuffix(end) for end in (SUFFIX, LATE_SUFFIX) for name in names if name.endswith(end)}
    measured = {name.removesuffix(".csv") for name in names if name.endswith(".csv") and not name.endswith(LATE_SUFFIX)}
    return measured, marked - measured


def table_of(rows: list[dict]) -> pd.DataFrame:
    """One row a case."""
    import pandas as pd  # here, because it takes longer to load than most verbs to run

    types = dict.fromkeys(COUNTS, "Int64") | dict.fromkeys(TEXTS, object)
    return pd.DataFrame(rows, columns=names(UNMEASURED)).astype(types).fillna(dict.fromkeys(TEXTS, ""))


def read_unmeasured(path: AnyPath) -> pd.DataFrame | None:
    """The table that `collect` left; nothing where an older commodel collected."""
    if not path.exists():
        return None
    rows = read_table(path, UNMEASURED).reindex(columns=names(UNMEASURED))  # an older one knows no waves
    return rows.astype(dict.fromkeys(COUNTS, "Int64"))
