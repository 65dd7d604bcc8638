"""The ways to do a job that advice looks at: all with the leaves asked for, each once, each one that can be built."""

import pytest

from commodel.advice.alternatives import algorithms, balanced, trees, two_levels
from commodel.patterns.algorithms import choices
from commodel.patterns.build import schedule
from commodel.patterns.operations import operations
from commodel.patterns.trees.topologies import tree
from tests.patterns.catalogue import point


@pytest.mark.parametrize(("leaves", "count"), [(2, 0), (12, 7), (128, 63), (97, 0)])
def test_ordered_factorizations(leaves, count):
    """2^7 splits in 2^6 ways, itself among them; 12 in eight."""
    assert len(list(balanced(leaves))) == count


@pytest.mark.parametrize("leaves", [1, 2, 3, 16, 30, 97, 128])
def test_every_tree_has_the_leaves_and_stands_once(leaves):
    specs = trees(leaves, [1.0, 3.7])
    assert all(tree(spec).leaves == leaves for spec in specs)
    assert len({tree(spec).parent.tobytes() for spec in specs}) == len(specs)
    assert f"flat:{leaves}" in specs


def test_two_levels_are_as_even_as_can_be():
    for spec in two_levels(128):
        sizes = sorted(tree(spec).fanout[1:])
        inner = [size for size in sizes if size]
        assert max(inner) - min(inner) == 1
    assert "groups:12x7,11x4" in list(two_levels(128))
    assert list(two_levels(7)) == ["groups:4x1,3x1", "groups:3x1,2x2"]  # up to half as many inner nodes as leaves


def test_the_trees_of_the_tan_paper_are_among_them():
    fanouts = {tuple(sorted(tree(spec).fanout)) for spec in trees(32)}
    for spec in ("groups:6,6,5,5,5,5", "binomial:6", "kary:2^5", "flat:32"):
        assert tuple(sorted(tree(spec).fanout)) in fanouts


@pytest.mark.parametrize("operation", operations())
def test_every_algorithm_is_tried_with_arguments_that_work(operation):
    specs = algorithms(operation, 12, 100_000, [5])
    assert {spec.partition(":")[0] for spec in specs} == set(choices(operation))
    assert len(set(specs)) == len(specs)
    for spec in specs:
        schedule(point(operation, spec, ranks=12, bytes=100_000))


def test_a_segment_as_long_as_the_message_is_no_choice():
    assert algorithms("bcast", 8, 256, []).count("chain:256B") == 0
    assert "chain:256B" in algorithms("bcast", 8, 257, [])
    assert "windowed:5" in algorithms("gather", 12, 8, [5])
