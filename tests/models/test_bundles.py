"""Queues of messages that are followed in bundles, against a slow way, and Python against what is compiled."""

from collections import defaultdict

import numpy as np
import pytest

from commodel.models.pricing import native_replay
from commodel.models.pricing.time_order import QUEUE, Bundles, Program, Traffic, in_python
from commodel.patterns import build
from commodel.patterns.rank_local_steps import rank_local
from tests.patterns import slow_shares
from tests.patterns.catalogue import point


def chains(seed):
    """Two chains of ranks in opposite directions that pass on parts, some of them half as long, over ports that lead
    out of each rank and into it; what they cost, and which lines lead opposite ways."""
    rng = np.random.default_rng(seed)
    ranks, parts = int(rng.integers(3, 6)), int(rng.integers(QUEUE + 1, 2 * QUEUE))
    part, hop = np.divmod(np.arange(parts * (ranks - 1)), ranks - 1)
    back = rng.random(len(part)) < rng.choice([0.0, 0.5])
    src, dst = np.where(back, ranks - 1 - hop, hop), np.where(back, ranks - 2 - hop, hop + 1)
    bytes = np.where(rng.random(parts) < 0.3, 4, 8)[part]
    pattern = rank_local(ranks, src, dst, bytes, hop + part, hop + part, hop + part, hop + part)
    message, line = np.repeat(np.arange(len(part)), 2), np.stack([pattern.src, ranks + pattern.dst], axis=1).ravel()
    opposite = (np.arange(2 * ranks) + ranks) % (2 * ranks)
    c, o = rng.integers(1, 5, 2 * ranks).astype(float), float(rng.integers(0, 4))
    lasts = c[line] * pattern.bytes[message]
    traffic = Traffic(o, o, np.full(len(part), 3.0), 2.0 * pattern.bytes, lasts, np.zeros(0), 0.05)
    return pattern, rng.random(len(part)) < rng.choice([0.0, 0.1]), (message, line), traffic, opposite


def bundled(seed):
    pattern, asks, uses, traffic, opposite = chains(seed)
    bundles = Bundles.of_queues(pattern, asks, *uses, opposite)
    return bundles, Program.of(pattern, asks, uses, opposite=opposite, bundles=bundles), traffic


@pytest.mark.parametrize("seed", range(30))
def test_a_message_goes_as_fast_as_the_slowest_of_its_lines_lets_it(library, seed):
    pattern, asks, (message, line), costs, opposite = chains(seed)
    passed = defaultdict(dict)
    for number, other, seconds in zip(message.tolist(), line.tolist(), costs.uses.tolist(), strict=True):
        passed[number][other] = seconds
    every, facing = np.ones(len(pattern.src)), dict(enumerate(opposite.tolist()))
    columns = costs.send * every, costs.receive * every, costs.wire, costs.alone, costs.work
    slow = slow_shares.finish_times(pattern, asks, asks, passed, facing, costs.back, True, *columns)
    bundles, program, traffic = bundled(seed)
    ends = [
        play(program, traffic, program.uses(traffic.uses), program.work(traffic.work))
        for play in (in_python, native_replay.in_time)
    ]
    if bundles is not None:
        np.testing.assert_allclose(ends[0], slow, rtol=1e-9)
    np.testing.assert_array_equal(*ends)


def test_queues_are_followed_in_bundles_and_nothing_else_is():
    """Down a chain, and not around a ring, where each rank sends on what has come; nor where too many bundles meet."""
    for operation, choice, size, queues in (
        ("bcast", f"chain:{1 << 10}B", (QUEUE + 1) << 10, True),
        ("bcast", f"chain:{1 << 10}B", QUEUE << 10, False),
        ("allgather", "ring", 1024, False),
        ("alltoall", "linear", 1024, False),
    ):
        pattern = build.schedule(point(operation, choice, ranks=24, bytes=size))
        every = np.arange(len(pattern.src))
        bundles = Bundles.of_queues(pattern, every < 0, every, pattern.src, np.full(24, -1))
        assert (bundles is not None) == queues, choice
