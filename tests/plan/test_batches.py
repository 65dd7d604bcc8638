"""What batches a plan comes down to: split by their budget, large enough for their points, and streams in them."""

import json

import pytest

from commodel.errors import UserError
from commodel.measure.starts import starts_of
from commodel.plan.planning import load_plan
from commodel.platforms.tools import ROOT
from commodel.records import LIBRARY
from tests.plan.planning import MATRIX, PLATFORM, SIMULATED, alternatives

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
        of_size = [batch for batch in parts if batch.nodes == nodes]
        together = [point for batch in of_size for point in batch.points]
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


@pytest.mark.parametrize(("budget", "minutes"), [("8 h", 11), ("2 min", 2), ("90 s", 1)])
def test_a_batch_asks_for_no_more_than_its_budget(planned, budget, minutes):
    plan = planned(MATRIX, f"batch: {{budget: {budget}}}")
    assert max(batch.minutes for batch in plan.batches) == minutes


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


STREAMS = "  - axes: {operation: bcast, algorithm: [linear, binomial], ranks: 8, bytes: 8, waves: %s}"


def test_a_stream_is_a_job_of_its_own_with_a_library_of_its_own(planned):
    groups = alternatives(planned(STREAMS % "[1, 50]").points)
    assert sorted({point.waves for point in members} for members in groups.values()) == [{1}, {50}]
    assert {tuple(sorted(point.choice for point in members)) for members in groups.values()} == {
        ("binomial", LIBRARY, "linear")
    }


def test_what_is_planned_of_one_wave_is_as_it_was(planned):
    plain = planned(STREAMS.replace(", waves: %s", ""))
    assert planned(STREAMS % 1).batches == plain.batches
    assert {point.id for point in plain.points} < {point.id for point in planned(STREAMS % "[1, 50]").points}


def test_a_stream_takes_as_long_as_its_waves_and_the_programs_are_told(planned):
    single, many = (planned(STREAMS % waves, platform=SIMULATED) for waves in (1, 1000))
    work = [sum(batch.seconds - 2 for batch in plan.batches if batch.points) for plan in (single, many)]
    assert work[1] == pytest.approx(1000 * work[0])
    (batch,) = (batch for batch in many.batches if batch.points)
    rows = [row for start in starts_of(batch, ROOT) for row in start.rows]
    assert [row["waves"] for row in rows] == [1000] * 3


@pytest.mark.parametrize("waves", [0, 100_001, -1, "x", 1.5])
def test_waves_of_a_plan_that_came_from_elsewhere_are_checked(planned, tmp_path, waves):
    plan = planned(STREAMS % 2).as_json()
    for batch in plan["batches"]:
        for entry in batch["points"]:
            entry["waves"] = waves
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    with pytest.raises(UserError, match="waves"):
        load_plan(path)
