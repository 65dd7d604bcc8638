"""Topologies with regular or listed fan-outs, from a file, and random."""

import re
from functools import partial

import numpy as np

from commodel.errors import UserError
from commodel.files.cache import find_input
from commodel.patterns.arguments import SEED, Argument, Kind, count_argument, parse_whole_numbers
from commodel.patterns.trees.files import read_tree
from commodel.patterns.trees.topologies import Topology
from commodel.patterns.trees.tree import MAX_NODES, Tree, check_size, make_tree_by_levels

NUMBERS = re.compile(r"[0-9]{1,8}(,[0-9]{1,8})*")
MAX_ORDER = 24
MAX_EXTRA_CHAIN_HEIGHT = 64  # of kary:1^HEIGHT, added to the order of other trees


def _kary(fanout: int, height: int) -> Tree:
    if height > MAX_EXTRA_CHAIN_HEIGHT * (fanout == 1) + MAX_ORDER:
        raise UserError(f"found 'kary:{fanout}^{height}', wanted a tree that fits in memory")
    return make_tree_by_levels([fanout] * height)


def _chain(height: int) -> Tree:
    check_size(height + 1)
    return Tree(np.arange(-1, height))


def _binomial(order: int) -> Tree:
    """Return B_K with 2^K nodes, half of them leaves; its root has the children B_(K-1), …, B_0."""
    if order > MAX_ORDER:
        raise UserError(
            f"found 'binomial:{order}', wanted an order up to {MAX_NODES.bit_length() - 1}"
        )
    return _knomial(2, 1 << order)


def _knomial(radix: int, nodes: int) -> Tree:
    """Return the k-nomial tree: in every round each node that has the message sends it to K − 1
    more.

    The number of a parent is that of its child without the first digit to the base K. Children with
    smaller numbers have larger subtrees, so the deepest comes first.
    """
    check_size(nodes)
    node = np.arange(nodes)
    first = np.ones(nodes, dtype=int)  # the power of K of the first digit
    higher = first * radix <= node
    while higher.any():
        first[higher] *= radix
        higher = first * radix <= node
    parent = node % first
    parent[0] = -1
    return Tree(parent)


def _read_levels(text: str) -> list[np.ndarray]:
    levels = []
    for level in text.split(":"):
        if not NUMBERS.fullmatch(level):
            raise UserError(f"found '{level}' for a level")
        levels.append(np.array([int(number) for number in level.split(",")]))
    return levels


def _generic(levels: list[np.ndarray]) -> Tree:
    """Return the tree of listed fan-outs: in generic:2:8,4 the root has 2 children, which have 8
    and 4 children.

    A single number applies to every node of its level.
    """
    parents = [np.array([-1])]
    first = 0
    width = 1
    for depth, children in enumerate(levels):
        if len(children) not in (1, width) or not children.any():
            wanted = (
                f"wanted 1 number or {width}, as level {depth} has that many nodes, and not all "
                "of them 0"
            )
            raise UserError(f"found '{','.join(map(str, children))}' in a generic tree, {wanted}")
        children = np.broadcast_to(children, width)
        check_size(first + width + int(children.sum()))
        parents.append(np.repeat(np.arange(first, first + width), children))
        first = first + width
        width = int(children.sum())
    return Tree(np.concatenate(parents))


def _read_groups(text: str) -> list[list[int]]:
    groups = [parse_whole_numbers(part.strip(), "x") for part in text.split(",")]
    if any(len(numbers) > 2 for numbers in groups):
        raise UserError("a size has one TIMES")
    return groups


def _groups(groups: list[list[int]]) -> Tree:
    """Return a tree of two levels: groups:6,6,5 has three inner nodes with 6, 6 and 5 leaves; 12x7
    means 12, seven times."""
    sizes: list[int] = []
    for size, *times in groups:
        (repeats,) = times or (1,)
        check_size(size * repeats + len(sizes))
        sizes += [size] * repeats
    check_size(sum(sizes) + len(sizes) + 1)
    inner = np.arange(1, len(sizes) + 1)
    return Tree(np.concatenate([[-1], np.zeros(len(sizes), dtype=int), np.repeat(inner, sizes)]))


def _random(nodes: int, seed: int) -> Tree:
    """Return a random recursive tree: each node's parent is one of the previous nodes, all equally
    likely."""
    check_size(nodes)
    numbers = np.random.Generator(np.random.PCG64(seed))
    return Tree(np.concatenate([[-1], numbers.integers(0, np.arange(1, nodes))]))


def _from_file(path: str) -> Tree:
    return read_tree(find_input(path))


FANOUTS = Argument("AxBx…", Kind.SHAPE, partial(parse_whole_numbers, separator="x"))
CHILDREN = Argument("CHILDREN[,CHILDREN…]:…", Kind.SHAPE, _read_levels)
SIZES = Argument("SIZE[xTIMES],SIZE[xTIMES],…", Kind.SHAPE, _read_groups)
PATH = Argument("PATH", Kind.PATH, str)
RADIX = count_argument("K", Kind.RADIX, least=2)
FANOUT, HEIGHT, LEAVES, NODES, ORDER = map(
    count_argument, ("FANOUT", "HEIGHT", "LEAVES", "NODES", "ORDER")
)

TOPOLOGY = (
    Topology(
        "balanced",
        "every node of a level has the same fan-out",
        (FANOUTS,),
        build=make_tree_by_levels,
    ),
    Topology("binomial", "binomial tree of 2^ORDER nodes", (ORDER,), build=_binomial),
    Topology("chain", "every node has one child", (HEIGHT,), build=_chain),
    Topology(
        "file",
        "a tree from a file: MRNet's format, or a CSV of node,parent",
        (PATH,),
        build=_from_file,
    ),
    Topology(
        "flat",
        "all leaves directly under the root",
        (LEAVES,),
        build=lambda leaves: make_tree_by_levels([leaves]),
    ),
    Topology("generic", "children of every node, level by level", (CHILDREN,), build=_generic),
    Topology("groups", "inner nodes of the given sizes under the root", (SIZES,), build=_groups),
    Topology(
        name="kary",
        title="full tree of one fan-out",
        arguments=(FANOUT, HEIGHT),
        separators="^",
        build=_kary,
    ),
    Topology(
        name="knomial",
        title="k-nomial tree; K = 2 is the binomial one",
        arguments=(RADIX, NODES),
        separators="@",
        build=_knomial,
    ),
    Topology(
        name="random",
        title="random recursive tree",
        arguments=(NODES, SEED),
        separators="@",
        build=_random,
    ),
)
