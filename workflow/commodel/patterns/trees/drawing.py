"""Pictures of trees (`svg`): self-contained, leaves at equal distances, every parent centred over its children."""

from collections.abc import Iterable, Mapping
from html import escape

import numpy as np

from commodel.patterns.trees.files import check_drawable, list_children
from commodel.patterns.trees.tree import Tree

ACROSS, DOWN, RADIUS, MARGIN, LETTER = 28, 64, 9, 20, 6  # pixels
LEAF = ' class="leaf"'
STYLE = (
    "line{stroke:#888}circle{fill:#fff;stroke:#1f77b4;stroke-width:1.5}circle.leaf{fill:#cfe3f3}"
    "line.answering{stroke:#b3560b;stroke-width:4}text.about{font-size:11px;text-anchor:start}"
    "text{font:9px sans-serif;text-anchor:middle;dominant-baseline:central}"
)


def draw_tree(tree: Tree, answering: Mapping[int, str] | None = None, about: str = "") -> str:
    """Return the picture of a tree.

    `answering` are nodes whose line to the parent is highlighted, with a text for each; `about` is the caption.
    """
    check_drawable(tree)
    x = MARGIN + ACROSS * compute_positions(tree)
    y = MARGIN + DOWN * tree.depth
    width, height = x.max() + MARGIN, y.max() + MARGIN
    labels = tree.names or [str(node) for node in range(tree.nodes)]
    lines = [
        _draw_line(f'x1="{x[parent]:g}" y1="{y[parent]}" x2="{x[node]:g}" y2="{y[node]}"', (answering or {}).get(node))
        for node, parent in enumerate(tree.parent)
        if parent >= 0
    ]
    circles = [
        f'<circle{"" if tree.fanout[node] else LEAF} cx="{x[node]:g}" cy="{y[node]}" r="{RADIUS}">'
        f"<title>{escape(labels[node])}</title></circle>"
        for node in range(tree.nodes)
    ]
    # Names from a file are too long for a circle and are shown as tooltips.
    texts = [] if tree.names else [f'<text x="{x[n]:g}" y="{y[n]}">{labels[n]}</text>' for n in range(tree.nodes)]
    if about:
        texts.append(f'<text class="about" x="{MARGIN}" y="{height:g}">{escape(about)}</text>')
        width, height = max(width, MARGIN + LETTER * len(about)), height + MARGIN
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style>'
    return "\n".join([head, *lines, *circles, *texts, "</svg>"])


def _draw_line(ends: str, words: str | None) -> str:
    if words is None:
        return f"<line {ends}/>"
    return f'<line class="answering" {ends}><title>{escape(words)}</title></line>'


def compute_positions(tree: Tree) -> np.ndarray:
    """Return the horizontal position of every node: leaves 0, 1, 2, … from the left, a parent midway between its first
    and last child."""
    children = list_children(tree)
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


def list_walks(tree: Tree, ends: Iterable[int]) -> list[list[int]]:
    """Return for each connected part of the highlighted lines its nodes in the order of a walk, each line in both
    directions."""
    highlighted = set(ends)
    children = [[child for child in own if child in highlighted] for own in list_children(tree)]
    walked = []
    for top in (node for node in range(tree.nodes) if children[node] and node not in highlighted):
        walk, stack = [top], [(top, iter(children[top]))]
        while stack:
            if (child := next(stack[-1][1], None)) is not None:
                stack.append((child, iter(children[child])))
            else:
                stack.pop()
            walk += [stack[-1][0]] if stack else []
        walked.append(walk)
    return walked
