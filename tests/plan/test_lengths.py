"""How far probes reach: to the longest message of any point, and the longest vector that any combines or copies."""

import pytest

from commodel.models.probes import BEYOND_CACHES, Site, probe
from commodel.models.probes.memcopy import ANEW, MAPPED
from commodel.patterns.build import builder
from commodel.plan import message_lengths
from tests.patterns.catalogue import catalogue, point
from tests.plan.planning import SIMULATED

MIB = 1 << 20
ALL = ("reduce", "copy", message_lengths.SENT)


def by_hand(points):
    """Of all rows of all schedules."""
    longest = {}
    for entry in points:
        pattern = builder(entry)(entry.bytes).whole
        longest["sent"] = max([longest.get("sent", 0), *pattern.bytes.reshape(-1).tolist()])
        for kind, code in (("reduce", 0), ("copy", 1)):
            rows = pattern.work.bytes[pattern.work.kind == code]
            longest[kind] = max([longest.get(kind, 0), *rows.tolist()])
    return {kind: length for kind, length in longest.items() if length > 1000}


@pytest.mark.parametrize("ranks", [2, 7, 16])
def test_nothing_in_any_pattern_is_longer(ranks):
    several = [entry for entry in catalogue(ranks, 50_001) if entry.priced]
    for entry in several:
        assert message_lengths.longest([entry], 1000, ALL) == pytest.approx(by_hand([entry])), entry
    assert message_lengths.longest(several, 1000, ALL) == pytest.approx(by_hand(several))


def test_of_rounds_that_repeat_nothing_is_written_out():
    ring = point("allreduce", "ring", ranks=1000, bytes=64 * MIB)
    assert message_lengths.longest([ring], 1000, ALL[:2]) == {"reduce": -(-64 * MIB // 1000)}


def test_where_there_are_too_many_segments_to_be_built_it_is_not_less(monkeypatch):
    chain = point("reduce", "binary:8KiB", ranks=8, bytes=MIB)
    (exact,) = message_lengths.longest([chain], 1000, ["reduce"]).values()
    monkeypatch.setattr(message_lengths, "MOST_ROWS", 100)
    assert exact == 8192 <= message_lengths.longest([chain], 1000, ["reduce"])["reduce"] <= MIB


REDUCTIONS = (
    "  - axes: {operation: allreduce, algorithm: [ring, recursive-doubling], ranks: 4, bytes: [8, 1MiB, 48MiB]}"
)
COPIES = "  - axes: {operation: alltoall, algorithm: [bruck, linear], ranks: 4, bytes: [8, 16MiB]}"


def cases_of(plan):
    """Sizes by probe and path."""
    sizes = {}
    for case in (case for batch in plan.batches for case in batch.cases):
        if case.probe in ("work", "memcopy"):
            sizes.setdefault(case.settings.get("path", "work"), []).append(case.settings["bytes"])
    return sizes


def test_probes_reach_what_points_do_in_steps_of_four(planned):
    sizes = cases_of(planned(f"{REDUCTIONS}\n{COPIES}", "probes: [auto, memcopy]\nprobe_bytes: [64, 64KiB]"))
    assert sizes["work"][:3] == [64, 1024, 65536]
    assert sizes["ctm"] == sizes["mtm"] == [64, 65536]
    for path, longest in (("work", 96 * MIB), ("ctc", 96 * MIB)):  # four blocks and those that the first round sends
        assert sizes[path][-5:] == [longest // 256, longest // 64, longest // 16, longest // 4, longest]
    assert sizes[ANEW] == [MAPPED, 96 * MIB]


def test_reductions_alone_ask_for_no_copies(planned):
    sizes = cases_of(planned(REDUCTIONS, "probes: [auto, memcopy]\nprobe_bytes: [64, 64KiB]"))
    assert sizes["work"] == [64, 1024, 65536, 196608, 786432, 3 * MIB, 12 * MIB, 48 * MIB]
    assert sizes["ctc"] == [64, 65536]
    assert sizes[ANEW] == [MAPPED, 48 * MIB]


def test_no_vector_is_longer_than_any_cache():
    site = Site(2, 1, vectors={"reduce": 1 << 34})
    assert max(case.settings["bytes"] for case in probe("work").cases("p", site, [64])) == BEYOND_CACHES


def test_where_vectors_are_short_or_time_is_simulated_nothing_is_added(planned):
    plain = planned("  - axes: {operation: allreduce, algorithm: ring, ranks: 4, bytes: [8, 256KiB]}")
    assert cases_of(plain)["work"] == [64, 256, 1024, 4096, 16384, 65536]
    simulated = planned(REDUCTIONS, "probe_bytes: [64, 64KiB]", platform=SIMULATED)
    assert cases_of(simulated)["work"] == [64, 1024, 65536]


def sizes_of_messages(plan):
    return {case.settings["bytes"] for batch in plan.batches for case in batch.cases if case.probe == "pingpong"}


@pytest.mark.parametrize(
    ("size", "largest"), [("64KiB", 64 << 10), ("65537", 256 << 10), ("3MiB", 4 * MIB), ("1GiB", 16 * MIB)]
)
@pytest.mark.parametrize("left_open", ["", "probe_bytes: auto"])
def test_messages_of_probes_reach_the_longest_of_the_matrix(planned, size, largest, left_open):
    matrix = f"  - axes: {{operation: bcast, algorithm: [binomial, 'chain:8KiB'], ranks: 4, bytes: [8, {size}]}}"
    assert sizes_of_messages(planned(matrix, left_open)) == {4**power for power in range(13) if 4**power <= largest}


@pytest.mark.parametrize(("algorithm", "largest"), [("chain:8KiB", 64 << 10), ("scatter-allgather", 4 * MIB)])
def test_parts_of_a_vector_are_what_is_sent(planned, algorithm, largest):
    matrix = f"  - axes: {{operation: bcast, algorithm: '{algorithm}', ranks: 4, bytes: 8MiB}}"
    assert max(sizes_of_messages(planned(matrix))) == largest
