"""Text from strangers as cells of a table that may be opened as a spreadsheet: none becomes a formula, none ends a row.
Numbers stay numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def guarded(frame: pd.DataFrame) -> pd.DataFrame:
    """The same with safe cells, for a file that somebody may open as a spreadsheet."""
    texts = frame.select_dtypes(include=["object", "string", "category"])
    unsafe = {name: safe for name in texts if (safe := _unsafe(texts[name]))}
    return frame.assign(**{name: frame[name].replace(safe) for name, safe in unsafe.items()}) if unsafe else frame


def _unsafe(column: pd.Series) -> dict[str, str]:
    """The texts of a column that must not stand in a table as they are, and what stands there instead."""
    return {value: safe for value in column.unique() if (safe := safe_cell(value)) is not value}


def safe_cell(value: object) -> object:
    """A text that a spreadsheet would take for a formula gets a quote in front; a number stays one."""
    if not isinstance(value, str):
        return value
    if "\r" in value:  # pandas does not quote it, and readers end a row there
        value = value.replace("\r", " ")
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", " =")) else value
