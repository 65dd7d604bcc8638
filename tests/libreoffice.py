"""Recalculate workbooks with LibreOffice, without a window."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import openpyxl
import pytest

ALWAYS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry"><item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item></oor:items>"""


def recalculated(paths: Sequence[Path], folder: Path) -> list[openpyxl.Workbook]:
    """Return the workbooks with values computed by one run of LibreOffice; `folder` is for its profile and output."""
    office = shutil.which("soffice") or shutil.which("libreoffice")
    if office is None:
        pytest.skip("no LibreOffice here")
    profile, out = folder / "profile" / "user", folder / "out"
    profile.mkdir(parents=True)
    (profile / "registrymodifications.xcu").write_text(ALWAYS, encoding="utf-8")
    options = [f"-env:UserInstallation=file://{profile.parent}", "--headless", "--convert-to", "xlsx", "--outdir"]
    command = [office, *options, str(out), *map(str, paths)]
    said = subprocess.run(command, check=True, capture_output=True, timeout=300)
    assert all((out / path.name).exists() for path in paths), said  # it calls a failure none
    return [openpyxl.load_workbook(out / path.name, data_only=True) for path in paths]
