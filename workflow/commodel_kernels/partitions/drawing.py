"""SVG pictures of partitions (`draw_partition`): rectangles with rank numbers, and a hatch for each
node that remains distinct in black and white.
"""

from html import escape

import numpy as np

from commodel.errors import UserError
from commodel_kernels.rectangles import Rectangles

SQUARE_PX, MARGIN_PX = 640, 8  # side of the divided square, and space around it
LEGEND_WIDTH_PX, LEGEND_LINE_PX = 120, 22
MAX_RECTANGLES, MAX_LEGEND_NODES = 20_000, 28
MIN_FONT_PX = 7  # smaller rank numbers are left out

# SVG paths in a cell of 10×10. 16 hatches in 6 tints distinguish 96 nodes; the fills of further
# nodes repeat.
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
NUMBER_STYLE = (
    "text-anchor:middle;paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round"
)


def draw_partition(tiling: Rectangles, node: np.ndarray, titles: list[str]) -> str:
    """Return the picture. `node` and `titles` are the node and the tooltip of every rank."""
    if tiling.ranks > MAX_RECTANGLES:
        raise UserError(
            f"found {tiling.ranks:,} rectangles, too many for a picture; wanted at most {MAX_RECTANGLES:,}"
        )
    nodes = np.unique(node)
    fill = {int(number): f"f{index % DISTINCT_FILLS}" for index, number in enumerate(nodes)}
    unit = SQUARE_PX / tiling.side  # pixels
    shapes, numbers = [], []
    for rank in np.flatnonzero(tiling.area):
        x, y, width, height = (
            float(length[rank]) * unit
            for length in (tiling.x, tiling.y, tiling.width, tiling.height)
        )
        shapes.append(
            f'<rect x="{MARGIN_PX + x:g}" y="{MARGIN_PX + y:g}" width="{width:g}" height="{height:g}" '
            f'fill="url(#{fill[int(node[rank])]})"><title>{escape(titles[rank])}</title></rect>'
        )
        font_size = min(18.0, 0.7 * height, 1.3 * width / len(str(rank)))
        if font_size >= MIN_FONT_PX:
            centre = f'x="{MARGIN_PX + x + width / 2:g}" y="{MARGIN_PX + y + height / 2:g}"'
            numbers.append(
                f'<text {centre} font-size="{font_size:.3g}" style="{NUMBER_STYLE}">{rank}</text>'
            )
    listed_nodes = nodes[:MAX_LEGEND_NODES] if len(nodes) > 1 else nodes[:0]
    legend = [
        shape
        for row, number in enumerate(listed_nodes)
        for shape in _draw_legend_row(row, int(number), fill[int(number)])
    ]
    width, height = (
        SQUARE_PX + 2 * MARGIN_PX + (LEGEND_WIDTH_PX if len(listed_nodes) else 0),
        SQUARE_PX + 2 * MARGIN_PX,
    )
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style><defs>'
    fill_patterns = [_define_fill(name) for name in dict.fromkeys(fill.values())]
    return "\n".join([head, *fill_patterns, "</defs>", *shapes, *numbers, *legend, "</svg>"])


def _define_fill(name: str) -> str:
    tint_shift, hatch = divmod(int(name[1:]), len(HATCHES))
    box = 'width="10" height="10"'
    background = (
        f'<rect {box} fill="{TINTS[(hatch + tint_shift) % len(TINTS)]}" style="stroke:none"/>'
    )
    return (
        f'<pattern id="{name}" {box} patternUnits="userSpaceOnUse">{background}<path '
        f'd="{HATCHES[hatch]}"/></pattern>'
    )


def _draw_legend_row(row: int, node: int, fill: str) -> list[str]:
    x, y = SQUARE_PX + 3 * MARGIN_PX, MARGIN_PX + row * LEGEND_LINE_PX
    box = f'<rect x="{x}" y="{y}" width="26" height="16" fill="url(#{fill})"/>'
    return [box, f'<text x="{x + 34}" y="{y + 8}" font-size="12">node {node}</text>']
