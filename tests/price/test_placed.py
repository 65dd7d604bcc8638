"""Prices on networks of several levels: a row says where its ranks are farther apart than those of any probe."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.hierarchy import Hierarchy
from commodel.patterns.build import Shape
from commodel.price.prediction_intervals import fit_bands
from commodel.price.predictions import predict
from commodel.price.predictions import price as price_shapes
from tests.models.synthetic import fitted_set
from tests.patterns.catalogue import point
from tests.price.offs import known

APART = "ranks in different leaf groups"
LEVELS = Hierarchy.written({"leaf": 4}, 24)


def on_leaves(name, *probed):
    parameters = fitted_set(name)
    levels = {"levels": LEVELS.settings, "probed": list(probed)}
    return replace(parameters, settings={**parameters.settings, **levels})


@pytest.mark.parametrize(
    ("name", "probed", "ranks", "status"),
    [
        ("loggp", ["leaf"], 4, "ok"),
        ("loggp", ["leaf"], 5, f"not probed: {APART}"),
        (
            "loggp",
            ["leaf", "beyond"],
            5,
            "blind to placement: ranks in different leaf groups are priced as nearer ones",
        ),
        ("loggp", ["beyond"], 4, "not probed: ranks in different nodes"),
        ("shares", ["leaf", "beyond"], 5, "ok"),
        ("shares", ["leaf"], 5, f"not probed: {APART}"),
    ],
)
def test_a_row_says_what_of_its_placement_was_not_probed(name, probed, ranks, status):
    prices = predict(on_leaves(name, *probed), [point("bcast", "linear", ranks=ranks, bytes=64)])
    assert [price.status for price in prices] == [status]


def test_the_levels_of_a_set_say_how_far_a_point_reaches_that_has_no_platform():
    """Four ranks sit on one leaf, where 45 groups were measured, and five do not."""
    bands = fit_bands(known(np.linspace(0, 1, 45), ranks=4.0, size=64.0, nodes=4.0, reach="node/leaf"))
    parameters = replace(on_leaves("loggp", "leaf"), errors=bands)
    points = [point("bcast", "linear", ranks=ranks, bytes=64) for ranks in (4, 5)]
    said = [price.interval for price in predict(parameters, points)]
    assert said[0].endswith("45 groups of bcast")
    assert said[1] == "parameters only: nothing measured beyond one leaf"
    shapes = [Shape.of(one_size, (64,)) for one_size in points]
    assert [columns["interval"][0] for columns in price_shapes(shapes, {"s": parameters})] == said


def test_rounds_that_repeat_are_doubted_as_if_written_out():
    ring = point("allreduce", "ring", ranks=9, bytes=9000)
    assert predict(on_leaves("loggp", "leaf"), [ring])[0].status == f"not probed: {APART}"


def test_without_levels_nothing_is_said_of_placement():
    prices = predict(fitted_set("loggp"), [point("bcast", "linear", ranks=9, bytes=64)])
    assert prices[0].status == "ok"


@pytest.mark.parametrize("ranks", [1, 2, 4, 5, 16, 24])
def test_classes_of_all_pairs_are_those_of_a_slow_loop(ranks):
    node = np.arange(ranks) // 2
    slow = {int(LEVELS.distance(one, two)) for i, one in enumerate(node) for two in node[:i]}
    assert set(LEVELS.classes(node)) == slow
    assert set(LEVELS.apart(node, *np.triu_indices(ranks, 1))) == slow
