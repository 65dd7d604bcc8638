"""Workbooks of kernels: predictions (`write_kernel`), and an editable partition
(`write_partition`), which `read_partition` reads back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
from openpyxl.utils import get_column_letter

from commodel.errors import UserError
from commodel.reports.elements import (
    MICRO,
    AnsweredQuestion,
    Column,
    Report,
    Section,
    make_table,
    select_columns,
)
from commodel.reports.received_workbooks import Formula, open_received, read_sheet_rows
from commodel.reports.xlsx.workbook import write_xlsx
from commodel.units import show_value

KERNEL_TIME_COLUMNS = ("seconds", "low", "high")


def write_kernel(
    rows: Sequence[Mapping],
    iterations: Sequence[Mapping],
    sentences: Sequence[str],
    simulated: bool,
    path: Path,
) -> None:
    """Write the predictions of a kernel. Times are in seconds, None if a model has no
    prediction."""
    frame = pd.DataFrame(rows)
    columns = [
        *(Column(name, name) for name in frame if name not in (*KERNEL_TIME_COLUMNS, "validity")),
        *(
            Column(name, f"{name.replace('seconds', 'time')} [µs]", "number")
            for name in KERNEL_TIME_COLUMNS
        ),
        Column("validity", "validity"),
    ]
    scaled = frame.assign(
        **{name: MICRO * frame[name].astype(float) for name in KERNEL_TIME_COLUMNS}
    )
    models = (
        AnsweredQuestion("Kernel", tuple(sentences)),
        make_table("Predicted times", "Predicted times", scaled, columns),
    )
    sections = [Section("Models", "", models)]
    if iterations:
        times = pd.DataFrame(iterations)
        names = [name for name in times if name not in ("iteration", "count")]
        times = times.assign(**{name: MICRO * times[name].astype(float) for name in names})
        columns = [
            *select_columns("Equal iterations"),
            *(Column(name, f"{name} [µs]", "number") for name in names),
        ]
        note = (
            "One row for consecutive iterations with equal messages; the time is that of one "
            "iteration."
        )
        table = make_table("Iterations", "Iteration by iteration", times, columns)
        sections.append(Section("Iterations", note, (table,)))
    title = "Predicted communication times of a kernel"
    banner = (
        "SIMULATED: the values were fitted on a simulator, not on hardware." if simulated else ""
    )
    write_xlsx(Report("commodel predict kernel", title, banner, tuple(sections)), path)


PARTITION_COLUMNS = ("rank", "x", "y", "width", "height")
PARTITION_SHEET = "Partition"
MAX_ROWS_ABOVE_TABLE = 40  # rows above the header of an edited partition
MAX_PARTITION_COLUMNS, MAX_PARTITION_ROWS = 60, 1 << 20  # of a sheet that is read
EDITING_NOTE = (
    "Edit x, y, width and height, and read them back with commodel partition --from. "
    "The rectangles must tile the matrix. Other columns are not read."
)


def write_partition(
    frame: pd.DataFrame, title: str, sentences: list[str], banner: str, path: Path
) -> None:
    """Write an editable partition. `frame` has a row for each rank, times in seconds."""
    scaled = frame.assign(
        **{name: 1e3 * frame[name] for name in ("seconds", "low", "high")}, idle=100 * frame["idle"]
    )
    sections = (
        Section(
            PARTITION_SHEET, EDITING_NOTE, (make_table(PARTITION_SHEET, "Rank by rank", scaled),)
        ),
        Section("Summary", "", (AnsweredQuestion(title, tuple(sentences)),)),
    )
    write_xlsx(Report("commodel partition", title, banner, sections), path)


@dataclass(frozen=True)
class EditedPartition:
    """An edited partition: PARTITION_COLUMNS in the order of the ranks, and their rows and columns
    in the workbook."""

    file: Path
    sheet: str
    columns: dict[str, list[int]]
    lines: list[int]  # row of the sheet, by rank
    letters: dict[str, str]  # letters of the sheet's column, by name

    def error(self, rank: int, message: str, column: str = "x") -> UserError:
        location = f"sheet '{self.sheet}', cell {self.letters[column]}{self.lines[rank]}"
        return UserError(message, file=self.file, key=location)


def read_partition(path: Path) -> EditedPartition:
    """Return the values of the first sheet that has the columns; a blank row ends them."""
    with open_received(path) as book:
        for sheet in book.worksheets:
            rows = enumerate(
                read_sheet_rows(sheet, MAX_PARTITION_ROWS, MAX_PARTITION_COLUMNS, path), 1
            )
            for _, cells in islice(rows, MAX_ROWS_ABOVE_TABLE):
                if set(PARTITION_COLUMNS) <= set(cells):
                    return _read_partition(path, sheet.title, cells, rows)
    raise UserError(f"found no sheet with the columns {', '.join(PARTITION_COLUMNS)}", file=path)


def _read_partition(
    path: Path, sheet: str, names: tuple, rows: Iterable[tuple[int, tuple]]
) -> EditedPartition:
    column_indices = {name: names.index(name) for name in PARTITION_COLUMNS}
    letters = {name: get_column_letter(index + 1) for name, index in column_indices.items()}
    row_of_rank: dict[int, tuple[int, dict[str, int]]] = {}
    for line, cells in rows:
        values: dict[str, Any] = {
            name: cells[index] if index < len(cells) else None
            for name, index in column_indices.items()
        }
        if all(value is None for value in values.values()):
            break
        for name, value in values.items():
            if not _is_whole_number(value):
                shown = "a formula" if isinstance(value, Formula) else show_value(value)
                key = f"sheet '{sheet}', cell {letters[name]}{line}"
                raise UserError(f"found {shown}, wanted a whole number from 0", file=path, key=key)
        rank = int(values["rank"])
        if rank in row_of_rank:
            key = f"sheet '{sheet}', cell {letters['rank']}{line}"
            raise UserError(
                f"found rank {rank} again, first in row {row_of_rank[rank][0]}", file=path, key=key
            )
        row_of_rank[rank] = line, {name: int(value) for name, value in values.items()}
    for rank in range(len(row_of_rank) or 1):
        if rank not in row_of_rank:
            message = f"found no rank {rank}, wanted a row for each from 0"
            raise UserError(message, file=path, key=f"sheet '{sheet}'")
    ordered = [row_of_rank[rank] for rank in range(len(row_of_rank))]
    columns = {name: [values[name] for _, values in ordered] for name in PARTITION_COLUMNS}
    return EditedPartition(path, sheet, columns, [line for line, _ in ordered], letters)


def _is_whole_number(value: object) -> bool:
    """Return whether a value is a whole number from 0 to 2³¹ − 1; a float such as 3.0 counts,
    because Excel writes it."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 <= value < 2**31
        and value == int(value)
    )
