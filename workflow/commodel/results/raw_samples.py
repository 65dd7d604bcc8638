"""Raw samples of the cases of a batch (`join_passes`, `read_samples`), and markers of cases that
were not measured (`write_marker`, `read_marker`).

The files of a case, one for each pass, are joined into one raw file in which every change is
detected. In each line, `of` is the number of samples in the file, and `check` is a checksum of the
rest of the line. A truncated file or a flipped bit is thus found. The file is <id>.csv, or
<id>.late.csv if none of its samples is valid.

A case with a marker counts as finished. The markers are <id>.unmeasured.json, with the reason why
the case was given up, and <id>.late.csv. If these files are removed, the case is measured again.
"""

from __future__ import annotations

import datetime
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from commodel.errors import UserError, make_printable
from commodel.files.atomic import MAX_FILE_BYTES, read_json, write_json, write_text
from commodel.files.results_folder import RAW_FOLDER
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import read_bytes
from commodel.files.tables import UNMEASURED, list_columns, read_table
from commodel.records import STOP_REASONS

if TYPE_CHECKING:
    import pandas as pd


HEADER = "id,sample,seconds,skew,valid,stop"
OPTIONAL_COLUMNS = ("", ",count", ",first,last", ",cpu", ",cpu,first,last", ",computation")
# cpu: processor seconds of a wave, all processes; computation: seconds that ranks computed beside a
# sample's messages
HEADERS = tuple(f"{HEADER}{more}" for more in OPTIONAL_COLUMNS)  # of the programs' files
# in place of .csv if no sample is valid: a rank always started late, or a clock jumped
LATE_SUFFIX = ".late.csv"
SUFFIXES = (".csv", LATE_SUFFIX)
VALID_COLUMN = HEADER.split(",").index("valid")
JOINED_HEADERS = tuple(f"{header.replace('id,', 'id,pass,', 1)},of,check" for header in HEADERS)


class DamagedError(UserError):
    """A raw file that has changed since it was written."""


CURRENT_CASE = ".now"  # file in which a program names the case that it measures
MAX_NAME_BYTES = 300  # bytes read from it


def read_current_case(folder: AnyPath) -> str:
    """Return the case that the program of a folder measures, or measured when it died. Before the
    first and after the last case, the text is empty."""
    try:
        with (folder / CURRENT_CASE).open("rb") as stream:
            return stream.read(MAX_NAME_BYTES).decode().strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""


def clear_current_case(folder: AnyPath) -> None:
    (folder / CURRENT_CASE).unlink(missing_ok=True)


def is_complete(path: AnyPath) -> bool:
    """Return whether a program's file of one pass is complete; a crash of the machine may truncate
    it."""
    try:
        text = _read_text(path)
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


def find_raw_file(folder: AnyPath, case: str) -> AnyPath | None:
    """Return the raw file of a case, if it has one."""
    paths = (folder / f"{case}{suffix}" for suffix in SUFFIXES)
    return next((path for path in paths if path.exists()), None)


def make_raw_file_path(batch: str, case: str, valid: bool) -> str:
    """Return the path of a case's raw file below the results folder; `valid`: whether any of its
    samples is valid."""
    return f"{RAW_FOLDER}/{batch}/{_make_file_name(case, valid)}"


def _make_file_name(case: str, valid: bool) -> str:
    return f"{case}{'.csv' if valid else LATE_SUFFIX}"


def join_passes(passes: Mapping[int, AnyPath], folder: AnyPath, case: str) -> None:
    """Write the raw file of a case from the files of its passes, with the pass of each sample as a
    column."""
    files = {number: _read_text(path).splitlines() for number, path in passes.items()}
    header = next(iter(files.values()))[0]
    total = sum(len(lines) - 1 for lines in files.values())
    joined = [JOINED_HEADERS[HEADERS.index(header)]]
    valid = False
    for number, lines in files.items():
        for line in lines[1:]:
            name, _, columns = line.partition(",")
            text = f"{name},{number},{columns},{total}"
            joined.append(f"{text},{compute_checksum(text)}")
            valid = valid or line.split(",", VALID_COLUMN + 1)[VALID_COLUMN] == "1"
    write_text(folder / _make_file_name(case, valid), "\n".join(joined) + "\n")


def _read_text(path: AnyPath) -> str:
    return read_bytes(path, MAX_FILE_BYTES, "the samples of one case").decode()


def compute_checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


def read_samples(path: AnyPath, case: str) -> list[dict[str, Any]]:
    """Return the samples of a case; raise DamagedError, with the line, if the file has changed
    since it was written."""
    number = 0
    try:
        lines = _read_text(path).split("\n")
        if lines[0] not in JOINED_HEADERS:
            raise ValueError("an unknown header")
        if lines.pop() != "":
            raise ValueError("its last line is cut off")
        rows = []
        for number, line in enumerate(lines[1:], 2):  # noqa: B007 - `number` is for the message
            rows.append(_parse_sample(lines[0], line, case))
        if not rows:
            raise ValueError("without samples")
        if any(row["of"] != len(rows) for row in rows):
            raise ValueError(f"{len(rows)} samples of {rows[0]['of']}")
    except ValueError as error:
        raise DamagedError(f"damaged raw file ({error})", file=path, line=number or None) from None
    for row in rows:
        del row["of"]
    return rows


def _parse_sample(header: str, line: str, case: str) -> dict[str, Any]:
    names = header.split(",")
    fields = line.split(",")
    if len(names) != len(fields):
        raise ValueError(f"{len(fields)} fields instead of {len(names)}")
    row = dict(zip(names, fields, strict=True))
    if row["check"] != compute_checksum(line.rpartition(",")[0]):
        raise ValueError("its checksum differs")
    if row["id"] != case:
        raise ValueError(f"it has samples of '{row['id']}'")
    seconds = float(row["seconds"])
    valid = bool(int(row["valid"]))
    if not np.isfinite(seconds) or (valid and seconds < 0):
        raise ValueError(f"found {seconds} seconds")
    if row["stop"] not in STOP_REASONS:
        raise ValueError(f"found stop '{row['stop']}'")
    sample: dict[str, Any] = {
        "pass": int(row["pass"]),
        "sample": int(row["sample"]),
        "seconds": seconds,
    }
    sample |= {"skew": float(row["skew"]) if row["skew"] else np.nan, "valid": valid}
    sample |= {"stop": row["stop"], "of": int(row["of"])}
    optional_fields = {
        name: float(row[name])
        for name in ("count", "cpu", "computation", "first", "last")
        if row.get(name)
    }
    if not all(map(np.isfinite, optional_fields.values())):
        raise ValueError(
            f"found {', '.join(f'{name} {value}' for name, value in optional_fields.items())}"
        )
    return sample | optional_fields


CRASH = "crash"
TIMEOUT = "timeout"
BUDGET = "budget"
UNFINISHED = "unfinished"
LATE = "late"
# first words of the reason why later cases were not started
STOPPED_BY_FAILURES = "three cases in a row failed"
MARKER_SUFFIX = ".unmeasured.json"
COUNT_COLUMNS = list_columns(UNMEASURED, int)
TEXT_COLUMNS = list_columns(UNMEASURED, str)


def make_marker_path(folder: AnyPath, case: str) -> AnyPath:
    return folder / f"{case}{MARKER_SUFFIX}"


def write_marker(folder: AnyPath, case: str, status: str, reason: str, attempt: int) -> None:
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    content = {
        "id": case,
        "status": status,
        "reason": make_printable(reason),
        "attempt": attempt,
        "date": date,
    }
    write_json(make_marker_path(folder, case), content)


def remove_marker(folder: AnyPath, case: str) -> None:
    for suffix in (MARKER_SUFFIX, LATE_SUFFIX):
        (folder / f"{case}{suffix}").unlink(missing_ok=True)


def read_marker(folder: AnyPath, case: str) -> tuple[str, str] | None:
    """Return status and reason of a case that was given up; None if it was not, or if it has valid
    samples."""
    path = make_marker_path(folder, case)
    if (folder / f"{case}.csv").exists():
        return None
    if (folder / f"{case}{LATE_SUFFIX}").exists():
        return LATE, "none of its samples is valid: in each a rank started late, or a clock was set"
    if not path.exists():
        return None
    try:
        content = read_json(path)
        return str(content["status"]), make_printable(content["reason"])
    except (UserError, KeyError, TypeError):
        return CRASH, "unknown: the file with the reason is damaged"


def list_finished(folder: AnyPath) -> tuple[set[str], set[str]]:
    """Return the ids of the measured cases in a folder, and of the cases that were given up."""
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    marked: set[str] = set()
    for ending in (MARKER_SUFFIX, LATE_SUFFIX):
        marked |= {name.removesuffix(ending) for name in names if name.endswith(ending)}
    measured = {
        name.removesuffix(".csv")
        for name in names
        if name.endswith(".csv") and not name.endswith(LATE_SUFFIX)
    }
    return measured, marked - measured


def tabulate_unmeasured(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the table of unmeasured cases, one row for each case."""
    import pandas as pd  # here, because it takes longer to load than most verbs to run

    types = dict.fromkeys(COUNT_COLUMNS, "Int64") | dict.fromkeys(TEXT_COLUMNS, object)
    return (
        pd.DataFrame(rows, columns=list_columns(UNMEASURED))
        .astype(types)
        .fillna(dict.fromkeys(TEXT_COLUMNS, ""))
    )


def read_unmeasured(path: AnyPath) -> pd.DataFrame:
    """Return the table of unmeasured cases."""
    rows = read_table(path, UNMEASURED)[list_columns(UNMEASURED)]
    return rows.astype(dict.fromkeys(COUNT_COLUMNS, "Int64"))
