"""Plans of a matrix: points and the library defaults of their workloads, probes of each distance
class, and batches."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.hierarchy import Hierarchy
from commodel.measure.program_starts import list_starts
from commodel.models.parameter_sets import make_given_set
from commodel.models.probes import Site, find_nodes_in_other_classes, find_probe
from commodel.patterns.build import build_schedule
from commodel.patterns.operations import list_operations
from commodel.patterns.points import PlatformResources, make_library_points, make_point
from commodel.patterns.trees.topologies import make_tree
from commodel.plan import planning
from commodel.plan.batches import PROBE_SHARE
from commodel.plan.plan_tables import summarize_plan
from commodel.plan.planning import load_plan
from commodel.platforms.tools import ROOT
from commodel.predictions.predictions import predict
from commodel.records import LIBRARY
from tests.patterns.catalogue import TREES
from tests.plan.planning import MATRIX, PLATFORM, SIMULATED, alternatives

RESOURCES = PlatformResources("big", 32, 16)
HOCKNEY = make_given_set("hockney", ["alpha=10us", "beta=2ns"])


def test_each_workload_has_one_library_default_for_each_layout(planned):
    """Library defaults are the only points that models do not predict."""
    plan = planned(MATRIX)
    without_defaults = planned(MATRIX, "library: false")
    assert not [point for point in without_defaults.points if not point.predictable]
    assert [point for point in plan.points if point.predictable] == without_defaults.points
    assert len({point.id for point in plan.points}) == len(plan.points)
    in_matrix = alternatives(without_defaults.points)
    for workload, members in alternatives(plan.points).items():
        defaults = [point for point in members if not point.predictable]
        assert sorted(point.layout for point in defaults) == sorted(
            {point.layout for point in in_matrix[workload]}
        )
        assert {(point.leaves, point.bytes, point.node_usage) for point in members} == {
            (defaults[0].leaves, defaults[0].bytes, defaults[0].node_usage)
        }


def test_layouts_with_equal_numbers_of_ranks_and_nodes_are_alternatives(planned):
    points = planned(MATRIX, "library: false").points
    workloads = alternatives(point for point in points if point.operation == "bcast")
    layouts = {
        workload: {point.layout for point in members} for workload, members in workloads.items()
    }
    assert layouts["big bcast 8 ranks 8 B 4 nodes"] == {"block:2", "cyclic:2"}
    assert layouts["big bcast 8 ranks 8 B 2 nodes"] == {"block:4"}
    assert len(workloads["big bcast 7 ranks 1024 B 4 nodes"]) == 4


def test_trees_with_equal_leaves_are_alternatives_on_any_number_of_nodes(planned):
    points = planned(MATRIX).points
    workloads = alternatives(point for point in points if point.operation == "reduce")
    assert {workload.removeprefix("big reduce ") for workload in workloads} == {
        "8 leaves 8 B 1 a node",
        "8 leaves 8 B 2 a node",
        "5 leaves 8 B 1 a node",
        "5 leaves 8 B 2 a node",
    }
    members = workloads["big reduce 8 leaves 8 B 1 a node"]
    assert {point.alternative for point in members} == {"flat:8", "kary:2^3", LIBRARY}
    assert {point.nodes for point in members if point.topology} == {9, 15}
    assert {(point.ranks, point.nodes) for point in members if not point.predictable} == {(9, 9)}


def test_trees_with_equal_ranks_per_node_are_alternatives(planned, tmp_path, monkeypatch):
    """Their layouts may differ. The library default belongs to the same workload, although it needs
    fewer ranks."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ranks.txt").write_text("".join(f"{node // 2 + 1}\n" for node in range(9)))
    layouts = [
        "block:2",
        "cyclic:2",
        "random:2@7",
        "block-cyclic:2x2",
        "kinds:2core@1,0@1,1core+1accelerator@30",
    ]
    tree = "operation: reduce, topology: 'flat:8', bytes: 8"
    plan = planned(f"\n  - axes: {{{tree}, layout: {[*layouts, 'file:ranks.txt']}}}")
    assert {point.workload for point in plan.points} == {"big reduce 8 leaves 8 B 2 a node"}
    assert plan.merged_layouts == {"block-cyclic:2x2": "block:2"}
    of_defaults = {point.layout for point in plan.points if not point.predictable}
    assert of_defaults == {*layouts, "file:ranks.txt"} - {"block-cyclic:2x2"}
    # at most 3 ranks per node, for the 15 ranks of the tree and the default's 9
    other = "kinds:1core@1,3core@9"
    points = planned(
        f"\n  - axes: {{{tree.replace('flat:8', 'kary:2^3')}, layout: ['{other}', 'block:3']}}"
    ).points
    assert {point.workload for point in points} == {"big reduce 8 leaves 8 B 3 a node"}


@pytest.mark.parametrize("spec", TREES)
@pytest.mark.parametrize("per_node", [1, 2, 5])
def test_the_library_default_of_a_tree_needs_no_inner_nodes(spec, per_node):
    point = make_point(
        RESOURCES,
        {"operation": "reduce", "topology": spec, "bytes": 8, "layout": f"block:{per_node}"},
    )
    (default,) = make_library_points(RESOURCES, [point])
    assert default.ranks == make_tree(spec).leaves + 1 <= point.ranks
    assert default.workload == point.workload
    assert default.nodes == -(-default.ranks // per_node)


@given(
    st.sampled_from([name for name, entry in list_operations().items() if entry.mpi]),
    st.integers(2, 60),
    st.integers(1, 16),
    st.sampled_from(["block", "cyclic"]),
)
def test_a_library_default_in_the_matrix_is_not_added_again(operation, ranks, per_node, layout):
    combination = {
        "operation": operation,
        "algorithm": LIBRARY,
        "ranks": ranks,
        "bytes": 8,
        "layout": f"{layout}:{per_node}",
    }
    resources = PlatformResources("big", 100, 16)
    point = make_point(resources, combination)
    assert list(make_library_points(resources, [point])) == [point]


def test_a_tree_and_an_algorithm_have_different_library_defaults(planned):
    """Even if both have nine ranks: a broadcast over nine, and one from a front-end to eight
    leaves."""
    plan = planned(
        "\n  - axes: {operation: bcast, algorithm: linear, ranks: 9, layout: 'block:1', bytes: 8}"
        "\n  - axes: {operation: bcast, topology: 'flat:8', layout: 'block:1', bytes: 8}"
    )
    defaults = [point for point in plan.points if not point.predictable]
    assert len({point.id for point in defaults}) == len({point.workload for point in defaults}) == 2


def test_library_defaults_are_measured_by_program_library_and_never_predicted(planned, tmp_path):
    plan = planned(MATRIX)
    started = {}
    for batch in plan.batches:
        for start in list_starts(batch, tmp_path):
            for row in start.rows:
                started[row["id"]] = start.program, start.ranks, start.layout
    for point in plan.points:
        assert started[point.id] == (
            "player" if point.predictable else "library",
            point.ranks,
            point.layout,
        )
    predicted = predict(HOCKNEY, plan.points, strict=False)
    assert [prediction.point for prediction in predicted] == [
        point for point in plan.points if point.predictable
    ]
    default = next(point for point in plan.points if not point.predictable)
    with pytest.raises(UserError, match="only its own times"):
        predict(HOCKNEY, [default])
    with pytest.raises(UserError, match="the MPI library's own"):
        build_schedule(default)


SIZES = "bytes: {from: 1KiB, to: 64MiB, factor: 2}"


LARGE = f"""
  - axes: {{operation: bcast, algorithm: [linear, binomial], ranks: [8, 16, 32], layout: "block:1", {SIZES}}}
"""


def split(planned, batch):
    """Return the batches with points of a long experiment; `batch` is the value of its key
    `batch`."""
    plan = planned(LARGE, f"measure: {{min_samples: 200, seconds: 1 min}}\nbatch: {batch}")
    return [batch for batch in plan.batches if batch.points]


def test_batches_that_do_not_fit_the_budget_are_split_and_partition_the_points(planned):
    whole, parts = split(planned, "{}"), split(planned, "{budget: 12 min}")
    assert [batch.nodes for batch in whole] == [8, 16, 32]
    assert len(parts) > 3
    for nodes in (8, 16, 32):
        of_size = [batch for batch in parts if batch.nodes == nodes]
        together = [point for batch in of_size for point in batch.points]
        (full,) = (batch for batch in whole if batch.nodes == nodes)
        assert sorted(point.id for point in together) == sorted(full.ids)
        assert len(together) == len({point.id for point in together})
    batch_of_workload = {}
    for batch in parts:
        for point in batch.points:
            assert batch_of_workload.setdefault(point.workload, batch.name) == batch.name
        workloads = {point.workload for point in batch.points}
        reserve = 6 * 60  # seconds: half of the budget
        assert len(workloads) == 1 or reserve + batch.most <= 12 * 60
        assert batch.minutes <= 12
    assert len({batch.name for batch in parts}) == len(parts)
    assert split(planned, "{budget: 12 min}") == parts


def test_simulated_points_share_a_batch_up_to_the_next_power_of_two(planned):
    matrix = "  - axes: {operation: bcast, algorithm: linear, ranks: [2, 3, 4, 5, 8, 9], bytes: 8}"
    real, simulated = (
        [
            {point.nodes for point in batch.points}
            for batch in planned(matrix, "", platform).batches
            if batch.points
        ]
        for platform in (PLATFORM, SIMULATED)
    )
    assert real == [{2}, {3}, {4}, {5}, {8}, {9}]
    assert simulated == [{2}, {3, 4}, {5, 8}, {9}]


def test_a_simulated_batch_is_not_named_after_more_nodes_than_the_platform_has(planned):
    matrix = "  - axes: {operation: bcast, algorithm: linear, ranks: [5, 17, 24], bytes: 8}"
    batches = planned(matrix, "", SIMULATED.replace("nodes: 64", "nodes: 24")).batches
    assert [batch.name.rsplit("-", 1)[0] for batch in batches if batch.points] == [
        "big-upto8n",
        "big-upto24n",
    ]


def test_layouts_that_place_ranks_on_the_same_nodes_are_measured_once(planned):
    """Ranks on 4 nodes: one each with block:1 and cyclic:1. Two each are placed differently by
    block and cyclic."""
    axes = (
        "operation: bcast, algorithm: linear, bytes: 8, layout: [block, cyclic], nodes: 4, "
        "ranks_per_node: [1, 2]"
    )
    plan = planned(f"  - axes: {{{axes}}}")
    layouts = [point.layout for point in plan.points]
    # each with the MPI default
    assert sorted(layouts) == sorted(2 * ["block:1", "block:2", "cyclic:2"])
    assert plan.merged_layouts == {"cyclic:1": "block:1"}
    line = (
        "cyclic:1 places these ranks on the same nodes as block:1: such points are measured once, "
        "as block:1"
    )
    assert line in summarize_plan(plan)


@pytest.mark.parametrize(
    ("axes", "key"),
    [
        ('algorithm: linear, ranks: 64, layout: "block:32"', "layout"),
        ('algorithm: linear, ranks: 513, layout: "block:32"', "ranks"),
        ("algorithm: linear, ranks: 513", "ranks"),
        ('algorithm: linear, layout: "nodes:0x17"', "layout"),
        ("algorithm: linear, nodes: 33, ranks_per_node: 16", "nodes"),
        ("algorithm: linear, nodes: 2, ranks_per_node: 17", "ranks_per_node"),
        ('topology: "flat:512"', "topology"),
        ('topology: "flat:16", layout: "block:17"', "layout"),
    ],
)
def test_an_error_about_ranks_that_do_not_fit_names_the_axis_to_change(planned, axes, key):
    with pytest.raises(UserError, match=rf"matrix\[0\]\.axes\.{key}: \d+ ranks (as .+ )?need "):
        planned(f"  - axes: {{operation: bcast, bytes: 8, {axes}}}")


def test_names_of_batches_state_their_nodes_or_the_limit(planned):
    matrix = "  - axes: {operation: bcast, algorithm: linear, ranks: [3, 5], bytes: 8}"
    real, simulated, shared = (
        {
            batch.name.rsplit("-", 1)[0]: batch.nodes
            for batch in planned(matrix, *more).batches
            if batch.points
        }
        for more in (("", PLATFORM), ("", SIMULATED), ("batch: {smaller: true}", PLATFORM))
    )
    assert real == {"big-3n": 3, "big-5n": 5}
    assert simulated == {"big-upto4n": 3, "big-upto8n": 5}
    assert shared == {"big-upto5n": 5}


def test_points_of_fewer_nodes_may_share_the_largest_allocation(planned):
    (only,) = split(planned, "{smaller: true}")
    assert only.nodes == 32
    assert {point.nodes for point in only.points} == {8, 16, 32}
    parts = split(planned, "{smaller: true, budget: 12 min}")
    nodes = [point.nodes for batch in parts for point in batch.points]
    assert nodes == sorted(nodes, reverse=True)
    assert all(batch.nodes == max(point.nodes for point in batch.points) for batch in parts)


@pytest.mark.parametrize(("budget", "minutes"), [("8 h", 11), ("2 min", 2), ("90 s", 1)])
def test_the_time_limit_of_a_batch_is_at_most_its_budget(planned, budget, minutes):
    plan = planned(MATRIX, f"batch: {{budget: {budget}}}")
    assert max(batch.minutes for batch in plan.batches) == minutes


def test_a_time_limit_leaves_room_for_a_slow_and_noisy_machine(planned):
    """On a noisy machine a point may need `max_samples`, but samples are taken for at most
    `seconds`, here a minute."""
    few, many = (
        planned(LARGE, f"measure: {{seconds: 1 min, max_samples: {max_samples}}}").batches
        for max_samples in (30, 1000000)
    )
    for with_few, with_many in zip(few, many, strict=True):
        assert with_few.seconds == with_many.seconds
        # `most`: seconds on a slow and noisy machine; 2 s: start of the batch's driver
        assert 3 * (with_few.seconds - 2) <= with_few.most <= with_many.most
        assert with_many.minutes >= 10 + len(with_many.points)


def test_a_budget_is_at_least_a_minute_and_a_timeout_does_not_change_names_of_batches(planned):
    with pytest.raises(
        UserError, match=r"e\.yaml:3: batch\.budget: found 30 s, wanted at least 1 min"
    ):
        planned(MATRIX, "batch: {budget: 30 s}")
    names = [
        {batch.name for batch in planned(MATRIX, more).batches}
        for more in ("", "measure: {timeout: 5 min}")
    ]
    assert names[0] == names[1]


STREAMS = (
    "  - axes: {operation: bcast, algorithm: [linear, binomial], ranks: 8, bytes: 8, waves: %s}"
)


def test_a_stream_is_a_workload_with_a_library_default(planned):
    workloads = alternatives(planned(STREAMS % "[1, 50]").points)
    assert sorted({point.waves for point in members} for members in workloads.values()) == [
        {1},
        {50},
    ]
    assert {
        tuple(sorted(point.alternative for point in members)) for members in workloads.values()
    } == {("binomial", LIBRARY, "linear")}


def test_points_of_one_wave_are_the_same_as_without_the_axis_waves(planned):
    plain = planned(STREAMS.replace(", waves: %s", ""))
    assert planned(STREAMS % 1).batches == plain.batches
    assert {point.id for point in plain.points} < {
        point.id for point in planned(STREAMS % "[1, 50]").points
    }


def test_the_estimated_time_is_linear_in_the_waves_which_case_files_contain(planned):
    single, many, more = (planned(STREAMS % waves, platform=SIMULATED) for waves in (1, 1001, 2001))
    work = [
        sum(batch.seconds for batch in plan.batches if batch.points)
        for plan in (single, many, more)
    ]
    assert work[2] - work[1] == pytest.approx(work[1] - work[0])
    (batch,) = (batch for batch in many.batches if batch.points)
    rows = [row for start in list_starts(batch, ROOT) for row in start.rows]
    assert [row["waves"] for row in rows] == [1001] * 3


@pytest.mark.parametrize("waves", [0, 100_001, -1, "x", 1.5])
def test_waves_of_a_received_plan_are_checked(planned, tmp_path, waves):
    plan = planned(STREAMS % 2).as_json()
    for batch in plan["batches"]:
        for entry in batch["points"]:
            entry["waves"] = waves
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    with pytest.raises(UserError, match="waves"):
        load_plan(path)


def test_a_matrix_with_too_many_points_is_refused(planned, monkeypatch):
    four = "\n  - axes: {operation: bcast, algorithm: linear, ranks: 4, bytes: [1, 2, 3, 4]}"
    monkeypatch.setattr(planning, "MAX_POINTS", 4)
    assert len(planned(four, "library: false").points) == 4
    monkeypatch.setattr(planning, "MAX_POINTS", 3)
    with pytest.raises(UserError, match="matrix: found more than 3 points"):
        planned(four)


LEVELS = {"leaf": 4, "pod": 12}
SCATTERED = (
    "  - axes: {operation: bcast, algorithm: binomial, ranks: 8, layout: 'scatter:leaf', bytes: 8}"
)
PROBE_SIZES = [1, 1024]


def list_classes(entry, site):
    """Return the names of the largest distance classes between rank 0 and the other ranks of a
    case, over all cases."""
    names = set()
    for case in find_probe(entry).cases("p", site, PROBE_SIZES):
        nodes = np.array(case.where or range(site.nodes))
        distance = site.levels.distance(
            nodes[0], nodes[1 : case.ranks] if case.layout == "block:1" else nodes
        )
        names.add(site.levels.names[int(np.max(distance))])
    return names


def test_probes_have_cases_in_every_distance_class():
    site = Site(24, 2, levels=Hierarchy.written(LEVELS, 24))
    for entry in ("pingpong", "prtt", "ring"):
        assert list_classes(entry, site) == {"node", "leaf", "pod", "beyond"}, entry
    assert list_classes("triplet", site) == {"leaf", "pod", "beyond"}


def test_with_one_distance_class_no_cases_are_added():
    flat = Site(24, 2)
    assert find_nodes_in_other_classes(flat, 1) == []
    assert len(list(find_probe("pingpong").cases("p", flat, PROBE_SIZES))) == len(PROBE_SIZES)


def test_auto_adds_nodepairs_if_the_platform_names_levels_else_evenness(planned):
    for levels, more in (("", {"evenness"}), ("levels: {leaf: 8}\n", {"nodepairs"})):
        assert set(planned(MATRIX, platform=PLATFORM + levels).probes) == {
            "pingpong",
            "work",
            "mixture",
            "memory",
            *more,
        }


def test_naming_levels_keeps_measured_points(planned):
    """Batches keep their names, so that only new cases are measured. Points whose layout uses a
    level get new ids."""
    plans = [
        planned(MATRIX, platform=PLATFORM + levels)
        for levels in ("", "levels: {leaf: 8}\n", "levels: {leaf: 4}\n")
    ]
    assert len({tuple(batch.name for batch in plan.batches) for plan in plans}) == 1
    near, nearer = (
        [
            point.id
            for point in planned(
                SCATTERED, platform=PLATFORM + f"levels: {{leaf: {nodes}}}\n"
            ).points
        ]
        for nodes in (8, 4)
    )
    assert not set(near) & set(nearer)


def mixture_sizes(plan):
    return sorted(
        {
            case.settings["bytes"]
            for batch in plan.batches
            for case in batch.cases
            if case.probe == "mixture"
        }
    )


@pytest.mark.parametrize("probes", ["auto", "[auto, mixture]"])
def test_probes_keep_to_their_share_of_the_time(planned, probes):
    """With few points on 64 simulated nodes, slow probes have every second size, also if the
    experiment names them."""
    matrix = "  - axes: {operation: alltoall, algorithm: linear, ranks: 64, bytes: %s}"
    more = f"probes: {probes}\nprobe_bytes: {{from: 1, to: 4MiB, factor: 4}}"
    few, many = (
        planned(matrix % sizes, more, SIMULATED)
        for sizes in ("8", "{from: 1024, to: 128KiB, factor: 2}")
    )
    assert mixture_sizes(few) == [4**power for power in range(3, 12, 2)]
    assert mixture_sizes(many) == [4**power for power in range(3, 12)]
    seconds = [
        sum(batch.seconds for batch in many.batches if bool(batch.cases) == probing)
        for probing in (True, False)
    ]
    assert seconds[0] <= PROBE_SHARE * sum(seconds)


def test_without_auto_probes_have_all_sizes(planned):
    matrix = "  - axes: {operation: bcast, algorithm: linear, ranks: 64, bytes: 8}"
    more = "probes: [pingpong, work, memcopy, mixture]\nprobe_bytes: {from: 1, to: 1MiB, factor: 4}"
    assert len(mixture_sizes(planned(matrix, more, SIMULATED))) == 8
