"""A table of more rows than a sheet holds: all of it in a Parquet file beside the workbook, whose sheet has the first
rows and says so. (pyarrow is there anyway, for `commodel price`.)"""

import re
from collections.abc import Iterator
from pathlib import Path

from commodel.report.shape import WORDS, Table
from commodel.report.values import comparable, show
from commodel.report.xlsx.layout import unique

PIECE = 50_000  # rows
ROWS_SHOWN = 20_000  # rows that the sheet has


def file_name(section: str) -> str:
    return f"{re.sub(r'[^a-z0-9]+', '-', section.lower()).strip('-') or 'table'}.parquet"


def note(section: str, rows: int) -> str:
    beside = f"all are in {file_name(section)} beside this workbook; here the first {ROWS_SHOWN:,}."
    return f"{rows:,} rows, more than a sheet holds: {beside}"


def write_parquet(section: str, table: Table, folder: Path) -> Path:
    """Columns by the headers of the sheet; n/a and blanks are empty there, infinite values are."""
    import pyarrow as pa  # here, because few tables are so long

    from commodel.files.streams import piece, write_stream

    names = unique([column.header for column in table.columns])
    words = [column.kind in WORDS for column in table.columns]
    types = pa.schema([(name, pa.string() if text else pa.float64()) for name, text in zip(names, words, strict=True)])

    def pieces() -> Iterator[pa.Table]:
        for first in range(0, len(table.rows), PIECE):
            columns = {}
            for place, (name, column) in enumerate(zip(names, table.columns, strict=True)):
                values = table.values(place, first, first + PIECE)
                columns[name] = [
                    (show(column.kind, value) or None) if words[place] else float(value) if comparable(value) else None
                    for value in values
                ]
            yield piece(columns, types)

    path = folder / file_name(section)
    write_stream(path, types, pieces())
    return path
