"""Trees in files and as text (`read_tree`, `STYLES`).

A file is in MRNet's format, with one statement `host:0 => host:1 host:2 ;` per parent and `#`
comments. Or it is a CSV `node,parent` with a line for each node, in any order, and an empty parent
for the root: the output of `commodel show topology --format csv`.
"""

import re
from collections.abc import Callable, Iterator

import numpy as np

from commodel.errors import UserError
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import MIB, read_lines
from commodel.patterns.trees.tree import Tree, check_size

NODE = re.compile(r"[A-Za-z0-9_.-]+:[0-9]+")
LABEL = re.compile(r"[A-Za-z0-9_.:-]{1,300}")
HEADER = ["node", "parent"]
MAX_BYTES = 256 * MIB


class Nodes:
    """The nodes of a file in order with their lines, and the parent of each child with the line
    that names it."""

    def __init__(self, path: AnyPath) -> None:
        self.path = path
        self.lines: dict[str, int] = {}
        self.parent_of: dict[str, tuple[str, int]] = {}

    def add_edge(self, child: str, parent: str, line: int) -> None:
        if child in self.parent_of:
            first, first_line = self.parent_of[child]
            message = (
                f"'{child}' has a second parent '{parent}', the first is '{first}' on line "
                f"{first_line}"
            )
            raise UserError(message, file=self.path, line=line)
        self.parent_of[child] = (parent, line)


def read_tree(path: AnyPath) -> Tree:
    lines = [line for _, line in read_lines(path, MAX_BYTES, "a topology")]
    is_csv = bool(lines) and _split_cells(lines[0]) == HEADER
    nodes = _read_csv(path, lines) if is_csv else _read_mrnet(path, lines)
    check_size(len(nodes.lines))
    return _make_tree_in_order(nodes) or _make_breadth_first_tree(nodes)


def _read_csv(path: AnyPath, lines: list[str]) -> Nodes:
    """Return the nodes of a CSV, sorted if all names are integers, else in the order of the
    file."""
    rows: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(lines[1:], 2):
        cells = _split_cells(line)
        if cells == [""]:
            continue
        if (
            len(cells) != 2
            or not LABEL.fullmatch(cells[0])
            or not (LABEL.fullmatch(cells[1]) or not cells[1])
        ):
            raise UserError(
                f"found '{line}', wanted NODE,PARENT; the root's parent is empty",
                file=path,
                line=number,
            )
        node, parent = cells
        if node in rows:
            raise UserError(
                f"found '{node}' again, first on line {rows[node][1]}", file=path, line=number
            )
        rows[node] = (parent, number)
    if all(node.isdigit() for node in rows):
        rows = dict(sorted(rows.items(), key=lambda row: int(row[0])))
    nodes = Nodes(path)
    for node, (parent, number) in rows.items():
        if parent and parent not in rows:
            raise UserError(
                f"found the parent '{parent}', which has no line of its own", file=path, line=number
            )
        nodes.lines[node] = number
        if parent:
            nodes.add_edge(node, parent, number)
    return nodes


def _split_cells(line: str) -> list[str]:
    return [cell.strip().strip('"') for cell in line.split(",")]


def _read_mrnet(path: AnyPath, lines: list[str]) -> Nodes:
    nodes = Nodes(path)
    for number, parent, children in _read_statements(path, lines):
        nodes.lines.setdefault(parent, number)
        for child in children:
            nodes.add_edge(child, parent, number)
            nodes.lines.setdefault(child, number)
    return nodes


def _read_statements(path: AnyPath, lines: list[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Yield line, parent and children of every statement. A statement ends with ';' and may span
    lines."""
    words: list[str] = []
    start = 0
    for number, line in enumerate(lines, 1):
        for word in line.split("#", 1)[0].replace(";", " ; ").replace("=>", " => ").split():
            start = start if words else number
            if word != ";":
                words.append(word)
                continue
            if len(words) < 3 or words[1] != "=>":
                raise UserError(
                    f"found '{' '.join(words)} ;', wanted 'host:N => host:N … ;'",
                    file=path,
                    line=start,
                )
            for name in (words[0], *words[2:]):
                if not NODE.fullmatch(name):
                    raise UserError(f"found '{name}', wanted host:NUMBER", file=path, line=number)
            yield start, words[0], words[2:]
            words = []
    if words:
        raise UserError(f"the statement '{' '.join(words)}' has no ';'", file=path, line=start)


def _make_tree_in_order(nodes: Nodes) -> Tree | None:
    """Return a tree with the file's numbers, and thus ranks, if parents come before children; else
    None."""
    if list(nodes.lines) != [str(number) for number in range(len(nodes.lines))]:
        return None
    parent = np.array(
        [int(nodes.parent_of.get(name, ("-1", 0))[0]) for name in nodes.lines], dtype=int
    )
    in_order = np.array_equal(parent < 0, np.arange(len(parent)) == 0) and np.all(
        parent < np.arange(len(parent))
    )
    return Tree(parent) if len(parent) and in_order else None


def _make_breadth_first_tree(nodes: Nodes) -> Tree:
    """Return a tree numbered breadth first from the root; unreachable nodes are in a cycle."""
    path = nodes.path
    lines = nodes.lines
    parent_of = nodes.parent_of
    roots = [name for name in lines if name not in parent_of]
    if lines and not roots:
        raise UserError(
            f"a cycle: every node has a parent, '{next(iter(lines))}' too", file=path, line=1
        )
    if len(roots) != 1:
        raise UserError(
            f"found {len(roots)} roots ({', '.join(roots[:5])}), wanted one",
            file=path,
            line=lines[roots[1]] if len(roots) > 1 else None,
        )
    children: dict[str, list[str]] = {name: [] for name in lines}
    for child, (parent, _) in parent_of.items():
        children[parent].append(child)
    order = [roots[0]]
    index = 0
    parent_column = [-1]
    while index < len(order):
        order.extend(children[order[index]])
        parent_column.extend([index] * len(children[order[index]]))
        index += 1
    if len(order) != len(lines):
        reached = set(order)
        name = next(name for name in lines if name not in reached)
        raise UserError(
            f"a cycle: '{name}' cannot be reached from the root '{roots[0]}'",
            file=path,
            line=lines[name],
        )
    return Tree(np.array(parent_column), tuple(order))


MAX_DRAWN = 2000  # nodes of a readable picture
MAX_FANOUTS = 12


def format_summary(tree: Tree) -> str:
    inner_fanouts = tree.fanout[tree.fanout > 0]
    lines = [
        f"nodes: {tree.nodes}",
        f"leaves: {tree.leaves}",
        f"inner nodes: {len(inner_fanouts)}, including the root",
        f"height: {tree.height}",
    ]
    if len(inner_fanouts):
        fanouts, counts = np.unique(inner_fanouts, return_counts=True)
        shown = [f"{fanout} (x{count})" for fanout, count in zip(fanouts, counts, strict=True)]
        hidden = len(shown) - MAX_FANOUTS
        fanout_list = ", ".join([*shown[:MAX_FANOUTS], *([f"{hidden} more"] if hidden > 0 else [])])
        lines += [
            f"mean fan-out: {inner_fanouts.mean():.3g}, largest: {inner_fanouts.max()}",
            f"fan-outs: {fanout_list}",
        ]
    return "\n".join(lines)


def format_mrnet(tree: Tree) -> str:
    """Return MRNet's format, one line per parent. A tree without names gets one host for each
    node."""
    names = _name_nodes(tree)
    lines = []
    for parent, children in enumerate(list_children(tree)):
        if children:
            child_names = " ".join(names[child] for child in children)
            lines.append(f"{names[parent]} => {child_names} ;")
    return "\n".join(lines)


def format_csv(tree: Tree) -> str:
    """Return a CSV of node,parent; the root has no parent."""
    return "\n".join(
        [
            "node,parent",
            *(f"{node},{parent if parent >= 0 else ''}" for node, parent in enumerate(tree.parent)),
        ]
    )


def format_dot(tree: Tree) -> str:
    names = _name_nodes(tree)
    nodes = [
        f'  n{node} [label="{names[node] if tree.names else node}"];' for node in range(tree.nodes)
    ]
    edges = [f"  n{parent} -> n{node};" for node, parent in enumerate(tree.parent) if parent >= 0]
    return "\n".join(["digraph tree {", "  node [shape=circle];", *nodes, *edges, "}"])


def format_text(tree: Tree) -> str:
    """Return one line per node, indented below its parent, like a directory listing."""
    check_drawable(tree)
    names = tree.names or range(tree.nodes)
    children = list_children(tree)
    lines = []
    stack = [(0, "", "")]
    while stack:
        node, prefix, child_prefix = stack.pop()
        lines.append(f"{prefix}{names[node]}")
        for child in reversed(children[node]):
            is_last = child == children[node][-1]
            stack.append(
                (
                    child,
                    child_prefix + ("`- " if is_last else "|- "),
                    child_prefix + ("   " if is_last else "|  "),
                )
            )
    return "\n".join(lines)


def check_drawable(tree: Tree) -> None:
    if tree.nodes > MAX_DRAWN:
        raise UserError(
            f"found {tree.nodes:,} nodes, wanted at most {MAX_DRAWN:,} to draw; try --format summary"
        )


def _name_nodes(tree: Tree) -> tuple[str, ...]:
    return tree.names or tuple(f"node{node}:0" for node in range(tree.nodes))


def list_children(tree: Tree) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in range(tree.nodes)]
    for node, parent in enumerate(tree.parent[1:], 1):
        children[parent].append(node)
    return children


STYLES: dict[str, Callable[[Tree], str]] = {
    "summary": format_summary,
    "text": format_text,
    "mrnet": format_mrnet,
    "csv": format_csv,
    "dot": format_dot,
}
