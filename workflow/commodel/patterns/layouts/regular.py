"""Layouts that do not depend on the platform: blocks, round robin, random, or a list of nodes."""

import re

import numpy as np

from commodel.errors import UserError
from commodel.patterns.arguments import SEED, Argument, Kind, count_argument
from commodel.patterns.layouts import Layout, PlatformDefaults
from commodel.units import MAX_COUNT, show_value

RUN = re.compile(r"([0-9]{1,8})(?:x([1-9][0-9]{0,7}))?")
Q = count_argument("Q", Kind.PER_NODE)
Runs = list[tuple[int, int]]  # (node, number of consecutive ranks on it), in the order of ranks


def _complete_spec(arguments: str, defaults: PlatformDefaults) -> str:
    """Return the argument Q, ranks per node; if it is missing, the platform's default."""
    return arguments or str(defaults.per_node)


def _place_block_cyclic(ranks: int, per_node: int, size: int) -> np.ndarray:
    if per_node % size:
        raise UserError(f"found 'block-cyclic:{per_node}x{size}', wanted Q as a multiple of B")
    return np.arange(ranks) // size % -(-ranks // per_node)


def _place_random(ranks: int, per_node: int, seed: int) -> np.ndarray:
    """Return a random layout; a seed fixes it."""
    return np.random.Generator(np.random.PCG64(seed)).permutation(np.arange(ranks) // per_node)


def _read_runs(text: str) -> Runs:
    runs = []
    for part in text.split(","):
        match = RUN.fullmatch(part.strip())
        if not match:
            raise UserError(f"found {show_value(text)}, wanted node numbers such as 0x4,2,1x3")
        runs.append((int(match[1]), int(match[2] or 1)))
    if _count_ranks(runs) > MAX_COUNT:
        raise UserError(f"wanted at most {MAX_COUNT} ranks")
    return runs


def _count_ranks(runs: Runs) -> int:
    return sum(count for _, count in runs)


def _place_runs(ranks: int, runs: Runs) -> np.ndarray:
    """Return the node of every rank: 0x4,2,1x3 puts ranks 0 to 3 on node 0, rank 4 on node 2, the
    rest on node 1."""
    placed_count = _count_ranks(runs)
    if placed_count != ranks:
        raise UserError(f"found {ranks} ranks, but 'nodes' places {placed_count}")
    nodes, counts = zip(*runs, strict=True)
    return np.repeat(nodes, counts)


def make_nodes_spec(nodes: np.ndarray) -> str:
    """Return the spec of ranks on these nodes."""
    runs = np.split(nodes, np.flatnonzero(np.diff(nodes)) + 1)
    return "nodes:" + ",".join(
        f"{run[0]}x{len(run)}" if len(run) > 1 else f"{run[0]}" for run in runs
    )


LAYOUT = (
    Layout(
        "block",  # block:2 places ranks 0 1 | 2 3 | 4 5
        "consecutive ranks share a node, Q on each",
        (Q,),
        place=lambda ranks, per_node: np.arange(ranks) // per_node,
        complete=_complete_spec,
    ),
    Layout(
        name="block-cyclic",  # block-cyclic:4x2 places 0 1 4 5 | 2 3 6 7
        title="blocks of B ranks are dealt round robin, Q ranks on each node",
        arguments=(Q, count_argument("B")),
        separators="x",
        place=_place_block_cyclic,
    ),
    Layout(
        "cyclic",  # cyclic:2 places ranks 0 3 | 1 4 | 2 5
        "ranks are dealt round robin, Q on each node",
        (Q,),
        place=lambda ranks, per_node: np.arange(ranks) % -(-ranks // per_node),
        complete=_complete_spec,
    ),
    Layout(
        "nodes",
        "list of the node of every rank",
        (Argument("NODE,NODExRANKS,…", Kind.SHAPE, _read_runs),),
        place=_place_runs,
        ranks=_count_ranks,
    ),
    Layout(
        name="random",
        title="ranks are shuffled over the nodes, Q on each",
        arguments=(Q, SEED),
        separators="@",
        place=_place_random,
    ),
)
