"""A tree from a file in MRNet's format: `host:0 => host:1 host:2 ;`, one parent a statement, `#` comments."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from commodel.errors import UserError
from commodel.topologies import Topology
from commodel.tree import Tree, check_size

NODE = re.compile(r"[A-Za-z0-9_.-]+:[0-9]+")
MAX_BYTES = 256 << 20


def build(text: str) -> Tree:
    path = Path(text)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UserError(f"found more than {MAX_BYTES >> 20} MiB, wanted a topology", file=path)
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the topology: {error}", file=path) from None
    parent_of: dict[str, tuple[str, int]] = {}
    seen: dict[str, int] = {}  # every name, in the order of the file
    for number, parent, children in _statements(path, lines):
        seen.setdefault(parent, number)
        for child in children:
            if child in parent_of:
                raise UserError(
                    f"'{child}' has a second parent '{parent}', the first is '{parent_of[child][0]}' on line "
                    f"{parent_of[child][1]}",
                    file=path,
                    line=number,
                )
            parent_of[child] = (parent, number)
            seen.setdefault(child, number)
    check_size(len(seen))
    return _numbered(path, parent_of, seen)


def _statements(path: Path, lines: list[str]) -> Iterator[tuple[int, str, list[str]]]:
    """(line, parent, children) of every statement; a statement ends at its ';' and may span lines."""
    words: list[str] = []
    start = 0
    for number, line in enumerate(lines, 1):
        for word in line.split("#", 1)[0].replace(";", " ; ").replace("=>", " => ").split():
            start = start if words else number
            if word != ";":
                words.append(word)
                continue
            if len(words) < 3 or words[1] != "=>":
                raise UserError(f"found '{' '.join(words)} ;', wanted 'host:N => host:N … ;'", file=path, line=start)
            for name in (words[0], *words[2:]):
                if not NODE.fullmatch(name):
                    raise UserError(f"found '{name}', wanted host:NUMBER", file=path, line=number)
            yield start, words[0], words[2:]
            words = []
    if words:
        raise UserError(f"the statement '{' '.join(words)}' has no ';'", file=path, line=start)


def _numbered(path: Path, parent_of: dict[str, tuple[str, int]], seen: dict[str, int]) -> Tree:
    """Numbers the nodes breadth first from the one root; what is then unreachable stands in a cycle."""
    roots = [name for name in seen if name not in parent_of]
    if seen and not roots:
        raise UserError(f"a cycle: every node has a parent, '{next(iter(seen))}' too", file=path, line=1)
    if len(roots) != 1:
        raise UserError(
            f"found {len(roots)} roots ({', '.join(roots[:5])}), wanted one",
            file=path,
            line=seen[roots[1]] if len(roots) > 1 else None,
        )
    children: dict[str, list[str]] = {name: [] for name in seen}
    for child, (parent, _) in parent_of.items():
        children[parent].append(child)
    order, index, parent_column = [roots[0]], 0, [-1]
    while index < len(order):
        order.extend(children[order[index]])
        parent_column.extend([index] * len(children[order[index]]))
        index += 1
    if len(order) != len(seen):
        reached = set(order)
        lost = next(name for name in seen if name not in reached)
        raise UserError(f"a cycle: '{lost}' cannot be reached from the root '{roots[0]}'", file=path, line=seen[lost])
    return Tree(np.array(parent_column), tuple(order))


TOPOLOGY = Topology(name="file", form="file:PATH", title="a tree from a file in MRNet's format", build=build)
