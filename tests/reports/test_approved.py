"""The whole report of a recorded small campaign, compared with the one that was approved.

`make approve` writes the approved report again; its difference is reviewed with the change.
`recorded/campaign` has the stage files of two models, broadcasts and reduction trees on `loggp-64`.
"""

import dataclasses
import json
import os
from enum import Enum
from pathlib import Path

import numpy as np
import pytest

from commodel.reports import build_stored_report

RECORDED = Path(__file__).parent / "recorded"
APPROVED = RECORDED / "approved.json"
DIGITS = 6  # of a number; further ones differ between machines
# The one has digests of the code, the other texts that have a table of their own.
LEFT_OUT = ("Provenance", "Glossary")


def to_plain(value: object) -> object:
    """Return a part of a report as JSON has it."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return f"{value:.{DIGITS}g}"
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        # Fields that have no content would be most lines.
        return {name: to_plain(part) for name, part in fields.items() if not is_empty(part)}
    if isinstance(value, dict):
        return {str(key): to_plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        parts = [to_plain(part) for part in value]
        is_nested = any(isinstance(part, dict | list) for part in parts)
        return parts if is_nested else ", ".join(map(str, parts))
    return str(value)


def is_empty(value: object) -> bool:
    return value is None or value is False or (hasattr(value, "__len__") and not len(value))


def read_table(table) -> dict:
    """Return a table as its header and a line a row."""
    rows = [" | ".join(str(to_plain(cell)) for cell in row) for row in table.rows]
    columns = [column.header for column in table.columns]
    return {"title": table.title, "note": table.note, "columns": columns, "rows": rows}


def read_block(block) -> object:
    if hasattr(block, "rows") and hasattr(block, "columns") and hasattr(block, "folded"):
        return read_table(block)
    return to_plain(block)


def read_report(report) -> dict:
    sections = [
        {
            "name": section.name,
            "note": section.note,
            "blocks": [read_block(block) for block in section.blocks],
        }
        for section in report.sections
        if section.name not in LEFT_OUT
    ]
    return {
        "title": report.title,
        "banner": report.banner,
        "screens": to_plain(report.screens),
        "sections": sections,
    }


def test_the_report_of_a_recorded_campaign_is_the_approved_one():
    shown = read_report(build_stored_report(RECORDED / "campaign"))
    if os.environ.get("COMMODEL_APPROVE"):
        text = json.dumps(shown, indent=1, ensure_ascii=False)
        APPROVED.write_text(f"{text}\n", encoding="utf-8")
    if not APPROVED.exists():
        pytest.fail(f"found no {APPROVED.name}, wanted: make approve")
    approved = json.loads(APPROVED.read_text(encoding="utf-8"))
    assert json.loads(json.dumps(shown)) == approved, "wanted: review the difference, make approve"
