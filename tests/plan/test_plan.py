"""What a matrix comes down to: the MPI library beside every group of alternatives, layouts as alternatives."""

import shutil
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.measure.starts import starts_of
from commodel.models.families import given as values_given
from commodel.patterns.build import schedule
from commodel.patterns.operations import OPERATIONS
from commodel.patterns.points import Setting, library_beside, make_point
from commodel.patterns.trees.topologies import tree
from commodel.plan.make import make_plan
from commodel.platforms.tools import ROOT
from commodel.price.predict import predict
from commodel.records import LIBRARY
from tests.patterns.catalogue import TREES

PLATFORM = "title: some nodes\nlauncher: slurm\nnodes: 32\ncores: 16\n"
SIMULATED = "launcher: simgrid\nnodes: 64\ncores: 1\nsimgrid: {file: loggp-64.xml}\n"
SETTING = Setting("big", 32, 16)
HOCKNEY = values_given("hockney", ["alpha=10us", "beta=2ns"])


@pytest.fixture
def planned(tmp_path):
    """planned(matrix): the plan of an experiment with this matrix, and what else is given."""

    def plan(matrix, more="", platform=PLATFORM):
        for folder in ("platforms", "experiments"):
            (tmp_path / "params" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "params/platforms/big.yaml").write_text(platform)
        shutil.copy(ROOT / "tests/workflow/loggp-64.xml", tmp_path / "params/platforms")
        text = f"platform: big\nfamilies: [hockney]\n{more}\nmatrix:\n{matrix}\n"
        (tmp_path / "params/experiments/e.yaml").write_text(text)
        return make_plan("e", tmp_path)

    return plan


def alternatives(points):
    """The points of each group."""
    ordered = sorted(points, key=lambda point: point.group)
    return {group: list(members) for group, members in groupby(ordered, key=lambda point: point.group)}


MATRIX = """
  - axes: {operation: bcast, algorithm: [linear, binomial], layout: ["block:2", "cyclic:2", "block:4"], ranks: [7, 8], bytes: [8, 1KiB]}
  - axes: {operation: reduce, topology: ["flat:8", "kary:2^3", "flat:5"], layout: ["block:1", "cyclic:1", "block:2"], bytes: 8}
  - axes: {operation: barrier, algorithm: dissemination, ranks: 9}
"""  # noqa: E501


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
    found = alternatives(point for point in points if point.operation == "bcast")
    layouts = {group: {point.layout for point in members} for group, members in found.items()}
    assert layouts["big bcast 8 ranks 8 B 4 nodes"] == {"block:2", "cyclic:2"}
    assert layouts["big bcast 8 ranks 8 B 2 nodes"] == {"block:4"}
    assert len(found["big bcast 7 ranks 1024 B 4 nodes"]) == 4


def test_trees_are_alternatives_whatever_nodes_they_need(planned):
    points = planned(MATRIX).points
    found = alternatives(point for point in points if point.operation == "reduce")
    assert {group.removeprefix("big reduce ") for group in found} == {
        "8 leaves 8 B 1 a node",
        "8 leaves 8 B 2 a node",
        "5 leaves 8 B 1 a node",
        "5 leaves 8 B 2 a node",
    }
    members = found["big reduce 8 leaves 8 B 1 a node"]
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
    st.sampled_from(list(OPERATIONS)),
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
    assert [found.point for found in priced] == [point for point in plan.points if point.priced]
    own = next(point for point in plan.points if not point.priced)
    with pytest.raises(UserError, match="measured, not priced"):
        predict(HOCKNEY, [own])
    with pytest.raises(UserError, match="the MPI library's own"):
        schedule(own)


def test_time_is_asked_for_the_library_too(planned):
    assert sum(batch.seconds for batch in planned(MATRIX).batches) > sum(
        batch.seconds for batch in planned(MATRIX, "library: false").batches
    )


SIZES = "bytes: {from: 1KiB, to: 64MiB, factor: 2}"
LARGE = f"""
  - axes: {{operation: bcast, algorithm: [linear, binomial], ranks: [8, 16, 32], layout: "block:1", {SIZES}}}
"""


def split(planned, batch):
    plan = planned(LARGE, f"measure: {{min_samples: 200, seconds: 1 min}}\nbatch: {batch}")
    return [batch for batch in plan.batches if batch.points]


def test_batches_that_do_not_fit_the_budget_are_split_and_partition_the_points(planned):
    whole, parts = split(planned, "{}"), split(planned, "{budget: 12 min}")
    assert [batch.nodes for batch in whole] == [8, 16, 32]
    assert len(parts) > 3
    for nodes in (8, 16, 32):
        mine = [batch for batch in parts if batch.nodes == nodes]
        together = [point for batch in mine for point in batch.points]
        (full,) = (batch for batch in whole if batch.nodes == nodes)
        assert sorted(point.id for point in together) == sorted(full.ids)
        assert len(together) == len({point.id for point in together})
    homes = {}
    for batch in parts:
        for point in batch.points:
            assert homes.setdefault(point.group, batch.name) == batch.name
        groups = {point.group for point in batch.points}
        assert len(groups) == 1 or 6 * 60 + batch.most <= 12 * 60
        assert batch.minutes <= 12
    assert len({batch.name for batch in parts}) == len(parts)
    assert split(planned, "{budget: 12 min}") == parts


def test_simulated_points_share_a_batch_up_to_the_next_power_of_two(planned):
    matrix = "  - axes: {operation: bcast, algorithm: linear, ranks: [2, 3, 4, 5, 8, 9], bytes: 8}"
    real, simulated = (
        [{point.nodes for point in batch.points} for batch in planned(matrix, "", platform).batches if batch.points]
        for platform in (PLATFORM, SIMULATED)
    )
    assert real == [{2}, {3}, {4}, {5}, {8}, {9}]
    assert simulated == [{2}, {3, 4}, {5, 8}, {9}]


def test_points_of_fewer_nodes_may_share_the_largest_allocation(planned):
    (only,) = split(planned, "{smaller: true}")
    assert only.nodes == 32
    assert {point.nodes for point in only.points} == {8, 16, 32}
    parts = split(planned, "{smaller: true, budget: 12 min}")
    nodes = [point.nodes for batch in parts for point in batch.points]
    assert nodes == sorted(nodes, reverse=True)
    assert all(batch.nodes == max(point.nodes for point in batch.points) for batch in parts)


@pytest.mark.parametrize(("budget", "minutes"), [("8 h", 10), ("2 min", 2), ("90 s", 1)])
def test_a_batch_asks_for_no_more_than_its_budget(planned, budget, minutes):
    plan = planned(MATRIX, f"batch: {{budget: {budget}}}")
    assert {batch.minutes for batch in plan.batches} == {minutes}


def test_a_time_limit_leaves_room_for_a_slow_and_noisy_machine(planned):
    """Where every case may need all the samples that it may have, and none samples for longer than its minute."""
    few, many = (planned(LARGE, f"measure: {{seconds: 1 min, max_samples: {most}}}").batches for most in (30, 1000000))
    for calm, noisy in zip(few, many, strict=True):
        assert calm.seconds == noisy.seconds
        assert 3 * (calm.seconds - 2) <= calm.most <= noisy.most
        assert noisy.minutes >= 10 + len(noisy.points)


def test_a_budget_is_at_least_a_minute_and_a_timeout_makes_no_other_samples(planned):
    with pytest.raises(UserError, match=r"e\.yaml:3: batch\.budget: found 30 s, wanted at least 1 min"):
        planned(MATRIX, "batch: {budget: 30 s}")
    names = [{batch.name for batch in planned(MATRIX, more).batches} for more in ("", "measure: {timeout: 5 min}")]
    assert names[0] == names[1]
