"""SVG pictures of partitions (`draw_partition`): rectangles with rank numbers, and a hatch for each node that remains
distinct in black and white.
"""

from html import escape

import numpy as np

from commodel.errors import UserError
from commodel.patterns.rectangles import Rectangles

SIDE, MARGIN = 640, 8  # pixels
LEGEND, LINE = 120, 22
MAX_RECTANGLES, NODES_LISTED = 20_000, 28  # rectangles of a picture, nodes of its legend
MIN_FONT_SIZE = 7  # pixels of a legible number

# Strokes in a cell of 10×10. Hatches distinguish 16 nodes, with tints 96; more nodes repeat the fills.
HATCHES = (
    "",
    "M0,10L10,0",
    "M0,0L10,10",
    "M0,5H10",
    "M5,0V10",
    "M0,5H10M5,0V10",
    "M0,10L10,0M0,0L10,10",
    "M0,2.5H10M0,7.5H10",
    "M2.5,0V10M7.5,0V10",
    "M4,5H6M5,4V6",
    "M0,10L10,0M0,5L5,0M5,10L10,5",
    "M0,0L10,10M5,0L10,5M0,5L5,10",
    "M1,5A4,4 0 1 0 9,5A4,4 0 1 0 1,5",
    "M0,2.5L5,7.5L10,2.5",
    "M5,1L9,9H1Z",
    "M0,5H5V0M5,10V5H10",
)
TINTS = ("#ffffff", "#dceaf7", "#f8e3cf", "#dff0d8", "#cccccc", "#f3d9e6")
DISTINCT_FILLS = len(HATCHES) * len(TINTS)
STYLE = "rect{stroke:#000}path{fill:none;stroke:#444}text{font-family:sans-serif;dominant-baseline:central}"
NUMBER_STYLE = "text-anchor:middle;paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round"


def draw_partition(tiling: Rectangles, node: np.ndarray, titles: list[str]) -> str:
    """Return the picture. `node` and `titles` are the node and the tooltip of every rank."""
    if tiling.ranks > MAX_RECTANGLES:
        raise UserError(f"found {tiling.ranks:,} rectangles, too many for a picture; wanted at most {MAX_RECTANGLES:,}")
    nodes = np.unique(node)
    fill = {int(number): f"f{index % DISTINCT_FILLS}" for index, number in enumerate(nodes)}
    cell = SIDE / tiling.side
    shapes, numbers = [], []
    for rank in np.flatnonzero(tiling.area):
        x, y, width, height = (
            float(length[rank]) * cell for length in (tiling.x, tiling.y, tiling.width, tiling.height)
        )
        shapes.append(
            f'<rect x="{MARGIN + x:g}" y="{MARGIN + y:g}" width="{width:g}" height="{height:g}" '
            f'fill="url(#{fill[int(node[rank])]})"><title>{escape(titles[rank])}</title></rect>'
        )
        font_size = min(18.0, 0.7 * height, 1.3 * width / len(str(rank)))
        if font_size >= MIN_FONT_SIZE:
            centre = f'x="{MARGIN + x + width / 2:g}" y="{MARGIN + y + height / 2:g}"'
            numbers.append(f'<text {centre} font-size="{font_size:.3g}" style="{NUMBER_STYLE}">{rank}</text>')
    listed_nodes = nodes[:NODES_LISTED] if len(nodes) > 1 else []
    lines = [
        line
        for row, number in enumerate(listed_nodes)
        for line in _draw_legend_row(row, int(number), fill[int(number)])
    ]
    width, height = SIDE + 2 * MARGIN + (LEGEND if len(listed_nodes) else 0), SIDE + 2 * MARGIN
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style><defs>'
    patterns = [_define_fill(name) for name in dict.fromkeys(fill.values())]
    return "\n".join([head, *patterns, "</defs>", *shapes, *numbers, *lines, "</svg>"])


def _define_fill(name: str) -> str:
    tint_shift, hatch = divmod(int(name[1:]), len(HATCHES))
    box = 'width="10" height="10"'
    background = f'<rect {box} fill="{TINTS[(hatch + tint_shift) % len(TINTS)]}" style="stroke:none"/>'
    return (
        f'<pattern id="{name}" {box} patternUnits="userSpaceOnUse">{background}<path d="{HATCHES[hatch]}"/></pattern>'
    )


def _draw_legend_row(row: int, node: int, fill: str) -> list[str]:
    x, y = SIDE + 3 * MARGIN, MARGIN + row * LINE
    box = f'<rect x="{x}" y="{y}" width="26" height="16" fill="url(#{fill})"/>'
    return [box, f'<text x="{x + 34}" y="{y + 8}" font-size="12">node {node}</text>']
