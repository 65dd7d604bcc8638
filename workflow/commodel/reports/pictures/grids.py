"""Specifications of grids and tilings, and the width of their letters.

How wide words are in the letters of charts, so that a name has the room that it needs, and stands in two lines or is
cut only where there is none.

The specification of a `Grid`. Cells are placed in pixels, so that rows of a group lie close and groups apart.

The specification of a `Tiling`: rectangles in pixels with the numbers of their ranks, and what colours mean.
"""

from itertools import accumulate

from commodel.reports.pictures.specifications import DIM, INK, specification
from commodel.reports.shape import Grid, Tiling

# Of Arial and its like, in thousandths of their size.
WIDTHS = {
    **dict.fromkeys("ijl", 222),
    **dict.fromkeys(" \u00a0!,./:;\\[]ftI|", 278),
    **dict.fromkeys("()-r`{}", 333),
    **dict.fromkeys("ckszvxyJ", 500),
    **dict.fromkeys("abdeghnopqu0123456789_?#$≈–", 556),
    **dict.fromkeys("^+<=>~×", 584),
    **dict.fromkeys("ABEKPSVXY&", 667),
    **dict.fromkeys("CDHNRUw", 722),
    **dict.fromkeys("GOQ", 778),
    **dict.fromkeys("mM", 833),
    **dict.fromkeys("W%…@", 1000),
}
OTHER = 611
ROUNDING = 0.01  # pixels
HYPHENS = "-:, "  # behind which a line may end


def width(text: str, size: float) -> float:
    return sum(WIDTHS.get(letter, OTHER) for letter in text) * size / 1000


def broken(text: str) -> list[str]:
    """In two lines, the longer one as short as can be; in one, where it has no place to end a line."""
    places = [at + 1 for at, letter in enumerate(text[:-1]) if letter in HYPHENS]
    if not places:
        return [text]
    at = min(places, key=lambda place: max(width(text[:place], 1), width(text[place:], 1)))
    return [text[:at].rstrip(" "), text[at:]]


def needed(text: str, size: float, lines: int) -> float:
    return max(width(line, size) for line in (broken(text) if lines == 2 else [text]))


def fitting(text: str, room: float, size: float, lines: int = 1) -> str | list[str]:
    """In as few lines as can be, and cut where it has no room in these either."""
    if width(text, size) <= room + ROUNDING:
        return text
    if lines == 2 and len(two := broken(text)) == 2:
        return [cut(line, room, size) for line in two]
    return cut(text, room, size)


def cut(text: str, room: float, size: float) -> str:
    most = next((at for at in range(len(text), 2, -1) if width(text[:at], size) <= room + ROUNDING), 2)
    return text if most == len(text) else f"{text[: most - 1]}…"


def shared(needs: list[float], room: float) -> list[float]:
    """Widths that add up to `room`: the same for all that this is enough for, and what the others need. Where there is
    too little room all have too little."""
    if sum(needs) > room:
        return [need * room / sum(needs) for need in needs]
    widths, rest = dict(enumerate(needs)), set(range(len(needs)))
    while rest:
        even = (room - sum(widths[at] for at in widths.keys() - rest)) / len(rest)
        wider = {at for at in rest if needs[at] > even}
        if not wider:
            widths |= dict.fromkeys(rest, even)
            break
        rest -= wider
    return [widths[at] for at in range(len(needs))]


WIDTH = 590
LARGE, SMALL = 11, 10  # pixels: letters of groups, and of all else
LOWEST_ROW, HIGHEST_ROW, TALL = 15, 24, 185  # pixels: of a row, and of all rows if they can be had
GAP = 4  # between groups
HEAD = 18
TWO, LINE = 22, 10  # pixels: of a row that takes two lines, and of each of these
MARGIN = 6  # pixels beside a name
BLACK = "#111111"  # on coloured ground, in the dark as well
NUMBER = "quantitative"


def grid(content: Grid) -> dict:
    groups = max((width(group, LARGE) for group, _ in content.rows), default=0) + 10
    labels = max([width(content.side, SMALL), *(width(label, LARGE) for _, label in content.rows)]) + 8
    two, wide = columns(content, WIDTH - groups - labels)
    edges = list(accumulate(wide, initial=groups + labels))
    shown = [fitting(cell.text, wide[cell.column] - MARGIN, SMALL, 1 + (cell.text in two)) for cell in content.cells]
    high = [row_height(content)] * len(content.rows)
    for cell, text in zip(content.cells, shown, strict=True):
        if isinstance(text, list):
            high[cell.row] = max(high[cell.row], TWO)
    tops, top = [], HEAD
    for at, (group, _) in enumerate(content.rows):
        top += GAP if at and group != content.rows[at - 1][0] else 0
        tops.append(top)
        top += high[at]
    cells = [
        {
            "x": round(edges[cell.column] + 1, 1),
            "x2": round(edges[cell.column + 1] - 1, 1),
            "y": tops[cell.row] + 1,
            "y2": tops[cell.row] + high[cell.row] - 1,
            "f": cell.fill,
            "k": INK if cell.marked else cell.fill,
            "t": text,
            "a": cell.about,
            "o": 1,
            "picks": cell.picks,
        }
        for cell, text in zip(content.cells, shown, strict=True)
    ]
    named = [at for at, (group, _) in enumerate(content.rows) if (group and group != content.rows[at - 1][0]) or not at]
    words = [{"x": 0, "y": tops[at] + high[at] / 2, "t": content.rows[at][0]} for at in named]
    words += [{"x": round(groups), "y": tops[at] + high[at] / 2, "t": row[1]} for at, row in enumerate(content.rows)]
    heads = [
        {"x": round(edges[at] + wide[at] / 2, 1), "y": HEAD / 2, "t": fitting(name, wide[at], SMALL)}
        for at, name in enumerate(content.columns)
    ]
    corner = [{"x": round(groups) if groups > 10 else 0, "y": HEAD / 2, "t": content.side}]
    place = {"x": raw("x"), "y": raw("y")}
    box = place | {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
    colours = {"fill": raw("f", "nominal"), "stroke": raw("k", "nominal"), "opacity": raw("o")}
    about = {"tooltip": {"field": "a", "type": "nominal"}}
    middle = {
        "x": {"field": "m", "type": NUMBER, "scale": None, "axis": None},
        "y": {"field": "n", "type": NUMBER, "scale": None, "axis": None},
    }
    halves = [
        {"calculate": "(datum.x + datum.x2) / 2", "as": "m"},
        {"calculate": f"(datum.y + datum.y2 - (isArray(datum.t) ? {LINE} : 0)) / 2", "as": "n"},
    ]
    letter = {"type": "text", "fontSize": SMALL, "baseline": "middle"}
    layers = [
        {
            "data": {"name": "cells", "values": cells},
            "layer": [
                {"mark": {"type": "rect", "strokeWidth": 1.5, "cursor": "pointer"}, "encoding": box | colours | about},
                {
                    "transform": halves,
                    "mark": letter | {"color": BLACK, "align": "center", "interactive": False, "lineHeight": LINE},
                    "encoding": middle | {"text": raw("t", "nominal"), "opacity": raw("o")},
                },
            ],
        },
        texts(words, letter | {"color": INK, "align": "left", "fontSize": LARGE}, place),
        texts(heads, letter | {"color": INK, "align": "center"}, place),
        texts(corner, letter | {"color": DIM, "align": "left"}, place),
    ]
    return specification(layers, WIDTH, int(top) + 2)


def columns(content: Grid, room: float) -> tuple[set[str], list[float]]:
    """Which names take two lines, and how wide each column is: the longest names do, if one line each is too wide."""
    longest = sorted({cell.text for cell in content.cells}, key=lambda text: (-width(text, SMALL), text))
    for count in range(len(longest) + 1):
        two = set(longest[:count])
        needs = [width(name, SMALL) for name in content.columns]
        for cell in content.cells:
            needs[cell.column] = max(needs[cell.column], needed(cell.text, SMALL, 1 + (cell.text in two)))
        needs = [need + MARGIN for need in needs]
        if sum(needs) <= room:
            break
    return two, shared(needs, room)


def row_height(content: Grid) -> int:
    groups = len({group for group, _ in content.rows})
    room = (TALL - GAP * max(0, groups - 1)) // max(1, len(content.rows))
    return int(min(HIGHEST_ROW, max(LOWEST_ROW, room)))


def raw(field: str, kind: str = NUMBER) -> dict:
    """A value as it is: a pixel or a colour."""
    axis = {"axis": None} if field in ("x", "y") else {}
    return {"field": field, "type": kind} | ({} if field == "t" else {"scale": None} | axis)


def texts(values: list[dict], mark: dict, place: dict) -> dict:
    return {"data": {"values": values}, "mark": mark, "encoding": place | {"text": {"field": "t", "type": "nominal"}}}


SIDE, LEGEND, TILING_LINE, SWATCH = 320, 190, 20, 14  # pixels


def tiling(content: Tiling) -> dict:
    unit = SIDE / content.side
    cells, numbers = [], []
    for part in content.rectangles:
        ends = {"x": part.x, "x2": part.x + part.width, "y": part.y, "y2": part.y + part.height}
        cells.append({key: round(unit * end, 2) for key, end in ends.items()} | {"f": part.fill, "a": part.about})
        if size := part.letters(unit):
            middle = {"x": unit * (part.x + part.width / 2), "y": unit * (part.y + part.height / 2)}
            middle = {key: round(value, 2) for key, value in middle.items()}
            numbers.append(middle | {"t": part.label, "z": round(size, 1)})
    left = SIDE + 16
    swatches = [
        {"x": left, "x2": left + SWATCH, "y": at * TILING_LINE, "y2": at * TILING_LINE + SWATCH, "f": colour, "a": text}
        for at, (colour, text) in enumerate(content.legend)
    ]
    words = [
        {"x": left + SWATCH + 6, "y": at * TILING_LINE + SWATCH / 2, "t": text}
        for at, (_, text) in enumerate(content.legend)
    ]
    place = {"x": raw("x"), "y": raw("y")}
    box = place | {"x2": {"field": "x2"}, "y2": {"field": "y2"}, "fill": raw("f", "nominal")}
    about = {"tooltip": {"field": "a", "type": "nominal"}}
    letter = {"type": "text", "baseline": "middle"}
    layers = [
        {
            "data": {"values": [*cells, *swatches]},
            "mark": {"type": "rect", "stroke": DIM, "strokeWidth": 1},
            "encoding": box | about,
        },
        texts(numbers, letter | {"color": BLACK, "align": "center", "interactive": False}, place | {"size": raw("z")}),
        texts(words, letter | {"color": INK, "align": "left", "fontSize": 11}, place),
    ]
    return specification(layers, SIDE + LEGEND, max(SIDE, TILING_LINE * len(swatches)))
