"""Raw samples of the cases of a batch (`join`, `read_samples`), and marks of cases that were not measured
(`write_marker`, `read_marker`).

The files of a case, one for each pass, are joined into one raw file in which every change is detected. In each line,
`of` is the number of samples in the file, and `check` is a checksum of the rest of the line: a file that was cut off or
has a flipped bit is damaged. The name of the file says whether any of its samples is valid.

A marked case counts as finished. <id>.unmeasured.json has the reason why it was given up; <id>.late.csv has samples
none of which is valid. If these files are removed, the case is measured again.
"""

from __future__ import annotations

import datetime
import zlib
from typing import TYPE_CHECKING

import numpy as np

from commodel.errors import UserError, one_line
from commodel.files.atomic import MAX_FILE, read_json, write_json, write_text
from commodel.files.results_folder import RAW
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import read_bytes
from commodel.files.tables import UNMEASURED, names, read_table
from commodel.records import STOPS

if TYPE_CHECKING:
    import pandas as pd


HEADER = "id,sample,seconds,skew,valid,stop"
WITH = ("", ",count", ",first,last", ",cpu", ",cpu,first,last", ",computation")
# cpu: processor seconds of a wave, all processes; computation: seconds that ranks computed beside a sample's messages
HEADERS = tuple(f"{HEADER}{more}" for more in WITH)  # as programs write them
LATE_SUFFIX = ".late.csv"  # in place of .csv where a rank started late in every sample
SUFFIXES = (".csv", LATE_SUFFIX)
VALID = HEADER.split(",").index("valid")
JOINED = tuple(f"{header.replace('id,', 'id,pass,', 1)},of,check" for header in HEADERS)


class DamagedError(UserError):
    """A raw file that is not what was written."""


def is_whole(path: AnyPath) -> bool:
    """Return whether a program's file of one pass is complete; after a crash of the machine it often is not."""
    try:
        text = _text(path)
    except UnicodeDecodeError:
        return False
    header, *lines = text.splitlines() or [""]
    fields = header.count(",")
    numbered = all(line.startswith(f"{path.stem},{number},") for number, line in enumerate(lines))
    return (
        header in HEADERS
        and text.endswith("\n")
        and bool(lines)
        and numbered
        and all(line.count(",") == fields for line in lines)
    )


def raw_file(folder: AnyPath, case: str) -> AnyPath | None:
    """Return the raw file of a case, if it has one."""
    paths = (folder / f"{case}{suffix}" for suffix in SUFFIXES)
    return next((path for path in paths if path.exists()), None)


def raw_name(batch: str, case: str, valid: bool) -> str:
    """Return the path of a case's raw file below the results folder; `valid`: whether any of its samples is valid."""
    return f"{RAW}/{batch}/{_file_name(case, valid)}"


def _file_name(case: str, valid: bool) -> str:
    return f"{case}{'.csv' if valid else LATE_SUFFIX}"


def join(passes: dict[int, AnyPath], folder: AnyPath, case: str) -> None:
    """Write the raw file of a case from the files of its passes, with the pass of each sample as a column."""
    files = {number: _text(path).splitlines() for number, path in passes.items()}
    header = next(iter(files.values()))[0]
    total = sum(len(lines) - 1 for lines in files.values())
    joined, valid = [JOINED[HEADERS.index(header)]], False
    for number, lines in files.items():
        for line in lines[1:]:
            name, _, rest = line.partition(",")
            text = f"{name},{number},{rest},{total}"
            joined.append(f"{text},{checksum(text)}")
            valid = valid or line.split(",", VALID + 1)[VALID] == "1"
    write_text(folder / _file_name(case, valid), "\n".join(joined) + "\n")


def _text(path: AnyPath) -> str:
    return read_bytes(path, MAX_FILE, "the samples of one case").decode()


def checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


def read_samples(path: AnyPath, case: str) -> list[dict]:
    """Return the samples of a case; raise DamagedError, with the line, if the file is not as it was written."""
    number = 0
    try:
        lines = _text(path).split("\n")
        if lines[0] not in JOINED:
            raise ValueError("an unknown header")
        if lines.pop() != "":
            raise ValueError("its last line is cut off")
        rows = []
        for number, line in enumerate(lines[1:], 2):  # noqa: B007 - `number` is for the message
            rows.append(_sample(lines[0], line, case))
        if not rows:
            raise ValueError("without samples")
        if any(row["of"] != len(rows) for row in rows):
            raise ValueError(f"{len(rows)} samples of {rows[0]['of']}")
    except ValueError as error:
        raise DamagedError(f"damaged raw file ({error})", file=path, line=number or None) from None
    for row in rows:
        del row["of"]
    return rows


def _sample(header: str, line: str, case: str) -> dict:
    names, fields = header.split(","), line.split(",")
    if len(names) != len(fields):
        raise ValueError(f"{len(fields)} fields instead of {len(names)}")
    row = dict(zip(names, fields, strict=True))
    if row["check"] != checksum(line.rpartition(",")[0]):
        raise ValueError("its checksum differs")
    if row["id"] != case:
        raise ValueError(f"it holds samples of '{row['id']}'")
    seconds = float(row["seconds"])
    valid = bool(int(row["valid"]))
    if not np.isfinite(seconds) or (valid and seconds < 0):
        raise ValueError(f"found {seconds} seconds")
    if row["stop"] not in STOPS:
        raise ValueError(f"found stop '{row['stop']}'")
    sample = {"pass": int(row["pass"]), "sample": int(row["sample"]), "seconds": seconds}
    sample |= {"skew": float(row["skew"]) if row["skew"] else np.nan, "valid": valid}
    sample |= {"stop": row["stop"], "of": int(row["of"])}
    more = {name: float(row[name]) for name in ("count", "cpu", "computation", "first", "last") if row.get(name)}
    if not all(map(np.isfinite, more.values())):
        raise ValueError(f"found {', '.join(f'{name} {value}' for name, value in more.items())}")
    return sample | more


CRASH, TIMEOUT, BUDGET, UNFINISHED, LATE = "crash", "timeout", "budget", "unfinished", "late"
GIVEN_UP = "three cases in a row failed"  # how the reason of a case begins that was not tried for that
SUFFIX = ".unmeasured.json"
COUNTS, TEXTS = names(UNMEASURED, int), names(UNMEASURED, str)


def marker_path(folder: AnyPath, case: str) -> AnyPath:
    return folder / f"{case}{SUFFIX}"


def write_marker(folder: AnyPath, case: str, status: str, reason: str, attempt: int) -> None:
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    about = {"id": case, "status": status, "reason": one_line(reason), "attempt": attempt, "date": date}
    write_json(marker_path(folder, case), about)


def remove_marker(folder: AnyPath, case: str) -> None:
    for suffix in (SUFFIX, LATE_SUFFIX):
        (folder / f"{case}{suffix}").unlink(missing_ok=True)


def read_marker(folder: AnyPath, case: str) -> tuple[str, str] | None:
    """Return status and reason of a case that was given up; None if it was not, or if it has valid samples after
    all."""
    path = marker_path(folder, case)
    if (folder / f"{case}.csv").exists():
        return None
    if (folder / f"{case}{LATE_SUFFIX}").exists():
        return LATE, "none of its samples is valid: in each a rank started late, or a clock was set"
    if not path.exists():
        return None
    try:
        content = read_json(path)
        return str(content["status"]), one_line(content["reason"])
    except (UserError, KeyError, TypeError):
        return CRASH, "the file that says why is damaged"


def finished(folder: AnyPath) -> tuple[set[str], set[str]]:
    """Return the ids of the cases in a folder that are measured, and of those that were given up."""
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    marked = {name.removesuffix(end) for end in (SUFFIX, LATE_SUFFIX) for name in names if name.endswith(end)}
    measured = {name.removesuffix(".csv") for name in names if name.endswith(".csv") and not name.endswith(LATE_SUFFIX)}
    return measured, marked - measured


def table_of(rows: list[dict]) -> pd.DataFrame:
    """Return the table of unmeasured cases, one row for each case."""
    import pandas as pd  # here, because it takes longer to load than most verbs to run

    types = dict.fromkeys(COUNTS, "Int64") | dict.fromkeys(TEXTS, object)
    return pd.DataFrame(rows, columns=names(UNMEASURED)).astype(types).fillna(dict.fromkeys(TEXTS, ""))


def read_unmeasured(path: AnyPath) -> pd.DataFrame | None:
    """Return the table of unmeasured cases; None if the results are older than this table."""
    if not path.exists():
        return None
    rows = read_table(path, UNMEASURED).reindex(columns=names(UNMEASURED))  # older tables have no waves
    return rows.astype(dict.fromkeys(COUNTS, "Int64"))
