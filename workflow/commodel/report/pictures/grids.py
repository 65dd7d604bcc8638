"""The specification of a `Grid`. Cells are placed in pixels, so that rows of a group lie close and groups apart."""

from commodel.report.front import Grid
from commodel.report.pictures.look import DIM, INK, specification

WIDTH = 590
LETTER, SMALL = 6.2, 5.4  # width of a letter of 11 and of 10 pixels
LEAST, MOST, TALL = 15, 24, 185  # pixels: of a row, and of all rows if they can be had
GAP = 4  # between groups
HEAD = 18
TWO, LINE = 22, 10  # pixels: of a row that takes two lines, and of each of these
BLACK = "#111111"  # on coloured ground, in the dark as well
NUMBER = "quantitative"


def grid(content: Grid) -> dict:
    step = row_height(content)
    groups = max((len(group) for group, _ in content.rows), default=0) * LETTER + 8
    labels = max((len(label) for _, label in (*content.rows, ("", content.side))), default=0) * SMALL + 8
    left = groups + labels
    wide = (WIDTH - left) / max(1, len(content.columns))
    tops, top = [], HEAD
    for at, (group, _) in enumerate(content.rows):
        top += GAP if at and group != content.rows[at - 1][0] else 0
        tops.append(top)
        top += step
    cells = [
        {
            "x": round(left + cell.column * wide + 1, 1),
            "x2": round(left + (cell.column + 1) * wide - 1, 1),
            "y": tops[cell.row] + 1,
            "y2": tops[cell.row] + step - 1,
            "f": cell.fill,
            "k": INK if cell.marked else cell.fill,
            "t": fitting(cell.text, wide - 6, 2 if step >= TWO else 1),
            "a": cell.about,
            "o": 1,
            "picks": cell.picks,
        }
        for cell in content.cells
    ]
    named = [at for at, (group, _) in enumerate(content.rows) if (group and group != content.rows[at - 1][0]) or not at]
    words = [{"x": 0, "y": tops[at] + step / 2, "t": content.rows[at][0]} for at in named]
    words += [{"x": round(groups), "y": tops[at] + step / 2, "t": row[1]} for at, row in enumerate(content.rows)]
    heads = [
        {"x": round(left + (at + 0.5) * wide, 1), "y": HEAD / 2, "t": fitting(name, wide)}
        for at, name in enumerate(content.columns)
    ]
    corner = [{"x": round(groups) if groups > 8 else 0, "y": HEAD / 2, "t": content.side}]
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
        {"calculate": "(datum.y + datum.y2) / 2", "as": "n"},
    ]
    letter = {"type": "text", "fontSize": 10, "baseline": "middle"}
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
        texts(words, letter | {"color": INK, "align": "left", "fontSize": 11}, place),
        texts(heads, letter | {"color": INK, "align": "center"}, place),
        texts(corner, letter | {"color": DIM, "align": "left"}, place),
    ]
    return specification(layers, WIDTH, int(top) + 2)


def row_height(content: Grid) -> int:
    groups = len({group for group, _ in content.rows})
    room = (TALL - GAP * max(0, groups - 1)) // max(1, len(content.rows))
    return int(min(MOST, max(LEAST, room)))


def raw(field: str, kind: str = NUMBER) -> dict:
    """A value as it is: a pixel or a colour."""
    axis = {"axis": None} if field in ("x", "y") else {}
    return {"field": field, "type": kind} | ({} if field == "t" else {"scale": None} | axis)


def texts(values: list[dict], mark: dict, place: dict) -> dict:
    return {"data": {"values": values}, "mark": mark, "encoding": place | {"text": {"field": "t", "type": "nominal"}}}


def fitting(text: str, room: float, lines: int = 1) -> str | list[str]:
    """What of it has room; a second line begins behind a hyphen."""
    most = max(2, int(room / SMALL))
    first, hyphen, rest = text.partition("-")
    if len(text) > most and lines == 2 and hyphen and len(first) < most:
        return [f"{first}-", fitting(rest, room)]
    return text if len(text) <= most else f"{text[: most - 1]}…"
