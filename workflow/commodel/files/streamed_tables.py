"""Tables that are too long for memory, written in pieces (`write_stream`): Parquet or CSV with the
same content.

The result does not depend on the sizes of the pieces, since rows are collected into groups of equal
size. `return_freed_memory` returns memory to the operating system.
"""

import ctypes
import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from commodel.errors import UserError
from commodel.files.atomic import write_atomically
from commodel.files.tables import Schema, make_cells_safe

GROUP_ROWS = 100_000
TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64()}
SUFFIXES = (".parquet", ".csv")


def make_arrow_schema(schema: Schema) -> pa.Schema:
    return pa.schema([(field.name, TYPES[field.type]) for field in schema])


def make_piece(columns: Mapping[str, Any], types: pa.Schema) -> pa.Table:
    """Return columns as a table; a single value fills a whole column, and NaN and None become
    nulls."""
    rows = max(len(values) for values in columns.values() if not _is_single_value(values))
    return pa.table(
        [
            pa.repeat(pa.scalar(columns[field.name], field.type), rows)
            if _is_single_value(columns[field.name])
            else pa.array(columns[field.name], field.type, from_pandas=True)
            for field in types
        ],
        schema=types,
    )


def _is_single_value(values: object) -> bool:
    return values is None or isinstance(values, str | int | float)


def write_stream(path: Path, types: pa.Schema, pieces: Iterable[pa.Table]) -> int:
    """Write a table from its pieces, complete or not at all, and return the number of rows."""
    check_suffix(path)
    rows = 0
    with write_atomically(path) as stream, _open_writer(path.suffix, stream, types) as write:
        for group in _group_rows(pieces):
            write(group)
            rows += len(group)
    return rows


def check_suffix(path: Path) -> None:
    if path.suffix not in SUFFIXES:
        raise UserError(
            f"found the suffix '{path.suffix}', wanted {' or '.join(SUFFIXES)}", file=path
        )


def _group_rows(pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    pending = []
    rows = 0
    for table in pieces:
        pending.append(table)
        rows += len(table)
        if rows >= GROUP_ROWS:
            joined = pa.concat_tables(pending)
            full = rows - rows % GROUP_ROWS
            for start in range(0, full, GROUP_ROWS):
                yield joined.slice(start, GROUP_ROWS)
            pending = [joined.slice(full)]
            rows = rows - full
    if rows:
        yield pa.concat_tables(pending).combine_chunks()


@contextmanager
def _open_writer(
    suffix: str, stream: IO[bytes], types: pa.Schema
) -> Iterator[Callable[[pa.Table], None]]:
    if suffix == ".parquet":
        with pq.ParquetWriter(stream, types) as writer:
            yield lambda table: writer.write_table(
                table.combine_chunks(), row_group_size=GROUP_ROWS
            )
        return
    types.empty_table().to_pandas().to_csv(stream, index=False, lineterminator="\n")
    yield lambda table: make_cells_safe(table.to_pandas()).to_csv(
        stream, index=False, header=False, lineterminator="\n"
    )


def return_freed_memory() -> None:
    """Return freed memory to the operating system.

    Objects in reference cycles, such as a written workbook, are only freed by the garbage
    collector. glibc keeps freed memory between objects in use: a hundred megabytes and more after
    copies of a large table. Other C libraries have no `malloc_trim`, and most do not need it.
    """
    gc.collect()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
