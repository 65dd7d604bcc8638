"""On a network of several levels probes run in every distance class, and the nodes' picture is taken."""

import numpy as np

from commodel.hierarchy import Hierarchy
from commodel.models.probes import Site, farther, probe
from tests.plan.planning import MATRIX, PLATFORM

LEVELS = {"leaf": 4, "pod": 12}
DEALT = "  - axes: {operation: bcast, algorithm: binomial, ranks: 8, layout: 'scatter:leaf', bytes: 8}"
SIZES = [1, 1024]


def classes(entry, site):
    """Of rank 0 and the others of each case, by the nodes that it runs on."""
    seen = set()
    for case in probe(entry).cases("p", site, SIZES):
        nodes = np.array(case.where or range(site.nodes))
        apart = site.levels.distance(nodes[0], nodes[1 : case.ranks] if case.layout == "block:1" else nodes)
        seen.add(site.levels.names[int(np.max(apart))])
    return seen


def test_each_class_is_probed_by_all_that_tell_them_apart():
    site = Site(24, 2, levels=Hierarchy.written(LEVELS, 24))
    for entry in ("pingpong", "prtt", "ring"):
        assert classes(entry, site) == {"node", "leaf", "pod", "beyond"}, entry
    assert classes("triplet", site) == {"leaf", "pod", "beyond"}


def test_where_there_is_one_class_nothing_is_added():
    flat = Site(24, 2)
    assert farther(flat, 1) == []
    assert len(list(probe("pingpong").cases("p", flat, SIZES))) == len(SIZES)


def test_auto_has_the_picture_of_levels_and_asks_for_them_where_none_are_named(planned):
    for levels, more in (("", "evenness"), ("levels: {leaf: 8}\n", "nodepairs")):
        assert set(planned(MATRIX, platform=PLATFORM + levels).probes) == {"pingpong", "work", "mixture", more}


def test_naming_levels_keeps_what_was_measured(planned):
    """Batches keep their names, so that only new cases are measured; a layout that asks for levels names its groups."""
    plans = [
        planned(MATRIX, platform=PLATFORM + levels) for levels in ("", "levels: {leaf: 8}\n", "levels: {leaf: 4}\n")
    ]
    assert len({tuple(batch.name for batch in plan.batches) for plan in plans}) == 1
    near, nearer = (
        [point.id for point in planned(DEALT, platform=PLATFORM + f"levels: {{leaf: {nodes}}}\n").points]
        for nodes in (8, 4)
    )
    assert not set(near) & set(nearer)
