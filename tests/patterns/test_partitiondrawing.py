"""Pictures of partitions: every rectangle with work once, where it lies, and nodes that look different."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from commodel.patterns.partitions.arrangement import by_columns
from commodel.patterns.partitions.drawing import HATCHES, SIDE, TINTS, svg
from commodel.patterns.rectangles import even
from tests.refusals import message

SVG = "{http://www.w3.org/2000/svg}"


def drawn(tiling, node, titles=None):
    return ET.fromstring(svg(tiling, np.array(node), titles or [f"rank {rank}" for rank in range(tiling.ranks)]))


def test_every_rectangle_with_work_is_drawn_once_where_it_lies():
    tiling = by_columns(np.array([5, 0, 7, 1, 3]), 16)
    picture = drawn(tiling, [0, 0, 1, 1, 2])
    shapes = [shape for shape in picture.findall(f"{SVG}rect") if shape.find(f"{SVG}title") is not None]
    area = [float(shape.get("width")) * float(shape.get("height")) * (16 / SIDE) ** 2 for shape in shapes]
    assert area == pytest.approx(tiling.area[tiling.area > 0])
    assert [shape.find(f"{SVG}title").text for shape in shapes] == ["rank 0", "rank 2", "rank 3", "rank 4"]


def test_ranks_are_numbered_and_nodes_listed():
    picture = drawn(even(8, (2, 2)), [0, 0, 7, 7])
    assert [text.text for text in picture.findall(f"{SVG}text")] == ["0", "1", "2", "3", "node 0", "node 7"]


@pytest.mark.parametrize("nodes", [16, 96])
def test_nodes_look_different(nodes):
    picture = drawn(even(96, (1, nodes)), range(nodes))
    looks = {ET.tostring(shape).split(b">", 1)[1] for shape in picture.iter(f"{SVG}pattern")}
    strokes = {pattern.find(f"{SVG}path").get("d") for pattern in picture.iter(f"{SVG}pattern")}
    assert len(looks) == nodes <= len(HATCHES) * len(TINTS)
    assert len(strokes) == 16  # that many also on a black-and-white print


def test_what_a_title_says_cannot_become_a_tag():
    picture = drawn(even(2, (1, 1)), [0], ["<script>"])
    assert not list(picture.iter(f"{SVG}script"))


def test_what_nobody_can_look_at_is_refused():
    assert "20,001 rectangles" in message(svg, even(20_001, (1, 20_001)), np.zeros(20_001), [""] * 20_001)
