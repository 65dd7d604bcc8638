"""Cells of the calculator's sheet: how they look, which have names, what may be typed into them, and formulas with the
values that show where nothing computes."""

import math
from collections.abc import Sequence

from xlsxwriter.utility import xl_rowcol_to_cell

from commodel.report.xlsx.calculator.terms import Term

INK, EDITABLE, CALCULATED = "#1F3A4D", "#FFF4CC", "#F3F6F8"


class Cells:
    """`writer` is the workbook's own, for its formats."""

    def __init__(self, writer, sheet):
        self.writer, self.sheet = writer, sheet
        self.names: set[str] = set()

    def heading(self, row: int, title: str, note: str = "") -> int:
        return self.writer.heading(self.sheet, row, title, note)

    def look(self, numbers: str = "", **more):
        look = {"bottom": 4, "bottom_color": "#D5DBE0"} | more
        return self.writer.form(**look, **({"num_format": numbers} if numbers else {}))

    def editable(self, numbers: str = ""):
        return self.look(numbers, bg_color=EDITABLE, locked=False, align="right")

    def head(self, row: int, titles: Sequence[str]) -> None:
        for place, title in enumerate(titles):
            side = "left" if place < 2 or place > 7 else "right"
            look = self.writer.form(bold=True, bg_color=INK, font_color="#FFFFFF", align=side)
            self.sheet.write_string(row, place, title, look)

    def name(self, name: str, row: int, column: int, value: float) -> Term:
        """A cell of this sheet by a name that differs from others not only in its case."""
        while name.lower() in self.names:
            name += "_"
        self.names.add(name.lower())
        place = xl_rowcol_to_cell(row, column, row_abs=True, col_abs=True)
        self.writer.book.define_name(f"'{self.sheet.get_name()}'!{name}", f"='{self.sheet.get_name()}'!{place}")
        return Term(name, value)

    def formula(self, row: int, column: int, formula: Term | tuple[str, object], look) -> None:
        text, value = (formula.text, formula.value) if isinstance(formula, Term) else formula
        if isinstance(value, float) and not math.isfinite(value):
            value = "#NUM!"
        self.sheet.write_formula(row, column, f"={text}", look, value)

    def whole(self, first: int, left: int, last: int, right: int, title: str, least: int, most: int) -> None:
        message = f"wanted a whole number from {least:,} to {most:,}"
        limits = {"validate": "integer", "criteria": "between", "minimum": least, "maximum": most}
        about = {"input_title": title[:32], "input_message": message, "error_title": title[:32]}
        self.sheet.data_validation(first, left, last, right, limits | about | {"error_message": message})
