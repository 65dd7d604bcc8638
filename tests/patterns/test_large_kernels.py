"""Kernels of thousands of blocks and ranks: no id, part or neighbourhood of them needs the whole schedule."""

import itertools
from dataclasses import replace

from commodel.patterns.build import parted, schedule, stacked
from commodel.patterns.identity import MOST_ROWS, identified
from commodel.registry import discover
from tests.patterns.catalogue import point
from tests.patterns.memory import with_memory


def test_no_large_schedule_is_built_for_the_id_of_a_long_sum(monkeypatch):
    built = []
    entry = discover("patterns.algorithms", "ALGORITHM")["summa-paper"]

    def build(*given, **named):
        built.append(entry.build(*given, **named))
        return built[-1]

    monkeypatch.setitem(discover("patterns.algorithms", "ALGORITHM"), "summa-paper", replace(entry, build=build))
    identified([point("summa:n=4096", "paper", ranks=4096), point("summa:n=4097", "paper", ranks=4096)])
    assert max(len(pattern.src) for pattern in built) <= MOST_ROWS


def test_a_large_kernel_is_few_different_iterations():
    """4,096 blocks a side over 64×64 processes: as many kinds of iteration as there are columns of ranks, each of which
    sends to all others of its row and of its column. Nothing of a whole is built: parts are made one at a time."""
    whole = point("summa:n=4096", "paper", ranks=4096, bytes=8192)
    several = parted(whole)
    assert [count for _, count in several] == 64 * [64]
    ((_, stack),) = stacked([whole])
    count, first = next(stack.counted())
    assert (count, first.bytes.shape[-1]) == (64, 2 * 64 * 63)
    made, most = with_memory(lambda: sum(1 for _ in itertools.islice(stack.counted(), 8)))
    assert made == 8
    assert most < 100 * first.bytes.nbytes


def test_neighbours_of_many_ranks_are_found_without_looking_at_all_pairs():
    pattern, most = with_memory(lambda: schedule(point("wave2d:n=2000", "paper", ranks=10_000, bytes=8)))
    assert len(pattern.src) == 4 * 100 * 99
    assert most < 100 * pattern.src.nbytes
