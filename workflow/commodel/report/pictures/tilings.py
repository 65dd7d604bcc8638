"""The specification of a `Tiling`: rectangles in pixels with the numbers of their ranks, and what colours mean."""

from commodel.report.pictures.grids import BLACK, raw, texts
from commodel.report.pictures.look import DIM, INK, specification
from commodel.report.tiling import Tiling

SIDE, LEGEND, LINE, SWATCH = 320, 190, 20, 14  # pixels


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
        {"x": left, "x2": left + SWATCH, "y": at * LINE, "y2": at * LINE + SWATCH, "f": colour, "a": text}
        for at, (colour, text) in enumerate(content.legend)
    ]
    words = [
        {"x": left + SWATCH + 6, "y": at * LINE + SWATCH / 2, "t": text} for at, (_, text) in enumerate(content.legend)
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
    return specification(layers, SIDE + LEGEND, max(SIDE, LINE * len(swatches)))
