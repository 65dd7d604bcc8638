"""A matrix of the workbook: coloured cells with their numbers, groups parted by rules."""

from commodel.report.matrix import Matrix
from commodel.report.values import finite, number_format

LABEL, CELL = 12, 6.5  # characters of a column


def widths(matrices: list[Matrix]) -> list[float]:
    """Of all columns that these take, one below the other."""
    most = max((len(matrix.labels) for matrix in matrices), default=0)
    longest = max((len(label) for matrix in matrices for label in matrix.labels), default=0)
    return [max(LABEL, longest + 2)] + [CELL] * most


def write(book, sheet, row: int, matrix: Matrix) -> int:
    """Below its title and note. Returns the next free row."""
    row = book.heading(sheet, row, f"{matrix.title} [{matrix.unit}]", matrix.note)
    borders = set(matrix.borders)
    head = {"bold": True, "font_size": 9}
    for place, label in enumerate(matrix.labels):
        tone = {"font_color": "#8A3B00"} if place in matrix.marks else {}
        sheet.write_string(row, place + 1, label, book.form(**head, **tone, rotation=90, align="center"))
        sheet.write_string(row + 1 + place, 0, label, book.form(**head, **tone, align="right"))
    block = [number for number, (first, end) in enumerate(matrix.blocks) for _ in range(first, end)]
    for at, values in enumerate(matrix.values):
        for place, value in enumerate(values):
            edges = {"left": 2} if place in borders else {}
            edges |= {"top": 2} if at in borders else {}
            expected = matrix.expected[block[at]][block[place]] if matrix.expected else value
            colour = matrix.colour(value) if finite(value) else matrix.colour(expected, pale=True)
            look = {"font_size": 9, "align": "center", "bg_color": colour, **edges}
            if finite(value):
                form = book.form(**look, num_format=number_format("number", value))
                sheet.write_number(row + 1 + at, place + 1, value, form)
            else:
                sheet.write_blank(row + 1 + at, place + 1, None, book.form(**look))
    return row + len(matrix.labels) + 2
