"""Barriers: signals up and down a tree, to rank 0 and back, or by dissemination (Hensgen, Finkel
and Manber 1988)."""

import numpy as np

from commodel.patterns.algorithms import Algorithm, TreeAlgorithm
from commodel.patterns.arguments import Kind, count_argument
from commodel.patterns.phases import (
    broadcast_unsplit,
    join_stages,
    make_dissemination_rounds,
    make_knomial_tree,
    make_phase,
    send_down_tree,
    send_up_tree,
)
from commodel.patterns.schedule import Schedule
from commodel.patterns.trees.tree import Tree


def binomial(ranks: int, bytes: int) -> Schedule:
    """Return signals up a binomial tree to rank 0 and down again, as in Open MPI's `tree`."""
    down = broadcast_unsplit(make_knomial_tree(ranks), 0)
    return join_stages(ranks, down.reverse(), down)


def dissemination(ranks: int, bytes: int) -> Schedule:
    """Return dissemination: in round s every rank signals the rank 2^s further on, around the
    ring."""
    return join_stages(ranks, make_dissemination_rounds(ranks))


def linear(ranks: int, bytes: int) -> Schedule:
    """Return the n:1 and 1:n of the LoP paper, one after the other."""
    leaves = np.arange(1, ranks)
    return join_stages(ranks, make_phase(0, leaves, 0, 0), make_phase(0, 0, leaves, 0))


def n_way(ranks: int, bytes: int, signals: int) -> Schedule:
    """Return the n-way dissemination of the LoP paper.

    In a round, every rank signals N others, at distances d, 2d, … N·d around the ring; d is N + 1
    times as large in the next round.
    """
    rounds = []
    distance = 1
    while distance < ranks:
        distances = distance * np.arange(1, min(signals, (ranks - 1) // distance) + 1)
        source = np.repeat(np.arange(ranks), len(distances))
        rounds.append(make_phase(0, source, (source + np.tile(distances, ranks)) % ranks, 0))
        distance *= signals + 1
    return join_stages(ranks, *rounds)


def over_topology(tree: Tree, bytes: int) -> Schedule:
    return join_stages(tree.nodes, send_up_tree(tree, 0), send_down_tree(tree, 0))


ALGORITHM = (
    Algorithm(
        operation="barrier",
        short_name="binomial",
        title="signals up a binomial tree and down again",
        build=binomial,
    ),
    Algorithm(
        operation="barrier",
        short_name="dissemination",
        title="round s: signal the rank 2^s further on",
        build=dissemination,
    ),
    Algorithm(
        operation="barrier",
        short_name="linear",
        title="signals of all ranks to rank 0, then from rank 0 to all",
        build=linear,
    ),
    Algorithm(
        operation="barrier",
        short_name="n-way",
        title="dissemination, N signals a round",
        build=n_way,
        argument=count_argument("N", Kind.RADIX, default=2),
    ),
    TreeAlgorithm(
        operation="barrier", title="signals go up to the root and down again", build=over_topology
    ),
)
