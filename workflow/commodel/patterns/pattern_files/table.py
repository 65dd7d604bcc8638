"""Reader of the table of messages and local work that `commodel show schedule` prints (see
`schedule_files`).

Rows may be in any order; messages that a rank posts in one step are posted in row order.
"""

import csv
from collections.abc import Iterator

import numpy as np

from commodel.errors import UserError, locate_mistakes, suggest_name
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import MIB, read_lines
from commodel.patterns.rank_local_steps import make_rank_local_schedule
from commodel.patterns.schedule import KINDS, Schedule, Work
from commodel.patterns.schedule_files import COLUMNS
from commodel.units import MAX_BYTES, MAX_COUNT, MAX_SECONDS, show_value

MAX_FILE = 1024 * MIB
REQUIRED_COLUMNS = ("step", "kind", "rank")
MAX_STEP = 2**31 - 1
# ranks without rows: a fixed number, and more for each row
MAX_IDLE_RANKS, MAX_IDLE_RANKS_PER_ROW = 1024, 16


class TableLine:
    """A line: its cells by column, and errors that name the line."""

    def __init__(self, path: AnyPath, line: int, cells: dict[str, str]) -> None:
        self.path = path
        self.line = line
        self.cells = cells

    def error(self, column: str, wanted: str) -> UserError:
        text = f"column {column}: found {show_value(self.cells.get(column, ''))}, wanted {wanted}"
        return UserError(text, file=self.path, line=self.line)

    def read_whole(self, column: str, largest: int, empty: int | None = None) -> int:
        text = self.cells.get(column, "")
        if not text and empty is not None:
            return empty
        if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) <= largest):
            raise self.error(column, f"a whole number from 0 to {largest}")
        return int(text)

    def read_wait(self, column: str, post: int) -> int:
        step = self.read_whole(column, MAX_STEP, post)
        if step < post:
            raise self.error(column, "no step before the one that posts the message")
        return step

    def read_message(self) -> tuple[int, ...]:
        """Return rank, peer, bytes, step, wait, peer_step and peer_wait."""
        rank = self.read_whole("rank", MAX_COUNT - 1)
        peer = self.read_whole("peer", MAX_COUNT - 1)
        step = self.read_whole("step", MAX_STEP)
        peer_step = self.read_whole("peer_step", MAX_STEP, step)
        waits = self.read_wait("wait", step), self.read_wait("peer_wait", peer_step)
        return rank, peer, self.read_whole("bytes", MAX_BYTES), step, waits[0], peer_step, waits[1]

    def read_work(self, kind: str) -> tuple[int, int, int, int, float]:
        for column in ("wait", "peer_step", "peer_wait"):
            if self.cells.get(column):
                raise self.error(column, f"nothing: {kind} is done in its step")
        bytes = self.read_whole("bytes", MAX_BYTES, 0) if kind != "compute" else 0
        seconds = self.read_seconds() if kind == "compute" else 0.0
        return (
            self.read_whole("step", MAX_STEP),
            self.read_whole("rank", MAX_COUNT - 1),
            KINDS.index(kind),
            bytes,
            seconds,
        )

    def read_seconds(self) -> float:
        try:
            seconds = float(self.cells.get("seconds", ""))
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds <= MAX_SECONDS:
            raise self.error("seconds", f"a number of seconds from 0 to {MAX_SECONDS:g}")
        return seconds


def read(path: AnyPath) -> Schedule:
    messages, work_rows = [], []
    for row in _read_rows(path):
        kind = row.cells["kind"]
        if kind == "send":
            messages.append(row.read_message())
        elif kind in KINDS:
            work_rows.append(row.read_work(kind))
        else:
            raise row.error("kind", f"send, {', '.join(KINDS[:-1])} or {KINDS[-1]}")
    columns = np.array(messages, dtype=np.int64).reshape(-1, 7).T
    src, dst, bytes, src_step, src_wait, dst_step, dst_wait = columns
    work = _make_work(work_rows)
    ranks = int(max(src.max(initial=-1), dst.max(initial=-1), work.rank.max(initial=-1))) + 1
    rows = len(messages) + len(work_rows)
    if ranks > MAX_IDLE_RANKS + MAX_IDLE_RANKS_PER_ROW * rows:
        raise UserError(f"found rank {ranks - 1} in a table of {rows} rows", file=path)
    with locate_mistakes(path):
        return make_rank_local_schedule(
            ranks, src, dst, bytes, src_step, src_wait, dst_step, dst_wait, work=work
        )


def _make_work(rows: list[tuple]) -> Work:
    step, rank, kind, bytes, seconds = np.array(rows, dtype=float).reshape(-1, 5).T
    return Work(
        step=step.astype(int),
        rank=rank.astype(int),
        kind=kind.astype(int),
        bytes=bytes,
        seconds=seconds,
    )


def _read_rows(path: AnyPath) -> Iterator[TableLine]:
    """Yield the rows. Cells with line breaks are not supported."""
    header: list[str] = []
    for number, line in read_lines(path, MAX_FILE, "a table of messages"):
        if not line.strip():
            continue
        cells = _split_cells(path, number, line)
        if not header:
            header = _check_header(path, number, cells)
        elif len(cells) != len(header):
            raise UserError(
                f"found {len(cells)} cells, wanted {len(header)}: {','.join(header)}",
                file=path,
                line=number,
            )
        else:
            yield TableLine(path, number, dict(zip(header, cells, strict=True)))


def _split_cells(path: AnyPath, number: int, line: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], strict=True), [])]
    except csv.Error as error:
        raise UserError(f"not a line of a table: {error}", file=path, line=number) from None


def _check_header(path: AnyPath, line: int, cells: list[str]) -> list[str]:
    for name in cells:
        if name not in COLUMNS:
            raise UserError(
                f"found column {show_value(name)}; {suggest_name(name, COLUMNS)}",
                file=path,
                line=line,
            )
        if cells.count(name) > 1:
            raise UserError(f"found column {name} twice, wanted it once", file=path, line=line)
    missing = [name for name in REQUIRED_COLUMNS if name not in cells]
    if missing:
        raise UserError(
            f"found no column {missing[0]}, wanted {','.join(COLUMNS)}", file=path, line=line
        )
    return cells
