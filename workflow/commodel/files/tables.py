"""CSV tables, as stages leave them for each other and as strangers hand them in."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import TYPE_CHECKING

from commodel.errors import UserError
from commodel.files.atomic import MAX_FILE, whole
from commodel.files.cells import guarded
from commodel.files.paths import AnyPath
from commodel.files.text import MIB, bounded, read_lines

if TYPE_CHECKING:
    import pandas as pd

MAX_TABLE = 4096 * MIB  # of samples: 30 million of them


def write_table(path: AnyPath, frame: pd.DataFrame) -> None:
    with whole(path) as stream:
        guarded(frame).to_csv(stream, index=False)


def read_table(path: AnyPath, text_columns: tuple[str, ...] = ()) -> pd.DataFrame:
    """A CSV table; `text_columns` stay text where they are empty or look like numbers."""
    import pandas as pd  # here, because it takes longer to load than most verbs to run

    try:
        with bounded(path, MAX_TABLE, "a smaller table") as stream:
            frame = pd.read_csv(stream, dtype=dict.fromkeys(text_columns, str))
    except ValueError as error:
        raise UserError(f"cannot read the table: {error}", file=path) from None
    for name in text_columns:
        if name in frame:
            frame[name] = frame[name].fillna("")
    return frame


def read_rows(path: AnyPath, wanted: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    """The rows of a CSV table that is not ours, as text, each with the number of its line; it has these columns."""
    try:
        lines = (line + "\n" for _, line in read_lines(path, MAX_FILE, "a smaller table"))
        reader = csv.DictReader(lines, restval="", skipinitialspace=True)
        names = [name.strip() for name in reader.fieldnames or ()]
        reader.fieldnames = names
        for name in wanted:
            if name not in names:
                raise UserError(f"found no column '{name}' among {', '.join(names) or 'none'}", file=path, line=1)
            if names.count(name) > 1:
                raise UserError(f"found the column '{name}' twice", file=path, line=1)
        rows = []
        for row in reader:
            if row.pop(None, None):
                message = f"found more cells than the {len(names)} columns"
                raise UserError(message, file=path, line=reader.line_num)
            rows.append((reader.line_num, {name: cell.strip() for name, cell in row.items()}))
    except csv.Error as error:
        raise UserError(f"cannot read the table: {error}", file=path, line=reader.reader.line_num) from None
    if not rows:
        raise UserError("found no rows below the column names", file=path)
    return rows


def cell(row: dict[str, str], column: str, parse: Callable):
    """One cell of such a row, read; a mistake names its column."""
    try:
        return parse(row[column])
    except UserError as error:
        raise UserError(error.found, key=column) from None
