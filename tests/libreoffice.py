"""Recalculate workbooks with LibreOffice, without a window."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import openpyxl
import pytest

ALWAYS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry"><item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item></oor:items>"""


def convert(paths: Sequence[Path], folder: Path, kind: str) -> Path:
    """Convert the workbooks by one run of LibreOffice and return the folder of the new files.
    `folder` is for its profile and output."""
    office = shutil.which("soffice") or shutil.which("libreoffice")
    if office is None:
        pytest.skip("no LibreOffice here")
    profile, out = folder / "profile" / "user", folder / "out"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "registrymodifications.xcu").write_text(ALWAYS, encoding="utf-8")
    options = [
        f"-env:UserInstallation=file://{profile.parent}",
        "--headless",
        "--convert-to",
        kind,
        "--outdir",
    ]
    command = [office, *options, str(out), *map(str, paths)]
    said = subprocess.run(command, check=True, capture_output=True, timeout=300)
    # it calls a failure none
    assert all((out / path.name).with_suffix(f".{kind}").exists() for path in paths), said
    return out


def count_pages(path: Path, folder: Path) -> int:
    """Return the number of printed pages of a workbook."""
    printed = (convert([path], folder, "pdf") / path.name).with_suffix(".pdf")
    return len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes()))


def recalculated(paths: Sequence[Path], folder: Path) -> list[openpyxl.Workbook]:
    """Return the workbooks with values computed by one run of LibreOffice; `folder` is for its
    profile and output."""
    out = convert(paths, folder, "xlsx")
    return [openpyxl.load_workbook(out / path.name, data_only=True) for path in paths]
