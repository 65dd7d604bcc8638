"""Rectangles as the CSV `rank,x,y,width,height`, a line a rank in any order. A sixth column, `speed`, may say how many
units of its rectangle each rank computes in a second."""

import csv
from io import StringIO

import numpy as np

from commodel.errors import UserError
from commodel.files.kept import reached
from commodel.files.paths import AnyPath
from commodel.files.text import MIB, read_lines, read_once
from commodel.patterns.rectangles import MAX_SIDE, Rectangles, misfit
from commodel.units import MAX_COUNT, shown

COLUMNS = ("rank", "x", "y", "width", "height")
WITH_SPEED = (*COLUMNS, "speed")
MAX_FILE = 256 * MIB
SLOWEST, FASTEST = 1e-30, 1e30  # units a second, so that no time overflows
MOST_DIGITS = 32


def write(tiling: Rectangles) -> str:
    """The CSV of them."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = [column.tolist() for column in tiling.table]
    if tiling.speed is not None:
        columns.append([f"{speed:.9g}" for speed in tiling.speed])
    writer.writerow(COLUMNS if tiling.speed is None else WITH_SPEED)
    writer.writerows(zip(range(tiling.ranks), *columns, strict=True))
    return text.getvalue()


def read(name: str | AnyPath) -> Rectangles:
    """From a file, or from the copy of it that the results keep."""
    return _read(reached(name) if isinstance(name, str) else name)


@read_once(files=64)
def _read(path: AnyPath) -> Rectangles:
    rows: dict[int, tuple[int, ...]] = {}
    lines: dict[int, int] = {}
    speeds: dict[int, float] = {}
    header: tuple[str, ...] = ()
    for number, line in read_lines(path, MAX_FILE, "a table of rectangles"):
        cells = [cell.strip() for cell in line.split(",")]
        if cells == [""]:
            continue
        if not header:
            if tuple(cells) not in (COLUMNS, WITH_SPEED):
                raise UserError(f"found {shown(line)}, wanted {','.join(COLUMNS)}", file=path, line=number)
            header = tuple(cells)
            continue
        rank, *rectangle = _numbers(path, number, line, cells, header)
        if rank in rows:
            raise UserError(f"found rank {rank} again, first on line {lines[rank]}", file=path, line=number)
        rows[rank], lines[rank] = tuple(rectangle), number
        if len(cells) > len(COLUMNS):
            speeds[rank] = _speed(path, number, cells[-1])
    if not rows:
        raise UserError(f"found no rectangles, wanted {','.join(COLUMNS)} and a line a rank", file=path)
    if (lost := next((rank for rank in range(len(rows)) if rank not in rows), None)) is not None:
        raise UserError(f"found rank {max(rows)}, but none {lost}", file=path, line=lines[max(rows)])
    columns = np.array([rows[rank] for rank in range(len(rows))], dtype=np.int64).T
    side = int(max((columns[0] + columns[2]).max(), (columns[1] + columns[3]).max()))
    tiling = Rectangles(*columns, side, np.array([speeds[rank] for rank in range(len(rows))]) if speeds else None)
    if side > MAX_SIDE:
        raise UserError(f"found a square of {side}×{side}, wanted at most {MAX_SIDE} a side", file=path)
    if mistake := misfit(tiling):
        raise UserError(mistake[0], file=path, line=lines[mistake[1]])
    return tiling


def _numbers(path: AnyPath, number: int, line: str, cells: list[str], header: tuple[str, ...]) -> list[int]:
    whole = cells[: len(COLUMNS)]
    known = len(cells) == len(header) and all(cell.isascii() and cell.isdigit() and len(cell) <= 8 for cell in whole)
    if not known or int(cells[0]) >= MAX_COUNT:
        wanted = f"five whole numbers{' and a speed' if header == WITH_SPEED else ''}: {','.join(header)}"
        raise UserError(f"found {shown(line)}, wanted {wanted}", file=path, line=number)
    return [int(cell) for cell in whole]


def _speed(path: AnyPath, number: int, text: str) -> float:
    try:
        speed = float(text) if text.isascii() and len(text) <= MOST_DIGITS else 0.0
    except ValueError:
        speed = 0.0
    if not SLOWEST <= speed <= FASTEST:
        wanted = f"a number from {SLOWEST:g} to {FASTEST:g}, units a second"
        raise UserError(f"column speed: found {shown(text)}, wanted {wanted}", file=path, line=number)
    return speed
