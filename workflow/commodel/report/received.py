"""Opens a workbook that came by mail: nothing in it is computed, followed or trusted, and it can be neither a bomb nor
an archive of something else."""

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from commodel.errors import UserError, one_line
from commodel.files.text import bounded

MOST_PARTS = 1000
MOST_BYTES = {"xl/worksheets/": 600 << 20, "": 64 << 20}  # of one part, unpacked; the first prefix that fits
MOST_IN_ALL = {"xl/worksheets/": 2048 << 20, "": 256 << 20}  # of all these parts
MOST_STRINGS = 1_000_000  # that cells share; a reader keeps them all
MOST_PACKED = 1024 << 20
CHUNK = 1 << 20
# openpyxl's parser expands entities; no workbook needs any. Zeros are left out before looking: UTF-16 has them.
STRING = re.compile(rb"<(?:[\w.-]+:)?si[\s/>]")
FORBIDDEN = re.compile(rb"<!(DOCTYPE|ENTITY)", re.IGNORECASE)
ENCODING = re.compile(rb"""^\W{0,4}<\?xml[^>]*encoding\s*=\s*["'](?!utf-8["'])""", re.IGNORECASE)


@contextmanager
def received(path: Path) -> Iterator:
    """The workbook, read row by row; whatever is wrong with it is one line."""
    import openpyxl  # here, because writers of workbooks need none of it

    with bounded(path, MOST_PACKED, "a workbook") as stream:
        try:
            _inspect(stream, path)
            book = openpyxl.load_workbook(stream, read_only=True, keep_links=False)
        except UserError:
            raise
        except Exception as error:  # a stranger's file can break a parser in any way
            raise _unreadable(path, error) from None
        try:
            yield book
        finally:
            book.close()


def _unreadable(path: Path, error: Exception) -> UserError:
    words = one_line(error, 150) if str(error) else type(error).__name__
    return UserError(f"cannot be read as a workbook (.xlsx): {words}", file=path)


def _inspect(stream: IO[bytes], path: Path) -> None:
    """Sizes are those that the archive states, and no part can be unpacked to more than it states."""
    with zipfile.ZipFile(stream) as archive:
        parts = archive.infolist()
        if len(parts) > MOST_PARTS:
            raise UserError(f"found {len(parts)} parts in it, wanted a workbook, at most {MOST_PARTS}", file=path)
        total, strings = dict.fromkeys(MOST_IN_ALL, 0), 0
        for part in parts:
            kind = next(prefix for prefix in MOST_BYTES if part.filename.startswith(prefix))
            total[kind] += part.file_size
            for size, most, what in (
                (part.file_size, MOST_BYTES[kind], "a part"),
                (total[kind], MOST_IN_ALL[kind], "parts"),
            ):
                if size > most:
                    message = f"found {what} of {size >> 20} MiB in it, wanted at most {most >> 20} MiB"
                    raise UserError(message, file=path)
        for part in parts:
            with archive.open(part) as content:
                strings += _strings(content, path)
            if strings > MOST_STRINGS:
                raise UserError(f"found more than {MOST_STRINGS:,} strings in it, wanted a report", file=path)


def _strings(stream: IO[bytes], path: Path) -> int:
    """How many shared strings there are in a part, which has no entities."""
    before, first, count = b"", True, 0
    while chunk := stream.read(CHUNK):
        text = before + chunk.replace(b"\0", b"")
        count += len(STRING.findall(text))
        if FORBIDDEN.search(text) or (first and ENCODING.search(text[:500])):
            raise UserError("found a document type or an odd encoding in it, wanted a plain workbook", file=path)
        before, first = text[-16:], False
    return count


def rows(sheet, most_rows: int, most_columns: int | None, path: Path) -> Iterator[tuple]:
    """The values of a sheet, a tuple a row, up to these bounds: what a sheet says of its own size may be a lie. A
    formula is told from a text that looks like one."""
    try:
        sheet.reset_dimensions()
        for row in sheet.iter_rows(max_row=most_rows, max_col=most_columns):
            yield tuple(Formula(cell.value) if cell.data_type == "f" else cell.value for cell in row)
    except Exception as error:
        raise _unreadable(path, error) from None


class Formula(str):
    """The text of a formula: equal to no other text."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))
