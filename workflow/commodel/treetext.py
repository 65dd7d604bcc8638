"""A tree as text: a summary, MRNet's file format, a parent array, a Graphviz drawing."""

from collections.abc import Callable

import numpy as np

from commodel.tree import Tree


def summary(tree: Tree) -> str:
    fanouts, counts = np.unique(tree.fanout[tree.fanout > 0], return_counts=True)
    spread = ", ".join(f"{fanout} (x{count})" for fanout, count in zip(fanouts, counts, strict=True))
    return f"nodes: {tree.nodes}\nleaves: {tree.leaves}\nheight: {tree.height}\nfan-outs: {spread}"


def mrnet(tree: Tree) -> str:
    """One line a parent. A tree without names gets one host a node."""
    names = _names(tree)
    children = _children(tree)
    return "\n".join(
        f"{names[parent]} => {' '.join(names[child] for child in found)} ;"
        for parent, found in enumerate(children)
        if found
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


def _names(tree: Tree) -> tuple[str, ...]:
    return tree.names or tuple(f"node{node}:0" for node in range(tree.nodes))


def _children(tree: Tree) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in range(tree.nodes)]
    for node, parent in enumerate(tree.parent[1:], 1):
        children[parent].append(node)
    return children


STYLES: dict[str, Callable[[Tree], str]] = {"summary": summary, "mrnet": mrnet, "csv": parents, "dot": dot}
