"""Drawings of trees: every node once, nobody on anybody, parents over their children."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.patterns.trees.drawing import positions, svg
from commodel.patterns.trees.files import STYLES
from commodel.patterns.trees.topologies import tree
from tests.patterns.catalogue import TREES

SPECS = [*TREES, "random:60@2", "postal:2.5@70"]


@pytest.mark.parametrize("spec", SPECS)
def test_leaves_are_evenly_spread_and_parents_centred(spec):
    drawn, x = tree(spec), positions(tree(spec))
    assert sorted(x[drawn.fanout == 0]) == list(range(drawn.leaves))
    for node in np.flatnonzero(drawn.fanout):
        below = x[drawn.parent == node]
        assert np.all(np.diff(below) > 0)  # in the order of sending, no edges crossed
        assert x[node] == (below[0] + below[-1]) / 2
    assert len(set(zip(x, drawn.depth, strict=True))) == drawn.nodes


@pytest.mark.parametrize("spec", SPECS)
def test_svg_holds_every_node_and_edge(spec):
    drawing = ET.fromstring(svg(tree(spec)))
    count = {kind: len(drawing.findall(f"{{http://www.w3.org/2000/svg}}{kind}")) for kind in ("circle", "line", "text")}
    nodes = tree(spec).nodes
    assert count == {"circle": nodes, "line": nodes - 1, "text": nodes}


def test_indented_text():
    assert STYLES["text"](tree("generic:2:2,1")).splitlines() == ["0", "|- 1", "|  |- 3", "|  `- 4", "`- 2", "   `- 5"]


def test_summary():
    text = STYLES["summary"](tree("groups:3,1"))
    for line in (
        "nodes: 7",
        "leaves: 4",
        "inner nodes: 3",
        "height: 2",
        "mean fan-out: 2, largest: 3",
        "1 (x1), 2 (x1), 3",
    ):
        assert line in text


@pytest.mark.parametrize("style", [svg, STYLES["text"]])
def test_what_nobody_can_look_at_is_refused(style):
    with pytest.raises(UserError, match="wanted at most 2,000"):
        style(tree("flat:2000"))
