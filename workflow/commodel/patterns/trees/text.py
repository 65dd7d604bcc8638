"""A tree as text: a summary, MRNet's file format, a parent array, a Graphviz drawing, an indented one."""

from collections.abc import Callable

import numpy as np

from commodel.errors import UserError
from commodel.patterns.trees.tree import Tree

MOST_DRAWN = 2000  # nodes; more than that nobody can look at
MOST_FANOUTS = 12


def summary(tree: Tree) -> str:
    inner = tree.fanout[tree.fanout > 0]
    lines = [
        f"nodes: {tree.nodes}",
        f"leaves: {tree.leaves}",
        f"inner nodes: {len(inner)}, the root among them",
        f"height: {tree.height}",
    ]
    if len(inner):
        fanouts, counts = np.unique(inner, return_counts=True)
        shown = [f"{fanout} (x{count})" for fanout, count in zip(fanouts, counts, strict=True)]
        more = len(shown) - MOST_FANOUTS
        spread = ", ".join([*shown[:MOST_FANOUTS], *([f"{more} more"] if more > 0 else [])])
        lines += [f"mean fan-out: {inner.mean():.3g}, largest: {inner.max()}", f"fan-outs: {spread}"]
    return "\n".join(lines)


def mrnet(tree: Tree) -> str:
    """One line a parent. A tree without names gets one host a node."""
    names = _names(tree)
    children = children_of(tree)
    return "\n".join(
        f"{names[parent]} => {' '.join(names[child] for child in own)} ;" for parent, own in enumerate(children) if own
    )


def parents(tree: Tree) -> str:
    """node,parent; the root has none."""
    return "\n".join(
        ["node,parent", *(f"{node},{parent if parent >= 0 else ''}" for node, parent in enumerate(tree.parent))]
    )


def dot(tree: Tree) -> str:
    names = _names(tree)
    nodes = [f'  n{node} [label="{names[node] if tree.names else node}"];' for node in range(tree.nodes)]
    edges = [f"  n{parent} -> n{node};" for node, parent in enumerate(tree.parent) if parent >= 0]
    return "\n".join(["digraph tree {", "  node [shape=circle];", *nodes, *edges, "}"])


def indented(tree: Tree) -> str:
    """One line a node, below its parent, as directories are shown."""
    check_drawable(tree)
    names, children = tree.names or range(tree.nodes), children_of(tree)
    lines, waiting = [], [(0, "", "")]
    while waiting:
        node, before, below = waiting.pop()
        lines.append(f"{before}{names[node]}")
        for child in reversed(children[node]):
            last = child == children[node][-1]
            waiting.append((child, below + ("`- " if last else "|- "), below + ("   " if last else "|  ")))
    return "\n".join(lines)


def check_drawable(tree: Tree) -> None:
    if tree.nodes > MOST_DRAWN:
        raise UserError(f"found {tree.nodes:,} nodes, wanted at most {MOST_DRAWN:,} to draw; try --format summary")


def _names(tree: Tree) -> tuple[str, ...]:
    return tree.names or tuple(f"node{node}:0" for node in range(tree.nodes))


def children_of(tree: Tree) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in range(tree.nodes)]
    for node, parent in enumerate(tree.parent[1:], 1):
        children[parent].append(node)
    return children


STYLES: dict[str, Callable[[Tree], str]] = {
    "summary": summary,
    "text": indented,
    "mrnet": mrnet,
    "csv": parents,
    "dot": dot,
}
