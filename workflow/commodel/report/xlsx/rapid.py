"""A sheet that no text turns into markup, and that takes rows by the hundred thousand: XlsxWriter's own way, some calls
and checks a cell, spends a minute on the eight million cells of a large comparison. It stands on parts of XlsxWriter
that are not documented; tests/report/test_xlsx.py holds its cells against those of the documented way.
"""

from collections.abc import Iterable, Sequence

from xlsxwriter.format import Format
from xlsxwriter.utility import xl_col_to_name
from xlsxwriter.worksheet import Worksheet


def inert(text: str) -> str:
    """XlsxWriter copies a text that begins and ends like a formatted one into the file as it is, well formed or not."""
    return f"{text} " if text.startswith("<r>") and text.endswith("</r>") else text


class Sheet(Worksheet):
    def __init__(self) -> None:
        super().__init__()
        self.heights: dict[int, float] = {}  # points of rows that are not as high as usual

    def set_row(self, row: int, height: float | None = None, *rest: object, **more: object) -> int:
        if height is not None:
            self.heights[row] = height
        return super().set_row(row, height, *rest, **more)

    def _write_string(self, row: int, col: int, string: str, cell_format: Format | None = None) -> int:
        return super()._write_string(row, col, inert(string), cell_format)

    def opening(self, look: Format) -> str:
        """What stands before a number in a cell of `write_rows`; behind it stands `</v></c>`."""
        return f' s="{look._get_xf_index()}"><v>'

    def text(self, text: str, look: Format) -> str:
        """A cell of `write_rows` that holds no number."""
        if not text:
            return f' s="{look._get_xf_index()}"/>'
        index = self.str_table._get_shared_string_index(inert(text))
        return f' s="{look._get_xf_index()}" t="s"><v>{index}</v></c>'

    def write_rows(self, first: int, columns: Sequence[Iterable[str]], heights: Iterable[float]) -> None:
        """Cells below all others of the sheet, from its first column on; a height of 0 is the usual one. The sheet has
        been added in constant memory."""
        self._write_single_row(first)  # those that came before
        names = [f'<c r="{xl_col_to_name(place)}' for place in range(len(columns))]
        last = first
        for last, (height, *cells) in enumerate(zip(heights, *columns, strict=True), first + 1):
            number = str(last)
            about = f' ht="{height:g}" customHeight="1"' if height else ""
            row = "".join([f'{name}{number}"{cell}' for name, cell in zip(names, cells, strict=True)])
            self.row_data_fh.write(f'<row r="{number}"{about}>{row}</row>')
        self._check_dimensions(last - 1, len(columns) - 1)

    def link(self, row: int, place: int, target: str) -> None:
        """Of a cell that is, or will be, written by `write_rows`."""
        self.ignore_write_string = True
        self.write_url(row, place, target)
        self.ignore_write_string = False
