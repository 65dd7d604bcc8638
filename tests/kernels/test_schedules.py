"""Kernels as operations: SUMMA compared with the blocks of its matrices, the example of the τ–Lop
paper, errors in one line; and kernels of thousands of blocks and ranks without the whole
schedule."""

import itertools
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.models.evaluation.replay import Costs, finish_times
from commodel.patterns.build import build_schedule, list_parts, stack_points
from commodel.patterns.operations import canonicalize_operation, find_required_ranks, list_summands
from commodel.patterns.point_digests import MAX_ROWS, add_digests
from commodel.patterns.points import PlatformResources, make_point
from commodel.patterns.rank_local_steps import make_rank_local_schedule
from commodel.patterns.schedule import KINDS
from commodel.registry import discover
from commodel_kernels.rectangles import Rectangles, format_rectangles, make_even_grid
from tests.patterns.catalogue import point, with_memory
from tests.patterns.dataflow import Replay, finishes_with_synchronous_sends
from tests.refusals import catch_error_message

FIGURE_8 = "summa:partition=params/partitions/taulop-summa.csv"


@st.composite
def columns_of(draw, most=8):
    """Draw rectangles in columns of any widths and heights in any order of ranks, some ranks
    without work."""
    side = draw(st.integers(1, most))

    def cuts():
        ends = sorted(draw(st.sets(st.integers(1, side), max_size=3)) | {side})
        return list(zip([0, *ends[:-1]], ends, strict=True))

    pieces = [(left, top, right - left, low - top) for left, right in cuts() for top, low in cuts()]
    pieces += draw(st.integers(0, 2)) * [(0, 0, 0, 0)] + (2 - len(pieces)) * [(0, 0, 0, 0)]
    return draw(st.permutations(pieces)), side


@pytest.fixture(scope="module")
def partition_file(tmp_path_factory):
    folder, numbers = tmp_path_factory.mktemp("partitions"), itertools.count()

    def written(pieces):
        path = folder / f"{next(numbers)}.csv"
        path.write_text(format_rectangles(Rectangles.of(*np.array(pieces).T)))
        return path

    return written


def needs(pieces, side, k):
    """Return {(sender, receiver, "column" or "row"): blocks} of iteration k, block by block."""
    owner = np.full((side, side), -1)
    for rank, (x, y, width, height) in enumerate(pieces):
        owner[x : x + width, y : y + height] = rank
    sent = {}
    for rank in range(len(pieces)):
        at = np.argwhere(owner == rank)
        for y in np.unique(at[:, 1]):
            sent.setdefault((owner[k, y], rank, "column"), []).append(int(y))
        for x in np.unique(at[:, 0]):
            sent.setdefault((owner[x, k], rank, "row"), []).append(int(x))
    return {names: blocks for names, blocks in sent.items() if names[0] != names[1]}


@given(columns_of(), st.booleans(), st.integers(1, 9), st.data())
def test_an_iteration_sends_the_blocks_that_rectangles_overlap(
    partition_file, case, overlapped, size, data
):
    (pieces, side), k = case, data.draw(st.integers(0, case[1] - 1))
    text = f"summa:partition={partition_file(pieces)}:iteration={k}:overlapped={'yes' if overlapped else 'no'}"
    pattern = build_schedule(point(text, "paper", ranks=len(pieces), bytes=size))
    first = pattern.contents().first // size
    rows = zip(
        pattern.src.tolist(),
        pattern.dst.tolist(),
        first.tolist(),
        pattern.bytes.tolist(),
        strict=True,
    )
    sent = {
        (src, dst, "row" if place >= side else "column"): list(
            range(place % side, place % side + count // size)
        )
        for src, dst, place, count in rows
    }
    assert sent == needs(pieces, side, k)
    assert len(sent) == len(pattern.src)
    Replay(pattern, text, size).check()
    assert finishes_with_synchronous_sends(pattern)


@given(columns_of(), st.booleans(), st.integers(0, 1 << 20), st.data())
def test_common_steps_predict_the_same_times_as_the_least_steps(
    partition_file, case, overlapped, seed, data
):
    """A kernel schedule has separate steps for column and row. With the smallest possible steps,
    the finish times are equal."""
    (pieces, side), rng = case, np.random.default_rng(seed)
    k = data.draw(st.integers(0, side - 1))
    text = f"summa:partition={partition_file(pieces)}:iteration={k}:overlapped={'yes' if overlapped else 'no'}"
    pattern = build_schedule(point(text, "paper", ranks=len(pieces)))
    columns = (
        pattern.src,
        pattern.dst,
        np.arange(len(pattern.src)),
        pattern.step,
        *pattern.nonblocking.columns,
    )
    least = make_rank_local_schedule(pattern.ranks, *columns, work=pattern.work)
    times = 40 * rng.random((5, 1, len(pattern.src)))
    finishes = [
        finish_times(clock, Costs(send, receive, wire, gap_out, gap_in), clock.work_seconds(0.01))
        for clock, rows in ((pattern, slice(None)), (least, least.bytes))
        for send, wire, receive, gap_out, gap_in in [times[..., rows]]
    ]
    np.testing.assert_allclose(*finishes, rtol=1e-12)


@given(columns_of(5), st.integers(1, 4))
def test_a_whole_kernel_has_the_messages_of_all_iterations_in_sequence(partition_file, case, size):
    pieces, side = case
    text = f"summa:partition={partition_file(pieces)}"
    whole = build_schedule(point(text, "paper", ranks=len(pieces), bytes=size))
    Replay(whole, text, size).check()
    some = list_summands(text, len(pieces))
    assert sum(count for _, count in some) == side
    sent = []
    for name, count in some:
        part = build_schedule(point(name, "paper", ranks=len(pieces), bytes=size))
        k = int(name.rpartition("=")[2])
        for other in range(k, k + count):
            alike = build_schedule(
                point(f"{text}:iteration={other}", "paper", ranks=len(pieces), bytes=size)
            )
            assert alike.encode() == part.encode()
        sent += count * [*zip(part.src, part.dst, part.bytes, strict=True)]
    assert [*zip(whole.src, whole.dst, whole.bytes, strict=True)] == sent


def test_iteration_80_of_figure_8():
    """In the paper p1 sends 134 blocks to p0 and 158 over the network, p4 116 and 104. The pivot
    row goes from p1 to p4, from p0 to p5 and from p3 to p2."""
    pattern = build_schedule(point(f"{FIGURE_8}:iteration=80", "paper", ranks=6, bytes=1))
    sent = list(zip(pattern.step, pattern.src, pattern.dst, pattern.bytes, strict=True))
    column = [
        (1, 1, 0, 134),
        (1, 1, 3, 146),
        (1, 1, 5, 12),
        (1, 4, 2, 104),
        (1, 4, 3, 6),
        (1, 4, 5, 110),
    ]
    assert sent == [*column, (2, 1, 4, 124), (2, 0, 5, 97), (2, 3, 2, 35)]
    work = pattern.work
    assert (work.rank.tolist(), work.bytes.tolist()) == ([1, 4], [146, 110])
    assert set(work.kind) == {KINDS.index("copy")}
    assert pattern.nonblocking.src_wait.tolist() == 6 * [3] + 3 * [2]
    assert pattern.nonblocking.dst_step.tolist() == 6 * [0] + 3 * [2]


def test_the_pivot_row_is_sent_to_one_rank_after_the_other():
    pattern = build_schedule(point("summa:n=8:grid=4x2:iteration=5", "paper", ranks=8, bytes=1))
    row = pattern.step > 1
    sent = zip(pattern.step[row], pattern.src[row], pattern.dst[row], strict=True)
    assert sorted(sent) == [(2, 4, 0), (2, 5, 1), (3, 4, 2), (3, 5, 3), (4, 4, 6), (4, 5, 7)]
    late = build_schedule(
        point("summa:n=8:grid=4x2:iteration=5:overlapped=yes", "paper", ranks=8, bytes=1)
    )
    assert set(late.step) == {1}
    assert set(late.src_wait) == set(late.dst_wait) == {2}


@pytest.mark.parametrize(
    ("text", "own", "ranks"),
    [
        ("summa", "summa", None),
        ("summa : n = any:grid=squarest:iteration=all:partition=even", "summa", None),
        ("summa:iteration=80:n=0128:grid=2x3", "summa:n=128:grid=2x3:iteration=80", 6),
        (FIGURE_8, FIGURE_8, 6),
        ("wave2d:grid=squarest:n=256", "wave2d:n=256", None),
    ],
)
def test_spellings_of_an_operation_have_one_canonical_form(text, own, ranks):
    assert canonicalize_operation(text) == own
    assert find_required_ranks(text) == ranks


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("summa:n=0", "summa: n: found '0', wanted a whole number from 1"),
        ("summa:n=2000000", "summa: n: found '2000000', wanted at most 1048576"),
        (
            "summa:grid=2x2x2",
            "summa: grid: found '2x2x2', wanted rows x columns of ranks, such as 4x2",
        ),
        (
            "summa:n=4:grid=2x2:iteration=4",
            "found iteration 4, wanted one below 4, the blocks a side",
        ),
        (
            "summa:iteration=-1",
            "summa: iteration: found '-1', wanted the number of an iteration, from 0",
        ),
        ("summa:overlapped=maybe", "summa: overlapped: found 'maybe', wanted yes or no"),
        ("summa:partition=", "summa: partition: found nothing, wanted the file of a partition"),
        (
            "wave2d:iteration=1",
            "wave2d has no parameter 'iteration'; wanted one of: grid, n, partition",
        ),
        ("summa:partition=none.csv", "none.csv: cannot be read: No such file or directory"),
        (f"{FIGURE_8}:n=128", "params/partitions/taulop-summa.csv: found 256×256, wanted n=128"),
        (f"{FIGURE_8}:grid=2x3", "found grid and partition, wanted one of them"),
        (
            f"{FIGURE_8}:iteration=256",
            "found iteration 256, wanted one below 256, the blocks a side",
        ),
    ],
)
def test_a_mistake_in_a_kernel_is_refused_in_one_line(text, complaint):
    found = catch_error_message(
        make_point,
        PlatformResources("big", 64, 64),
        {"operation": text, "algorithm": "paper", "bytes": 8},
    )
    assert found.removeprefix("operation: ") == complaint


def test_ranks_that_do_not_agree_and_rectangles_without_columns(tmp_path):
    resources, rest = PlatformResources("big", 64, 64), {"algorithm": "paper", "bytes": 8}
    with pytest.raises(UserError, match=r"found 7, but '.*' has 6 ranks; leave ranks out"):
        make_point(resources, {"operation": FIGURE_8, "ranks": 7, **rest})
    path = tmp_path / "pinwheel.csv"
    path.write_text(
        format_rectangles(
            Rectangles.of([0, 2, 1, 0, 1], [0, 0, 2, 1, 1], [2, 1, 2, 1, 1], [1, 2, 1, 2, 1])
        )
    )
    with pytest.raises(
        UserError, match=f"{path}: found different widths at x=0: .*, which summa needs"
    ):
        make_point(resources, {"operation": f"summa:partition={path}", **rest})
    assert make_point(resources, {"operation": f"wave2d:partition={path}", **rest}).ranks == 5


def test_ids_of_kernels_depend_on_the_content_of_the_partition_file(tmp_path):
    path = tmp_path / "p.csv"

    def id_of(text, pieces, spell=False):
        path.write_text(format_rectangles(pieces))
        chosen = make_point(
            PlatformResources("big", 64, 64), {"operation": text, "algorithm": "paper", "bytes": 8}
        )
        return add_digests([replace(chosen, operation="summa") if spell else chosen])[0].pattern

    pieces = [
        make_even_grid(40, (2, 2)),
        make_even_grid(40, (1, 4)),
        Rectangles.of([0, 20, 0, 20], [0, 0, 20, 21], 4 * [20], [20, 21, 20, 19]),
    ]
    ids = [id_of(f"summa:partition={path}", rectangles) for rectangles in pieces]
    assert len(set(ids)) == len(ids)
    assert ids[0] == id_of(f"summa:partition={path}", make_even_grid(40, (2, 2)))


@pytest.mark.parametrize("grid", [(1, 2), (3, 1), (2, 3), (4, 4)])
def test_sides_of_a_grid_by_closed_form(grid):
    rows, columns = grid
    pattern = build_schedule(
        point(f"wave2d:n=48:grid={rows}x{columns}", "paper", ranks=prod(grid), bytes=8)
    )
    lines = (columns - 1) + (rows - 1)  # that cut the square, each of which is sent either way
    assert pattern.bytes.sum() == 2 * 48 * 8 * lines
    assert len(pattern.src) == 2 * (rows * (columns - 1) + columns * (rows - 1))
    assert set(pattern.step) == {0}


def test_no_large_schedule_is_built_for_the_id_of_a_long_sum(monkeypatch):
    built = []
    entry = discover("patterns.algorithms", "ALGORITHM")["summa-paper"]

    def build(*given, **named):
        built.append(entry.build(*given, **named))
        return built[-1]

    monkeypatch.setitem(
        discover("patterns.algorithms", "ALGORITHM"), "summa-paper", replace(entry, build=build)
    )
    add_digests(
        [point("summa:n=4096", "paper", ranks=4096), point("summa:n=4097", "paper", ranks=4096)]
    )
    assert max(len(pattern.src) for pattern in built) <= MAX_ROWS


def test_a_large_kernel_is_a_sum_of_few_distinct_iterations():
    """64×64 processes have 4,096 × 4,096 blocks: there is one kind of iteration per column of
    ranks. Iterations are built one at a time, and never the whole schedule."""
    kernel = point("summa:n=4096", "paper", ranks=4096, bytes=8192)
    several = list_parts(kernel)
    assert [count for _, count in several] == 64 * [64]
    ((_, stack),) = stack_points([kernel])
    count, first = next(stack.iterate_parts())
    assert (count, first.bytes.shape[-1]) == (64, 2 * 64 * 63)
    iterations, peak_memory = with_memory(
        lambda: sum(1 for _ in itertools.islice(stack.iterate_parts(), 8))
    )
    assert iterations == 8
    assert peak_memory < 100 * first.bytes.nbytes


def test_neighbours_of_many_ranks_are_found_without_looking_at_all_pairs():
    pattern, most = with_memory(
        lambda: build_schedule(point("wave2d:n=2000", "paper", ranks=10_000, bytes=8))
    )
    assert len(pattern.src) == 4 * 100 * 99
    assert most < 100 * pattern.src.nbytes
