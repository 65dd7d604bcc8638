"""SVG pictures of trees (`draw_tree`): leaves at equal distances, every parent centred over its
children."""

from collections.abc import Iterable, Mapping
from html import escape

import numpy as np

from commodel.patterns.trees.files import check_drawable, list_children
from commodel.patterns.trees.tree import Tree

LEAF_DISTANCE = 28
LEVEL_DISTANCE = 64
RADIUS = 9
MARGIN = 20
LETTER_WIDTH = 6  # pixels
LEAF = ' class="leaf"'
STYLE = (
    "line{stroke:#888}circle{fill:#fff;stroke:#1f77b4;stroke-width:1.5}circle.leaf{fill:#cfe3f3}"
    "line.answering{stroke:#b3560b;stroke-width:4}text.about{font-size:11px;text-anchor:start}"
    "text{font:9px sans-serif;text-anchor:middle;dominant-baseline:central}"
)


def draw_tree(tree: Tree, highlighted: Mapping[int, str] | None = None, caption: str = "") -> str:
    """Return the picture of a tree.

    `highlighted` are nodes whose line to the parent is highlighted, with a tooltip for each.
    """
    check_drawable(tree)
    x = MARGIN + LEAF_DISTANCE * compute_positions(tree)
    y = MARGIN + LEVEL_DISTANCE * tree.depth
    width, height = x.max() + MARGIN, y.max() + MARGIN
    labels = tree.names or [str(node) for node in range(tree.nodes)]
    lines = [
        _draw_line(
            f'x1="{x[parent]:g}" y1="{y[parent]}" x2="{x[node]:g}" y2="{y[node]}"',
            (highlighted or {}).get(node),
        )
        for node, parent in enumerate(tree.parent)
        if parent >= 0
    ]
    circles = [
        f'<circle{"" if tree.fanout[node] else LEAF} cx="{x[node]:g}" cy="{y[node]}" r="{RADIUS}">'
        f"<title>{escape(labels[node])}</title></circle>"
        for node in range(tree.nodes)
    ]
    # Names from a file are too long for a circle and are shown as tooltips.
    texts = (
        []
        if tree.names
        else [f'<text x="{x[n]:g}" y="{y[n]}">{labels[n]}</text>' for n in range(tree.nodes)]
    )
    if caption:
        texts.append(f'<text class="about" x="{MARGIN}" y="{height:g}">{escape(caption)}</text>')
        width = max(width, MARGIN + LETTER_WIDTH * len(caption))
        height = height + MARGIN
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style>'
    return "\n".join([head, *lines, *circles, *texts, "</svg>"])


def _draw_line(ends: str, tooltip: str | None) -> str:
    if tooltip is None:
        return f"<line {ends}/>"
    return f'<line class="answering" {ends}><title>{escape(tooltip)}</title></line>'


def compute_positions(tree: Tree) -> np.ndarray:
    """Return the horizontal position of every node: leaves 0, 1, 2, … from the left, a parent
    midway between its first and last child."""
    children = list_children(tree)
    x = np.zeros(tree.nodes)
    leaves = 0
    stack = [0]
    while stack:
        node = stack.pop()
        stack += reversed(children[node])
        if not children[node]:
            x[node] = leaves
            leaves += 1
    for node in range(tree.nodes - 1, -1, -1):  # children come after their parents
        if children[node]:
            x[node] = (x[children[node][0]] + x[children[node][-1]]) / 2
    return x


def list_walks(tree: Tree, ends: Iterable[int]) -> list[list[int]]:
    """Return the nodes of a walk over each connected part of the highlighted lines, each line in
    both directions.

    `ends` are the lower nodes of the highlighted lines.
    """
    highlighted = set(ends)
    children = []
    for all_children in list_children(tree):
        children.append([child for child in all_children if child in highlighted])
    walks = []
    for top in (node for node in range(tree.nodes) if children[node] and node not in highlighted):
        walk = [top]
        stack = [(top, iter(children[top]))]
        while stack:
            child = next(stack[-1][1], None)
            if child is not None:
                stack.append((child, iter(children[child])))
            else:
                stack.pop()
            walk += [stack[-1][0]] if stack else []
        walks.append(walk)
    return walks
