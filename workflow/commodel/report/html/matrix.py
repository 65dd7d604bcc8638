"""A matrix of the page: a drawing of coloured cells, with its numbers in them where there is room, else on hovering."""

from html import escape

from commodel.report.matrix import Matrix, digits
from commodel.report.values import finite

SIDE = 480  # of the drawing without labels
LEAST_SIDE, MOST_SIDE = 2.0, 44.0  # of a cell
ROOMY = 22.0  # a cell with a number in it
LABELLED_WIDTH = 11.0  # a cell that a label fits beside
LETTER = 6.4  # of a label


def matrix_html(matrix: Matrix) -> str:
    count = len(matrix.labels)
    side = min(max(SIDE / max(count, 1), LEAST_SIDE), MOST_SIDE)
    margin = 14 + LETTER * max(map(len, matrix.labels), default=0) if side >= LABELLED_WIDTH else 14
    size = margin + side * count
    parts = [
        _block(matrix, row, place, margin, side)
        for row, values in enumerate(matrix.expected)
        for place, value in enumerate(values)
        if finite(value)
    ]
    parts += [
        _cell(matrix, row, place, margin, side)
        for row, values in enumerate(matrix.values)
        for place, value in enumerate(values)
        if finite(value)
    ]
    if side >= LABELLED_WIDTH:
        parts += [_labels(matrix, place, margin, side) for place in range(count)]
    for border in matrix.borders:
        at = margin + side * border
        parts.append(f'<path class="border" d="M{margin:.1f} {at:.1f}H{size:.1f}M{at:.1f} {margin:.1f}V{size:.1f}"/>')
    whole = f'width="{side * count:.1f}" height="{side * count:.1f}"'
    ground = f'<rect class="ground" x="{margin:.1f}" y="{margin:.1f}" {whole}/>'
    note = f"<small>{escape(matrix.note)}</small>" if matrix.note else ""
    return (
        f'<figure class="matrix"><figcaption>{escape(matrix.title)}{note}</figcaption>'
        f'<svg role="img" aria-label="{escape(matrix.alt)}" viewBox="0 0 {size + 2:.0f} {size + 2:.0f}" '
        f'style="max-width:{size + 2:.0f}px">{ground}{"".join(parts)}</svg>{_legend(matrix)}</figure>\n'
    )


def _block(matrix: Matrix, row: int, place: int, margin: float, side: float) -> str:
    """What is between two groups."""
    (left, right), (top, bottom) = matrix.blocks[place], matrix.blocks[row]
    box = f'width="{side * (right - left):.2f}" height="{side * (bottom - top):.2f}"'
    colour = matrix.colour(matrix.expected[row][place], pale=True)
    return f'<rect x="{margin + side * left:.1f}" y="{margin + side * top:.1f}" {box} fill="{colour}"/>'


def _cell(matrix: Matrix, row: int, place: int, margin: float, side: float) -> str:
    value = matrix.values[row][place]
    x, y = margin + side * place, margin + side * row
    hover = f"{matrix.labels[row]} – {matrix.labels[place]}: {digits(value)} {matrix.unit}"
    text = ""
    if side >= ROOMY:
        small = min(11.0, 1.6 * side / max(len(digits(value)), 1))
        text = (
            f'<text x="{x + side / 2:.1f}" y="{y + side / 2 + small / 3:.1f}" font-size="{small:.1f}">'
            f"{digits(value)}</text>"
        )
    box = f'<rect x="{x:.1f}" y="{y:.1f}" width="{side:.2f}" height="{side:.2f}" fill="{matrix.colour(value)}">'
    return f"<g>{box}<title>{escape(hover)}</title></rect>{text}</g>"


def _labels(matrix: Matrix, place: int, margin: float, side: float) -> str:
    middle, look = margin + side * (place + 0.5), ' class="odd"' if place in matrix.marks else ""
    name = escape(matrix.labels[place])
    return (
        f'<text{look} x="{margin - 4:.1f}" y="{middle + 3.5:.1f}" text-anchor="end">{name}</text>'
        f'<text{look} transform="translate({middle + 3.5:.1f} {margin - 4:.1f}) rotate(-90)">{name}</text>'
    )


def _legend(matrix: Matrix) -> str:
    low, high = matrix.ends
    steps = [low * (high / low) ** (step / 8) for step in range(9)]
    colours = ",".join(matrix.colour(value) for value in steps)
    return (
        f'<div class="scale"><span>{digits(low)}</span><i style="background:linear-gradient(90deg,{colours})"></i>'
        f"<span>{digits(high)} {escape(matrix.unit)}</span></div>"
    )
