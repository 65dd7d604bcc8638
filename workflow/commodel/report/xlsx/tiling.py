"""A tiling of the workbook: native shapes with the numbers of their ranks, and what colours mean beside them."""

from commodel.report.tiling import Tiling

SIDE, LEFT, LINE, ROW = 360, 6, 22, 20  # pixels
WIDE, SWATCH = 230, 16
LETTERS = 0.75  # points of a pixel
EDGE = {"color": "#5C656C", "width": 0.75}
MIDDLE = {"vertical": "middle", "horizontal": "center"}


def write(book, sheet, row: int, tiling: Tiling) -> int:
    """Below its title and note. Returns the next free row."""
    row = book.heading(sheet, row, tiling.title, tiling.note)
    unit = SIDE / tiling.side
    for place, rectangle in enumerate(tiling.rectangles):
        left, right = (round(unit * end) for end in (rectangle.x, rectangle.x + rectangle.width))
        top, bottom = (round(unit * end) for end in (rectangle.y, rectangle.y + rectangle.height))
        size = rectangle.letters(unit)
        sheet.insert_textbox(
            row,
            0,
            rectangle.label if size else "",
            _look(LEFT + left, 4 + top, right - left, bottom - top)
            | {
                "fill": {"color": rectangle.fill},
                "line": EDGE,
                "align": MIDDLE,
                "font": {"size": max(6, round(LETTERS * size)), "color": "#111111"},
                "description": (tiling.alt if place == 0 else rectangle.about)[:250],
            },
        )
    for at, (colour, text) in enumerate(tiling.legend):
        place, top = LEFT + SIDE + 16, 4 + LINE * at
        swatch = _look(place, top, SWATCH, SWATCH) | {"fill": {"color": colour}, "line": EDGE, "decorative": True}
        sheet.insert_textbox(row, 0, "", swatch)
        words = _look(place + SWATCH + 4, top - 3, WIDE, LINE) | {"fill": {"none": True}, "line": {"none": True}}
        font = {"size": 9, "color": "#1F3A4D"}
        sheet.insert_textbox(row, 0, text, words | {"align": {"vertical": "middle"}, "font": font})
    return row + max(SIDE, LINE * len(tiling.legend)) // ROW + 2


def _look(x: int, y: int, width: int, height: int) -> dict:
    return {"x_offset": x, "y_offset": y, "width": max(1, width), "height": max(1, height), "object_position": 3}
