"""On a network of several levels probes run in every distance class, and the nodes' picture is taken."""

import numpy as np

from commodel.hierarchy import Hierarchy
from commodel.models.probes import Site, farther, probe
from tests.plan.planning import MATRIX, PLATFORM

LEVELS = {"leaf": 4, "pod": 12}
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


def test_auto_has_the_picture_where_a_platform_has_levels(planned):
    for levels, more in (("", set()), ("levels: {leaf: 8}\n", {"nodepairs"})):
        assert set(planned(MATRIX, platform=PLATFORM + levels).probes) == {"pingpong", "work"} | more
