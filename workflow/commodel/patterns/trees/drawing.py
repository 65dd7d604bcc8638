"""A tree as a picture: self-contained SVG, leaves evenly spread, every parent centred over its children."""

from collections.abc import Iterable, Mapping
from html import escape

import numpy as np

from commodel.patterns.trees.files import check_drawable, children_of
from commodel.patterns.trees.tree import Tree

ACROSS, DOWN, RADIUS, MARGIN, LETTER = 28, 64, 9, 20, 6  # pixels
LEAF = ' class="leaf"'
STYLE = (
    "line{stroke:#888}circle{fill:#fff;stroke:#1f77b4;stroke-width:1.5}circle.leaf{fill:#cfe3f3}"
    "line.answering{stroke:#b3560b;stroke-width:4}text.about{font-size:11px;text-anchor:start}"
    "text{font:9px sans-serif;text-anchor:middle;dominant-baseline:central}"
)


def svg(tree: Tree, answering: Mapping[int, str] | None = None, about: str = "") -> str:
    """`answering` are nodes whose line to their parent stands out, each with what is said of it; `about` what that
    means."""
    check_drawable(tree)
    x = MARGIN + ACROSS * positions(tree)
    y = MARGIN + DOWN * tree.depth
    width, height = x.max() + MARGIN, y.max() + MARGIN
    labels = tree.names or [str(node) for node in range(tree.nodes)]
    lines = [
        _line(f'x1="{x[parent]:g}" y1="{y[parent]}" x2="{x[node]:g}" y2="{y[node]}"', (answering or {}).get(node))
        for node, parent in enumerate(tree.parent)
        if parent >= 0
    ]
    circles = [
        f'<circle{"" if tree.fanout[node] else LEAF} cx="{x[node]:g}" cy="{y[node]}" r="{RADIUS}">'
        f"<title>{escape(labels[node])}</title></circle>"
        for node in range(tree.nodes)
    ]
    # Names of a file are too long for a circle: they show when pointed at.
    texts = [] if tree.names else [f'<text x="{x[n]:g}" y="{y[n]}">{labels[n]}</text>' for n in range(tree.nodes)]
    if about:
        texts.append(f'<text class="about" x="{MARGIN}" y="{height:g}">{escape(about)}</text>')
        width, height = max(width, MARGIN + LETTER * len(about)), height + MARGIN
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style>'
    return "\n".join([head, *lines, *circles, *texts, "</svg>"])


def _line(ends: str, words: str | None) -> str:
    if words is None:
        return f"<line {ends}/>"
    return f'<line class="answering" {ends}><title>{escape(words)}</title></line>'


def positions(tree: Tree) -> np.ndarray:
    """How far right every node stands: leaves 0, 1, 2, … as one comes to them from the left, a parent midway between
    its first and its last child."""
    children = children_of(tree)
    x, leaves, waiting = np.zeros(tree.nodes), 0, [0]
    while waiting:
        node = waiting.pop()
        waiting += reversed(children[node])
        if not children[node]:
            x[node] = leaves
            leaves += 1
    for node in range(tree.nodes - 1, -1, -1):  # children come after their parents
        if children[node]:
            x[node] = (x[children[node][0]] + x[children[node][-1]]) / 2
    return x


def walks(tree: Tree, ends: Iterable[int]) -> list[list[int]]:
    """Nodes in the order of a walk along the lines from these nodes to their parents, each line there and back; a walk
    for each part that hangs together."""
    kept = set(ends)
    children = [[child for child in own if child in kept] for own in children_of(tree)]
    walked = []
    for top in (node for node in range(tree.nodes) if children[node] and node not in kept):
        walk, left = [top], [(top, iter(children[top]))]
        while left:
            if (child := next(left[-1][1], None)) is not None:
                left.append((child, iter(children[child])))
            else:
                left.pop()
            walk += [left[-1][0]] if left else []
        walked.append(walk)
    return walked
