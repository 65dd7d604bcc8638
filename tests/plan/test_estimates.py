"""Estimates: the time of a measurement, the range of probes, and the work of predicting points."""

import math
from dataclasses import replace

import numpy as np
import pytest

from commodel.api.advice import estimate_measuring
from commodel.models.probes import MAX_VECTOR_BYTES, Site, find_probe
from commodel.models.probes.plans import MMAP_BYTES, NEW_BUFFER
from commodel.patterns.build import make_builder
from commodel.patterns.points import PlatformResources, make_point
from commodel.plan import message_lengths
from commodel.plan.config import load_experiment
from commodel.plan.duration import (
    BATCH_START_SECONDS,
    SIMULATED_START_SECONDS,
    START_SECONDS,
    Durations,
)
from commodel.plan.planning import load_resources
from commodel.plan.prediction_list import list_shapes
from commodel.records import ENOUGH_EQUAL_SAMPLES, Case
from tests.patterns.catalogue import catalogue, point
from tests.plan.planning import PLATFORM, SIMULATED
from tests.planning import MEASURE


@pytest.mark.parametrize(("most", "samples"), [(500, 30), (20, 20)])
def test_a_calm_machine_takes_three_times_the_fewest_samples_and_no_more_than_there_may_be(
    most, samples
):
    durations = Durations("local", replace(MEASURE, max_samples=most))
    assert MEASURE.min_samples == 10
    seconds = 1e-4 * (samples + MEASURE.warmup) + 1e-3
    assert durations._estimate_samples(
        np.array([1e-4, 2, 2, 16]), 2, upper_bound=False
    ) == pytest.approx(seconds)


def test_long_messages_of_probes_take_their_time():
    """Round trips take twice the bytes at 5e9 B/s. 16 messages of 1 MiB in succession take as long
    as one of 16 MiB."""
    durations = Durations("local", replace(MEASURE, seconds=1e6))
    burst, one, short = (
        Case("local", "prtt", 2, {"n": n, "bytes": size}, "block:2")
        for n, size in ((16, 1 << 20), (1, 1 << 24), (1, 1))
    )
    longer = durations.estimate_members([one]) - durations.estimate_members([short])
    assert durations.estimate_members([burst]) == durations.estimate_members([one])
    assert longer == pytest.approx(
        2 * (1 << 24) / 5e9 * (3 * MEASURE.min_samples + MEASURE.warmup), rel=1e-3
    )


def test_simulation_estimates_grow_with_the_bytes_that_the_player_copies():
    """Each of 16 ranks sends 16 MiB, 256 MiB a sample. Simulation takes 1.7 ns per byte once, and
    copying 0.1 ns per byte and sample."""
    settings = {
        "level": "node",
        "how": "all",
        "procs": 16,
        "flows": 16,
        "step": 1,
        "ways": 1,
        "bytes": 1 << 24,
    }
    long, short = (
        Case("mine", "capacity", 16, {**settings, "bytes": size}, "block:1")
        for size in (1 << 24, 1)
    )
    durations = Durations("simgrid", MEASURE)
    longer = durations.estimate_members([long]) - durations.estimate_members([short])
    per_byte = 1.7e-9 + 1e-10 * (2 + ENOUGH_EQUAL_SAMPLES)
    assert longer == pytest.approx(16 * (1 << 24) * per_byte, rel=1e-3)

    resources = PlatformResources.unlimited()
    points = [
        make_point(
            resources, {"operation": "bcast", "algorithm": "linear", "ranks": 16, "bytes": size}
        )
        for size in (1 << 24, 0)
    ]
    more = durations.estimate_members(points[:1]) - durations.estimate_members(points[1:])
    # its messages are in flight together
    assert more == pytest.approx(15 * (1 << 24) * per_byte, rel=1e-2)


def test_simulating_messages_that_are_in_flight_together_takes_longer():
    """Sixteen ranks send 240 messages of 1 KiB at once, or in 15 rounds of 16. Messages of 8 B are
    not in flight together."""
    durations, flows = Durations("simgrid", MEASURE), {}
    for algorithm, size in ((name, size) for name in ("linear", "pairwise") for size in (8, 1024)):
        requested = {"operation": "alltoall", "algorithm": algorithm, "ranks": 16, "bytes": size}
        cost = durations._estimate_sample(make_point(PlatformResources.unlimited(), requested))
        assert cost[1] == 240
        flows[algorithm, size] = cost[2]
    assert flows == {
        ("linear", 8): 0,
        ("pairwise", 8): 0,
        ("linear", 1024): 240 * 240,
        ("pairwise", 1024): 240 * 16,
    }


def test_programs_start_once_for_all_members_with_the_same_ranks_and_nodes():
    durations = Durations("simgrid", MEASURE)
    cases = [
        Case("mine", "pingpong", 2, {"bytes": size}, "block:1", where)
        for size in (1, 8)
        for where in ((), (1, 2))
    ]
    starts = durations.estimate_batch(cases) - durations.estimate_members(cases)
    assert starts == pytest.approx(2 * SIMULATED_START_SECONDS)


MIB = 1 << 20
ALL = ("reduce", "copy", message_lengths.MESSAGE_KIND)


def by_hand(points):
    """Return the longest message, reduction and copy in bytes over all rows of all schedules;
    lengths up to 1000 B are left out."""
    longest = {}
    for entry in points:
        pattern = make_builder(entry)(entry.bytes).whole
        longest["sent"] = max([longest.get("sent", 0), *pattern.bytes.reshape(-1).tolist()])
        for kind, code in (("reduce", 0), ("copy", 1)):
            rows = pattern.work.bytes[pattern.work.kind == code]
            longest[kind] = max([longest.get(kind, 0), *rows.tolist()])
    return {kind: length for kind, length in longest.items() if length > 1000}


@pytest.mark.parametrize("ranks", [2, 7, 16])
def test_nothing_in_any_pattern_is_longer(ranks):
    several = [entry for entry in catalogue(ranks, 50_001) if entry.predictable]
    for entry in several:
        assert message_lengths.find_longest_lengths([entry], 1000, ALL) == pytest.approx(
            by_hand([entry])
        ), entry
    assert message_lengths.find_longest_lengths(several, 1000, ALL) == pytest.approx(
        by_hand(several)
    )


def test_of_rounds_that_repeat_nothing_is_written_out():
    ring = point("allreduce", "ring", ranks=1000, bytes=64 * MIB)
    assert message_lengths.find_longest_lengths([ring], 1000, ALL[:2]) == {
        "reduce": -(-64 * MIB // 1000)
    }


def test_the_longest_message_is_not_underestimated_beyond_the_segment_limit(monkeypatch):
    chain = point("reduce", "binary:8KiB", ranks=8, bytes=MIB)
    (exact,) = message_lengths.find_longest_lengths([chain], 1000, ["reduce"]).values()
    monkeypatch.setattr(message_lengths, "MAX_BUILT_MESSAGES", 100)
    assert (
        exact
        == 8192
        <= message_lengths.find_longest_lengths([chain], 1000, ["reduce"])["reduce"]
        <= MIB
    )


REDUCTIONS = (
    "  - axes: {operation: allreduce, algorithm: [ring, recursive-doubling], ranks: 4, bytes: [8, "
    "1MiB, 48MiB]}"
)
COPIES = "  - axes: {operation: alltoall, algorithm: [bruck, linear], ranks: 4, bytes: [8, 16MiB]}"


def list_case_sizes(plan):
    """Return the sizes of the cases of local-work probes by path."""
    sizes = {}
    for case in (case for batch in plan.batches for case in batch.cases):
        if case.probe in ("work", "memcopy"):
            sizes.setdefault(case.settings.get("path", "work"), []).append(case.settings["bytes"])
    return sizes


def test_probe_sizes_extend_to_the_longest_message_in_factors_of_four(planned):
    sizes = list_case_sizes(
        planned(f"{REDUCTIONS}\n{COPIES}", "probes: [auto, memcopy]\nprobe_bytes: [64, 64KiB]")
    )
    assert sizes["work"][:3] == [64, 1024, 65536]
    assert sizes["ctm"] == sizes["mtm"] == [64, 65536]
    # four blocks and those that the first round sends
    for path, longest in (("work", 96 * MIB), ("ctc", 96 * MIB)):
        assert sizes[path][-5:] == [
            longest // 256,
            longest // 64,
            longest // 16,
            longest // 4,
            longest,
        ]
    assert sizes[NEW_BUFFER] == [MMAP_BYTES, 96 * MIB]


def test_reductions_alone_ask_for_no_copies(planned):
    sizes = list_case_sizes(
        planned(REDUCTIONS, "probes: [auto, memcopy]\nprobe_bytes: [64, 64KiB]")
    )
    assert sizes["work"] == [64, 1024, 65536, 196608, 786432, 3 * MIB, 12 * MIB, 48 * MIB]
    assert sizes["ctc"] == [64, 65536]
    assert sizes[NEW_BUFFER] == [MMAP_BYTES, 48 * MIB]


def test_no_vector_is_longer_than_any_cache():
    site = Site(2, 1, vectors={"reduce": 1 << 34})
    assert (
        max(case.settings["bytes"] for case in find_probe("work").cases("p", site, [64]))
        == MAX_VECTOR_BYTES
    )


def test_where_vectors_are_short_or_time_is_simulated_nothing_is_added(planned):
    plain = planned(
        "  - axes: {operation: allreduce, algorithm: ring, ranks: 4, bytes: [8, 256KiB]}"
    )
    assert list_case_sizes(plain)["work"] == [64, 256, 1024, 4096, 16384, 65536]
    simulated = planned(REDUCTIONS, "probe_bytes: [64, 64KiB]", platform=SIMULATED)
    assert list_case_sizes(simulated)["work"] == [64, 1024, 65536]


def sizes_of_messages(plan):
    return {
        case.settings["bytes"]
        for batch in plan.batches
        for case in batch.cases
        if case.probe == "pingpong"
    }


@pytest.mark.parametrize(
    ("size", "largest"),
    [("64KiB", 64 << 10), ("65537", 256 << 10), ("3MiB", 4 * MIB), ("1GiB", 16 * MIB)],
)
@pytest.mark.parametrize("left_open", ["", "probe_bytes: auto"])
def test_messages_of_probes_reach_the_longest_of_the_matrix(planned, size, largest, left_open):
    matrix = (
        "  - axes: "
        f"{{operation: bcast, algorithm: [binomial, 'chain:8KiB'], ranks: 4, bytes: [8, {size}]}}"
    )
    assert sizes_of_messages(planned(matrix, left_open)) == {
        4**power for power in range(13) if 4**power <= largest
    }


@pytest.mark.parametrize(
    ("algorithm", "largest"), [("chain:8KiB", 64 << 10), ("scatter-allgather", 4 * MIB)]
)
def test_the_largest_probe_follows_the_longest_message_of_the_algorithm(
    planned, algorithm, largest
):
    matrix = f"  - axes: {{operation: bcast, algorithm: '{algorithm}', ranks: 4, bytes: 8MiB}}"
    assert max(sizes_of_messages(planned(matrix))) == largest


def test_a_pattern_from_a_file_has_the_size_that_the_file_states(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.csv").write_text("step,kind,rank,peer,bytes\n0,send,0,1,640\n1,send,1,0,8\n")
    (tmp_path / "e.yaml").write_text(
        'platform: p\nmodels: all\nmatrix: [{axes: {operation: "file:two.csv"}}]\n'
    )
    (only,) = list_shapes(load_experiment("e.yaml"), PlatformResources.unlimited())
    assert (only.point.ranks, only.sizes) == (2, (640,))


@pytest.mark.parametrize("platform", [PLATFORM, SIMULATED])
def test_advice_names_the_same_time_to_measure_a_point_as_the_plan(planned, tmp_path, platform):
    """The plan also has the start of the batch and of its program, in each pass."""
    plan = planned(
        "  - axes: {operation: alltoall, algorithm: linear, ranks: 64, bytes: 64KiB}",
        "library: false",
        platform,
    )
    (batch,) = (batch for batch in plan.batches if batch.points)
    resources = load_resources(str(tmp_path / "params/platforms/big.yaml"))
    start = (
        SIMULATED_START_SECONDS if platform == SIMULATED else START_SECONDS * plan.measure.passes
    )
    seconds = estimate_measuring(batch.points[0], resources)
    assert seconds == pytest.approx(batch.seconds - BATCH_START_SECONDS - start)
    assert math.isnan(estimate_measuring(batch.points[0], PlatformResources.unlimited()))
