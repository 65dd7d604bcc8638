"""Tables that are too long for memory, written and read in pieces (`write_stream`, `read_stream`): Parquet, or CSV with
the same content, by the suffix.

The result does not depend on the sizes of the pieces, since rows are collected into groups of one length. `give_back`
returns freed memory to the system.
"""

import ctypes
import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from commodel.errors import UserError
from commodel.files.atomic import write_atomically
from commodel.files.safe_reading import open_file
from commodel.files.tables import Schema, guarded

GROUP = 100_000  # rows
TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64()}
SUFFIXES = (".parquet", ".csv")


def arrow(schema: Schema) -> pa.Schema:
    return pa.schema([(field.name, TYPES[field.type]) for field in schema])


def piece(columns: Mapping[str, object], types: pa.Schema) -> pa.Table:
    """Return columns as a table; a single value fills a whole column, and NaN and None become nulls."""
    rows = max(len(values) for values in columns.values() if not _single(values))
    return pa.table(
        [
            pa.repeat(pa.scalar(columns[field.name], field.type), rows)
            if _single(columns[field.name])
            else pa.array(columns[field.name], field.type, from_pandas=True)
            for field in types
        ],
        schema=types,
    )


def _single(values: object) -> bool:
    return values is None or isinstance(values, str | int | float)


def write_stream(path: Path, types: pa.Schema, pieces: Iterable[pa.Table]) -> int:
    """Write a table from its pieces, complete or not at all, and return the number of rows."""
    check_suffix(path)
    rows = 0
    with write_atomically(path) as stream, _writer(path.suffix, stream, types) as write:
        for group in _groups(pieces):
            write(group)
            rows += len(group)
    return rows


def check_suffix(path: Path) -> None:
    if path.suffix not in SUFFIXES:
        raise UserError(f"found the suffix '{path.suffix}', wanted {' or '.join(SUFFIXES)}", file=path)


def _groups(pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    waiting, rows = [], 0
    for table in pieces:
        waiting.append(table)
        rows += len(table)
        if rows >= GROUP:
            together = pa.concat_tables(waiting)
            full = rows - rows % GROUP
            for start in range(0, full, GROUP):
                yield together.slice(start, GROUP)
            waiting, rows = [together.slice(full)], rows - full
    if rows:
        yield pa.concat_tables(waiting).combine_chunks()


@contextmanager
def _writer(suffix: str, stream: IO[bytes], types: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    if suffix == ".parquet":
        with pq.ParquetWriter(stream, types) as writer:
            yield lambda table: writer.write_table(table.combine_chunks(), row_group_size=GROUP)
        return
    types.empty_table().to_pandas().to_csv(stream, index=False, lineterminator="\n")
    yield lambda table: guarded(table.to_pandas()).to_csv(stream, index=False, header=False, lineterminator="\n")


def read_stream(paths: Iterable[Path]) -> tuple[pa.Schema, Iterator[pa.Table]]:
    """Return the schema of Parquet files with equal columns, and their rows, one file after the other."""
    paths = list(paths)
    types = [_opened(path).schema_arrow for path in paths]
    for path, schema in zip(paths, types, strict=True):
        if not schema.equals(types[0]):
            raise UserError(f"found columns other than those of {paths[0]}", file=path)

    def pieces():
        for path in paths:
            for batch in _opened(path).iter_batches(GROUP, use_threads=False):
                yield pa.Table.from_batches([batch])

    return types[0], pieces()


def _opened(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(open_file(path))
    except (OSError, ValueError) as error:  # pyarrow's are ValueErrors
        raise UserError(f"cannot read it as Parquet: {str(error).partition(chr(10))[0]}", file=path) from None


def give_back() -> None:
    """Return freed memory to the system.

    Objects in reference cycles, such as a written workbook, are only freed by the collector. glibc keeps freed memory
    between objects in use: a hundred megabytes and more after copies of a large table. Other C libraries have no such
    function, and most do not need it.
    """
    gc.collect()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
