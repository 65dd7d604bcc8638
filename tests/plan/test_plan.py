"""What a matrix comes down to: the MPI library beside every group of alternatives, layouts as alternatives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.measure.starts import starts_of
from commodel.models.parameter_sets import set_given
from commodel.patterns.build import schedule
from commodel.patterns.operations import operations
from commodel.patterns.points import Setting, library_beside, make_point
from commodel.patterns.trees.topologies import tree
from commodel.plan.planning import files_of
from commodel.predictions.predictions import predict
from commodel.records import LIBRARY
from tests.patterns.catalogue import TREES
from tests.plan.planning import MATRIX, alternatives

SETTING = Setting("big", 32, 16)
HOCKNEY = set_given("hockney", ["alpha=10us", "beta=2ns"])


def test_every_group_and_layout_gets_the_library_once(planned):
    plan = planned(MATRIX)
    bare = planned(MATRIX, "library: false")
    assert not [point for point in bare.points if not point.priced]
    assert [point for point in plan.points if point.priced] == bare.points
    assert len({point.id for point in plan.points}) == len(plan.points)
    asked = alternatives(bare.points)
    for group, members in alternatives(plan.points).items():
        own = [point for point in members if not point.priced]
        assert sorted(point.layout for point in own) == sorted({point.layout for point in asked[group]})
        assert {(point.leaves, point.bytes, point.room) for point in members} == {
            (own[0].leaves, own[0].bytes, own[0].room)
        }


def test_layouts_of_the_same_ranks_on_as_many_nodes_are_alternatives(planned):
    points = planned(MATRIX, "library: false").points
    groups = alternatives(point for point in points if point.operation == "bcast")
    layouts = {group: {point.layout for point in members} for group, members in groups.items()}
    assert layouts["big bcast 8 ranks 8 B 4 nodes"] == {"block:2", "cyclic:2"}
    assert layouts["big bcast 8 ranks 8 B 2 nodes"] == {"block:4"}
    assert len(groups["big bcast 7 ranks 1024 B 4 nodes"]) == 4


def test_trees_are_alternatives_whatever_nodes_they_need(planned):
    points = planned(MATRIX).points
    groups = alternatives(point for point in points if point.operation == "reduce")
    assert {group.removeprefix("big reduce ") for group in groups} == {
        "8 leaves 8 B 1 a node",
        "8 leaves 8 B 2 a node",
        "5 leaves 8 B 1 a node",
        "5 leaves 8 B 2 a node",
    }
    members = groups["big reduce 8 leaves 8 B 1 a node"]
    assert {point.choice for point in members} == {"flat:8", "kary:2^3", LIBRARY}
    assert {point.nodes for point in members if point.topology} == {9, 15}
    assert {(point.ranks, point.nodes) for point in members if not point.priced} == {(9, 9)}


def test_trees_are_alternatives_where_as_many_ranks_share_a_node(planned, tmp_path, monkeypatch):
    """However the layout spells it; the library beside them, which needs fewer ranks, too."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ranks.txt").write_text("".join(f"{node // 2}\n" for node in range(9)))
    layouts = ["block:2", "cyclic:2", "random:2@7", "block-cyclic:2x2", "kinds:2core@1,0@1,1core+1accelerator@30"]
    tree = "operation: reduce, topology: 'flat:8', bytes: 8"
    points = planned(f"\n  - axes: {{{tree}, layout: {[*layouts, 'file:ranks.txt']}}}").points
    assert {point.group for point in points} == {"big reduce 8 leaves 8 B 2 a node"}
    assert {point.layout for point in points if not point.priced} == {*layouts, "file:ranks.txt"}
    other = "kinds:1core@1,3core@9"  # the library's nine ranks, and any number, share the room of the tree's fifteen
    points = planned(f"\n  - axes: {{{tree.replace('flat:8', 'kary:2^3')}, layout: ['{other}', 'block:3']}}").points
    assert {point.group for point in points} == {"big reduce 8 leaves 8 B 3 a node"}


@pytest.mark.parametrize("spec", TREES)
@pytest.mark.parametrize("per_node", [1, 2, 5])
def test_in_place_of_a_tree_the_library_needs_no_inner_nodes(spec, per_node):
    point = make_point(SETTING, {"operation": "reduce", "topology": spec, "bytes": 8, "layout": f"block:{per_node}"})
    (own,) = library_beside(SETTING, [point])
    assert own.ranks == tree(spec).leaves + 1 <= point.ranks
    assert own.group == point.group
    assert own.nodes == -(-own.ranks // per_node)


@given(
    st.sampled_from([name for name, entry in operations().items() if entry.mpi]),
    st.integers(2, 60),
    st.integers(1, 16),
    st.sampled_from(["block", "cyclic"]),
)
def test_beside_the_library_stands_the_library_itself(operation, ranks, per_node, layout):
    """A user who writes it down gets no second one."""
    choice = {
        "operation": operation,
        "algorithm": LIBRARY,
        "ranks": ranks,
        "bytes": 8,
        "layout": f"{layout}:{per_node}",
    }
    setting = Setting("big", 100, 16)
    point = make_point(setting, choice)
    assert list(library_beside(setting, [point])) == [point]


def test_a_user_may_ask_for_the_library_alone(planned):
    matrix = '\n  - axes: {operation: bcast, algorithm: [linear, library], ranks: 8, layout: "block:2", bytes: 8}'
    with_default, without = planned(matrix), planned(matrix, "library: false")
    assert [point.choice for point in with_default.points] == [point.choice for point in without.points]
    assert [point.choice for point in without.points] == ["linear", LIBRARY]


def test_a_tree_s_library_is_not_that_of_as_many_ranks(planned):
    """Nine ranks broadcast, and eight leaves with their front end: one program, two points of two groups."""
    plan = planned(
        "\n  - axes: {operation: bcast, algorithm: linear, ranks: 9, layout: 'block:1', bytes: 8}"
        "\n  - axes: {operation: bcast, topology: 'flat:8', layout: 'block:1', bytes: 8}"
    )
    own = [point for point in plan.points if not point.priced]
    assert len({point.id for point in own}) == len({point.group for point in own}) == 2


def test_library_must_be_true_or_false(planned):
    with pytest.raises(UserError, match=r"e\.yaml:3: library: found 'maybe', wanted true or false"):
        planned(MATRIX, "library: maybe")


def test_the_library_is_measured_by_its_own_program_and_never_priced(planned, tmp_path):
    plan = planned(MATRIX)
    started = {}
    for batch in plan.batches:
        for start in starts_of(batch, tmp_path):
            for row in start.rows:
                started[row["id"]] = start.program, start.ranks, start.layout
    for point in plan.points:
        assert started[point.id] == ("player" if point.priced else "library", point.ranks, point.layout)
    priced = predict(HOCKNEY, plan.points, strict=False)
    assert [price.point for price in priced] == [point for point in plan.points if point.priced]
    own = next(point for point in plan.points if not point.priced)
    with pytest.raises(UserError, match="measured, not priced"):
        predict(HOCKNEY, [own])
    with pytest.raises(UserError, match="the MPI library's own"):
        schedule(own)


def test_time_is_asked_for_the_library_too(planned):
    assert sum(batch.seconds for batch in planned(MATRIX).batches) > sum(
        batch.seconds for batch in planned(MATRIX, "library: false").batches
    )


def test_files_of_speeds_are_kept_and_read_before_anything_is_measured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good = "simulated: true\nkernels:\n  gemm:\n    kinds:\n      node/1: [[4, 5]]\n"
    (tmp_path / "good.yaml").write_text(good)
    (tmp_path / "zero.yaml").write_text(good.replace("[4, 5]", "[4, 0]"))
    (file,) = files_of([], speeds=["good.yaml"]).values()
    assert (file.kind, file.bytes) == ("speeds", len(good))
    with pytest.raises(UserError, match=r"zero\.yaml:5: .*found a speed of 0, wanted more than 0"):
        files_of([], speeds=["zero.yaml"])
    with pytest.raises(UserError, match=r"none\.yaml: cannot be read"):
        files_of([], speeds=["none.yaml"])
