"""Where the tables of a workbook and their rows have come to stand, for links to them."""

from dataclasses import dataclass, field

from xlsxwriter.utility import quote_sheetname, xl_range, xl_rowcol_to_cell

from commodel.report.front import Behind
from commodel.report.shape import Report, Section, Table
from commodel.report.xlsx import beyond

MAX_ROWS, HEAD = 1_048_576, 8  # rows of a sheet, and above a table at most


@dataclass(frozen=True, slots=True)
class Place:
    sheet: str
    row: int  # of the first of the rows
    rows: range
    table: Table


@dataclass
class Places:
    sheets: dict[str, str] = field(default_factory=dict)  # by section
    tables: dict[str, Place] = field(default_factory=dict)  # by name; of several sheets the first
    rows: dict[tuple, dict[tuple, tuple[int, int]]] = field(default_factory=dict)

    def sheet(self, section: str) -> str:
        """A link to the sheet of a section; empty where there is none."""
        return cell(self.sheets[section], 0, 0) if section in self.sheets else ""

    def behind(self, behind: Behind | None) -> str:
        """A link to the rows that a number comes from, or to one cell of the first of them."""
        if behind is None or (place := self.tables.get(behind.table)) is None:
            return ""
        keys = [column.key for column in place.table.columns]
        if not {key for key, _ in behind.where} <= set(keys):
            return ""
        first, last = self._rows(place, behind).get(tuple(value for _, value in behind.where), (-1, -1))
        if first not in place.rows:
            return ""
        down = place.row - place.rows.start
        if behind.column in keys:
            return cell(place.sheet, down + first, keys.index(behind.column))
        area = xl_range(down + first, 0, down + min(last, place.rows[-1]), len(keys) - 1)
        return f"internal:{quote_sheetname(place.sheet)}!{area}"

    def _rows(self, place: Place, behind: Behind) -> dict[tuple, tuple[int, int]]:
        """Of all values of these columns: the first row that has them, and the last of those right below it."""
        names = tuple(key for key, _ in behind.where)
        if (behind.table, names) not in self.rows:
            rows: dict[tuple, tuple[int, int]] = {}
            for at, values in enumerate(zip(*(place.table.column(key) for key in names), strict=True)):
                first, last = rows.get(values, (at, at - 1))
                rows[values] = first, at if last == at - 1 else last
            self.rows[behind.table, names] = rows
        return self.rows[behind.table, names]


def cell(sheet: str, row: int, column: int) -> str:
    return f"internal:{quote_sheetname(sheet)}!{xl_rowcol_to_cell(row, column)}"


def rows_of(report: Report, section: Section) -> dict[object, str]:
    """Links to the first row of each id, of a section that is one table and not yet written."""
    table, first = section.tables[0], 3 + bool(report.banner) + bool(section.note)
    shown = None if len(table.rows) <= MAX_ROWS - HEAD else beyond.ROWS_SHOWN
    rows: dict[object, int] = {}
    for at, point in enumerate(table.column("id")[:shown], first):
        rows.setdefault(point, at)
    return {point: cell(section.name, at, 0) for point, at in rows.items() if point}
