"""Prices of a kernel as a workbook: a row a family, and what every iteration costs by each.

A partition as a workbook that people edit, and such a workbook read back: x, y, width and height of every rank."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pandas as pd
from openpyxl.utils import get_column_letter

from commodel.errors import UserError
from commodel.reports.received_workbooks import Formula, received
from commodel.reports.received_workbooks import rows as rows_of
from commodel.reports.shape import MICRO, Answer, Column, Report, Section, table
from commodel.reports.xlsx.workbook import write_xlsx
from commodel.units import shown

TIMES = ("seconds", "low", "high")


def write_kernel(rows: list[dict], iterations: list[dict], sentences: list[str], simulated: bool, path: Path) -> None:
    """Times in seconds, None where a family has no price."""
    frame = pd.DataFrame(rows)
    columns = [
        *(Column(name, name) for name in frame if name not in (*TIMES, "status")),
        *(Column(name, f"{name.replace('seconds', 'time')} [µs]", "number") for name in TIMES),
        Column("status", "status"),
    ]
    scaled = frame.assign(**{name: MICRO * frame[name].astype(float) for name in TIMES})
    sections = [
        Section(
            "Families",
            "",
            (Answer("What is priced", tuple(sentences)), table("Families", "What it costs", columns, scaled)),
        )
    ]
    if iterations:
        every = pd.DataFrame(iterations)
        names = [name for name in every if name not in ("iteration", "count")]
        every = every.assign(**{name: MICRO * every[name].astype(float) for name in names})
        columns = [Column("iteration", "from", "count"), Column("count", "alike", "count")]
        columns += [Column(name, f"{name} [µs]", "number") for name in names]
        note = "One row for iterations that follow one another and send the same; times are of one of them."
        sections.append(Section("Iterations", note, (table("Iterations", "Iteration by iteration", columns, every),)))
    banner = "SIMULATED: the values were fitted on a simulator, not on hardware." if simulated else ""
    write_xlsx(Report("commodel kernel", "prices of a kernel's communication", banner, tuple(sections)), path)


EDITED = ("rank", "x", "y", "width", "height")
SHEET = "Partition"
ABOVE, ACROSS = 40, 60  # rows that may stand above the names of the columns, and columns that are looked at
MOST_ROWS = 1 << 20
HINT = (
    "Change x, y, width and height, and read them back with commodel partition --from. "
    "The rectangles have to tile the matrix. Other columns are not read."
)


def write_partition(frame: pd.DataFrame, title: str, sentences: list[str], banner: str, path: Path) -> None:
    """`frame` has a row for each rank, times in seconds."""
    columns = [
        *(Column(name, name, "count") for name in EDITED),
        Column("area", "area", "count"),
        Column("node", "node", "count"),
        Column("kind", "kind"),
        Column("speed", "speed [1/s]", "number"),
        *(
            Column(name, f"{header} [ms]", "number")
            for name, header in (("seconds", "time"), ("low", "low"), ("high", "high"))
        ),
        Column("idle", "idle [%]", "percent"),
    ]
    scaled = frame.assign(**{name: 1e3 * frame[name] for name in ("seconds", "low", "high")}, idle=100 * frame["idle"])
    sections = (
        Section(SHEET, HINT, (table(SHEET, "Rank by rank", columns, scaled),)),
        Section("Summary", "", (Answer(title, tuple(sentences)),)),
    )
    write_xlsx(Report("commodel partition", title, banner, sections), path)


@dataclass(frozen=True)
class Edited:
    """What somebody left in the workbook: the columns of EDITED in the order of the ranks, and where they stand."""

    file: Path
    sheet: str
    columns: dict[str, list[int]]
    lines: list[int]  # of every rank
    letters: dict[str, str]  # of every column

    def error(self, rank: int, message: str, column: str = "x") -> UserError:
        place = f"sheet '{self.sheet}', cell {self.letters[column]}{self.lines[rank]}"
        return UserError(message, file=self.file, key=place)


def read_partition(path: Path) -> Edited:
    """The first sheet that has the columns; a blank row ends them."""
    with received(path) as book:
        for sheet in book.worksheets:
            rows = enumerate(rows_of(sheet, MOST_ROWS, ACROSS, path), 1)
            for _, cells in islice(rows, ABOVE):
                if set(EDITED) <= set(cells):
                    return _read(path, sheet.title, cells, rows)
    raise UserError(f"found no sheet with the columns {', '.join(EDITED)}", file=path)


def _read(path: Path, sheet: str, names: tuple, rows: Iterable[tuple[int, tuple]]) -> Edited:
    places = {name: names.index(name) for name in EDITED}
    letters = {name: get_column_letter(place + 1) for name, place in places.items()}
    of_rank: dict[int, tuple[int, dict[str, int]]] = {}
    for line, cells in rows:
        values = {name: cells[place] if place < len(cells) else None for name, place in places.items()}
        if all(value is None for value in values.values()):
            break
        for name, value in values.items():
            if not _whole(value):
                found = "a formula" if isinstance(value, Formula) else shown(value)
                key = f"sheet '{sheet}', cell {letters[name]}{line}"
                raise UserError(f"found {found}, wanted a whole number from 0", file=path, key=key)
        rank = int(values["rank"])
        if rank in of_rank:
            key = f"sheet '{sheet}', cell {letters['rank']}{line}"
            raise UserError(f"found rank {rank} again, first in row {of_rank[rank][0]}", file=path, key=key)
        of_rank[rank] = line, {name: int(value) for name, value in values.items()}
    lost = next((rank for rank in range(len(of_rank) or 1) if rank not in of_rank), None)
    if lost is not None:
        raise UserError(f"found no rank {lost}, wanted a row for each from 0", file=path, key=f"sheet '{sheet}'")
    ordered = [of_rank[rank] for rank in range(len(of_rank))]
    columns = {name: [values[name] for _, values in ordered] for name in EDITED}
    return Edited(path, sheet, columns, [line for line, _ in ordered], letters)


def _whole(value: object) -> bool:
    """Excel keeps 3 as 3.0 at times."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**31 and value == int(value)
