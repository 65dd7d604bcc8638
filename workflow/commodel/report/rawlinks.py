"""Links from a report to the raw files behind its numbers. A link leads from the report's folder to that of the results
and down to a file of samples, by names that we give ourselves: whatever else a table or a workbook says is text."""

import os
import re
from pathlib import Path

from commodel.records import PATH_PART

NAME = PATH_PART.pattern
BASE = re.compile(rf"(\.\./){{0,20}}(\.|\.\.|{NAME}(/{NAME})?)")
RAW = re.compile(rf"raw/{NAME}/{NAME}\.csv")


def results_from(report: Path, results: str) -> str:
    """How the folder of the results is seen from the report's; empty where they do not lie in one project, because the
    names of folders in between are nobody's matter."""
    path = Path(os.path.relpath(results, report)).as_posix()
    return path if BASE.fullmatch(path) else ""


def raw_link(results: str, path: str) -> str:
    """Where a file of samples is, seen from the report; empty for what is no such file, and where no link leads."""
    return f"{results}/{path}" if BASE.fullmatch(results) and RAW.fullmatch(path) else ""
