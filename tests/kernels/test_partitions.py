"""Partitions: shares take equally long, rectangles tile the matrix, columns are optimal, traffic
between nodes equals that of kernel schedules; and drawings of partitions."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from commodel.patterns.build import build_schedule
from commodel_kernels.partitions.arrangement import (
    MAX_RANKS,
    VOLUMES,
    Columns,
    arrange_in_columns,
    exchange_ranks,
    find_best_columns,
    tile_square,
)
from commodel_kernels.partitions.drawing import HATCHES, SQUARE_PX, TINTS, draw_partition
from commodel_kernels.partitions.shares import (
    even_out_times,
    partition_constant,
    partition_dynamic,
    partition_geometric,
    round_shares,
)
from commodel_kernels.rectangles import (
    Rectangles,
    find_tiling_error,
    format_rectangles,
    make_even_grid,
)
from commodel_kernels.speeds import SPEED_FORMS, Speed
from tests.patterns.catalogue import point
from tests.refusals import catch_error_message


def arrangements(ranks: int) -> Iterator[Columns]:
    """Yield every partition of the set of ranks into columns."""
    if not ranks:
        yield []
        return
    for columns in arrangements(ranks - 1):
        last = ranks - 1
        yield [*columns, [last]]
        for place, column in enumerate(columns):
            yield [*columns[:place], [*column, last], *columns[place + 1 :]]


def half_perimeters(columns: Columns, areas: np.ndarray) -> float:
    """Return the sum of half perimeters, in sides of the square, before rounding."""
    shares = np.asarray(areas, dtype=float) / np.sum(areas)
    return len(columns) + sum(len(column) * float(shares[column].sum()) for column in columns)


def find_smallest_sum(areas: np.ndarray) -> float:
    """Return the smallest sum of half perimeters over all arrangements."""
    return min(half_perimeters(columns, areas) for columns in arrangements(len(areas)))


FAST, SLOW = ((100.0, 300.0), (1000.0, 300.0)), ((100.0, 100.0), (1000.0, 100.0))
# does not hold more than 1000 blocks in memory
PAGING = ((100.0, 300.0), (1000.0, 300.0), (2000.0, 30.0))


@st.composite
def curves(draw, most=12):
    kinds = []
    for _ in range(draw(st.integers(1, 4))):
        sizes = sorted(draw(st.sets(st.integers(1, 5000), min_size=1, max_size=6)))
        kinds.append(tuple((float(size), draw(st.floats(1, 1e4))) for size in sizes))
    form = draw(st.sampled_from(SPEED_FORMS))
    speeds = [Speed.of(rows, form) for rows in kinds]
    return [
        speeds[place]
        for place in draw(st.lists(st.integers(0, len(speeds) - 1), min_size=1, max_size=most))
    ]


def seconds(speeds, shares):
    return np.array(
        [float(speed.seconds(share)) for speed, share in zip(speeds, shares, strict=True)]
    )


@given(
    st.lists(st.floats(0.01, 1e6), min_size=1, max_size=60),
    st.integers(1, 10**6),
    st.integers(0, 1),
)
def test_rounded_shares_keep_the_sum_and_are_nearest_to_the_quotas(weights, total, least):
    assume(total >= least * len(weights))
    quotas = total * np.array(weights) / sum(weights)
    counts = round_shares(quotas, total, least)
    assert counts.sum() == total
    assert counts.min() >= least
    if quotas.min() >= least:
        assert np.all(np.abs(counts - quotas) < 1 + 1e-6)


def test_constant_speeds_share_in_proportion():
    speeds = [Speed.of(((1.0, speed),)) for speed in (1.0, 2.0, 3.0)]
    assert (
        list(partition_geometric(speeds, 12)) == list(partition_constant(speeds, 12)) == [2, 4, 6]
    )


def test_a_paging_process_gets_a_smaller_share_than_by_constant_speed():
    """1000 blocks fit into the memory of the process. Constant speeds would assign 1500 of 2000
    blocks."""
    speeds = [Speed.of(PAGING), Speed.of(SLOW)]
    assert list(partition_constant(speeds, 2000)) == [1500, 500]
    shares = partition_geometric(speeds, 2000)
    times = seconds(speeds, shares)
    assert times.max() / times.min() < 1.01
    assert times.max() < seconds(speeds, [1500, 500]).max() / 1.1


@given(curves(), st.integers(1, 20_000))
def test_shares_of_the_geometric_algorithm_take_equally_long(speeds, total):
    assume(total >= len(speeds))
    shares = partition_geometric(speeds, total)
    assert shares.sum() == total
    assert shares.min() >= 0
    if all(speed._spline is None for speed in speeds):  # a spline's times may stand still, and jump
        shorter, longer = seconds(speeds, np.maximum(shares - 1, 0)), seconds(speeds, shares + 1)
        # one block less of any is less than one more of any other
        assert shorter.max() <= longer.min() * (1 + 1e-6)


@given(curves(most=5), st.integers(1, 40))
def test_geometric_shares_are_optimal_up_to_one_block(speeds, total):
    """Rounding by the largest remainder exceeds the optimum by at most one block."""
    assume(total >= len(speeds))
    shares = partition_geometric(speeds, total)
    best = np.zeros(len(speeds), dtype=int)
    # the block goes where it is done first, which is the best there is where times grow
    for _ in range(total):
        best[np.argmin(seconds(speeds, best + 1))] += 1
    if all(speed._spline is None for speed in speeds):
        assert seconds(speeds, np.maximum(shares - 1, 0)).max() <= seconds(speeds, best).max() * (
            1 + 1e-9
        )


@given(curves(), st.integers(1, 20_000), st.floats(0.01, 0.3))
def test_the_dynamic_algorithm_ends_balanced_or_where_blocks_allow_no_more(speeds, total, within):
    assume(total >= len(speeds))
    measured = []

    def measure(shares):
        measured.append(shares.copy())
        return seconds(speeds, shares)

    balance = partition_dynamic(len(speeds), total, measure, Speed.of, within, rounds=12)
    assert balance.shares.sum() == total
    assert balance.rounds == len(measured) <= 12
    assert balance.balanced == (balance.spread <= within)
    np.testing.assert_array_equal(balance.seconds, seconds(speeds, balance.shares))
    assert (
        balance.seconds.max() <= min(seconds(speeds, shares).max() for shares in measured)
        or balance.balanced
    )


def test_the_dynamic_algorithm_needs_few_measurements():
    speeds = [Speed.of(PAGING), Speed.of(FAST), Speed.of(SLOW)]
    balance = partition_dynamic(3, 3000, lambda shares: seconds(speeds, shares), Speed.of, 0.02)
    assert balance.balanced
    assert balance.rounds <= 6
    assert balance.spread <= 0.02
    assert abs(balance.shares - partition_geometric(speeds, 3000)).max() < 0.03 * 3000


def test_the_dynamic_algorithm_keeps_the_best_of_noisy_rounds():
    rng = np.random.default_rng(1)
    noise = lambda shares: shares / np.array([1.0, 2.0, 3.0]) * rng.uniform(0.8, 1.25, 3)  # noqa: E731
    balance = partition_dynamic(3, 600, noise, Speed.of, tolerance=0.001, rounds=8)
    assert not balance.balanced
    assert balance.shares[2] > balance.shares[0]


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=7))
def test_columns_are_the_best_of_all_arrangements(areas):
    areas = np.array(areas)
    assert half_perimeters(find_best_columns(areas), areas) == pytest.approx(
        find_smallest_sum(areas)
    )


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=60))
def test_columns_keep_the_published_guarantee(areas):
    """The sum is at most 7/4 of the lower bound, at which all rectangles are squares (Beaumont et
    al., Algorithmica 34, 2002)."""
    areas = np.array(areas)
    squares = 2 * np.sqrt(areas / areas.sum()).sum()
    assert (
        squares * (1 - 1e-9) <= half_perimeters(find_best_columns(areas), areas) <= 7 / 4 * squares
    )


@pytest.mark.parametrize(
    ("ranks", "sum_"), [(1, 2), (2, 3), (3, 11 / 3), (4, 4), (9, 6), (16, 8), (25, 10)]
)
def test_half_perimeters_of_equal_areas(ranks, sum_):
    assert half_perimeters(find_best_columns(np.ones(ranks)), np.ones(ranks)) == pytest.approx(sum_)


def count_rectangles(tiling):
    """Return the number of rectangles over each block."""
    times = np.zeros((tiling.side, tiling.side), dtype=int)
    for rank in range(tiling.ranks):
        times[tiling.y[rank] : tiling.bottom[rank], tiling.x[rank] : tiling.right[rank]] += 1
    return times


@given(st.data(), st.integers(1, 60), st.integers(1, 70))
def test_rectangles_tile_the_matrix_exactly(data, ranks, side):
    assume(ranks <= side * side)
    areas = np.array(data.draw(st.lists(st.integers(0, 10**6), min_size=ranks, max_size=ranks)))
    assume(areas.any())
    tiling = arrange_in_columns(areas, side)
    assert np.all(count_rectangles(tiling) == 1)
    assert find_tiling_error(tiling) is None
    assert np.array_equal(tiling.area > 0, areas > 0)
    # columns, as SUMMA wants them
    assert sum(len(column) for column in tiling.columns) == np.count_nonzero(areas)


@given(st.data(), st.integers(1, 60), st.integers(8, 200))
def test_areas_differ_from_shares_only_by_rounding(data, ranks, side):
    """Width and height of a rectangle differ from the exact values by less than a block, if no
    column and no rectangle is thinner than a block."""
    areas = np.array(data.draw(st.lists(st.integers(1, 1000), min_size=ranks, max_size=ranks)))
    columns = find_best_columns(areas, side)
    weight = np.array([areas[column].sum() for column in columns])
    wide = side * weight / areas.sum()
    _, _, width, height = tile_square(columns, areas, side)
    assume(wide.min() >= 1)
    for column, held, quota in zip(columns, weight, wide, strict=True):
        high = side * areas[column] / held
        assert abs(width[column[0]] - quota) < 1 + 1e-9
        if high.min() >= 1:
            assert np.all(np.abs(height[column] - high) < 1 + 1e-9)


@given(curves(), st.integers(1, 40))
def test_evening_out_only_makes_the_slowest_faster(speeds, side):
    assume(len(speeds) <= side * side)
    before = arrange_in_columns(partition_geometric(speeds, side * side), side)
    after = even_out_times(before, speeds)
    assert np.all(count_rectangles(after) == 1)
    assert [sorted(column) for column in after.columns] == [
        sorted(column) for column in before.columns
    ]
    assert np.array_equal(after.area > 0, before.area > 0)
    assert seconds(speeds, after.area).max() <= seconds(speeds, before.area).max()


def test_evening_out_ends_where_no_row_and_no_column_can_move():
    """Three ranks of speeds 5, 3 and 1 share a column of 10 rows: heights of 6, 3 and 1 take 1.2,
    which is the optimum."""
    speeds = [Speed.of(((1.0, speed),)) for speed in (5.0, 3.0, 1.0)]
    column = Rectangles.of([0, 0, 0], [0, 4, 8], [10, 10, 10], [4, 4, 2])
    assert list(even_out_times(column, speeds).height) == [6, 3, 1]


def test_as_many_processes_as_blocks_get_one_each():
    assert np.all(arrange_in_columns(np.r_[[1000], np.ones(24)], 5).area == 1)


@pytest.mark.parametrize(
    "share",
    [
        partition_geometric,
        partition_constant,
        lambda curves, total: partition_dynamic(len(curves), total, None, None),
    ],
)
def test_more_processes_than_blocks_are_refused(share):
    text = catch_error_message(share, [Speed.of(SLOW)] * 5, 4)
    assert text == "found 5 processes for 4 blocks, wanted at least a block for each"


OPERATIONS = {"gemm": "summa", "wave": "wave2d"}


@st.composite
def draw_placed_partition(draw):
    """Draw a partition, the node of every rank and the kind of every rank; ranks of a kind have
    equal areas."""
    kinds = draw(st.lists(st.sampled_from("abc"), min_size=2, max_size=10))
    areas = np.array([{"a": 1.0, "b": 2.5, "c": 7.0}[kind] for kind in kinds])
    node = np.array(draw(st.lists(st.integers(0, 3), min_size=len(kinds), max_size=len(kinds))))
    return arrange_in_columns(areas, draw(st.integers(4, 20))), node, kinds


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("arranged")


@pytest.mark.parametrize("kernel", VOLUMES)
@given(case=draw_placed_partition())
def test_volumes_equal_the_bytes_that_the_schedule_sends_between_nodes(folder, kernel, case):
    tiling, node, _ = case
    path = folder / f"{hash(format_rectangles(tiling))}.csv"
    path.write_text(format_rectangles(tiling))
    sent = build_schedule(
        point(f"{OPERATIONS[kernel]}:partition={path}", "paper", ranks=tiling.ranks, bytes=8)
    )
    between = sent.bytes[node[sent.src] != node[sent.dst]].sum() / 8
    assert VOLUMES[kernel](tiling, node) == between


@pytest.mark.parametrize("kernel", VOLUMES)
@given(case=draw_placed_partition())
def test_exchanges_of_ranks_never_send_more_and_keep_the_areas_of_each_kind(kernel, case):
    tiling, node, kinds = case
    volume = VOLUMES[kernel]
    near = exchange_ranks(tiling, node, kinds, volume)
    assert find_tiling_error(near) is None
    assert volume(near, node) <= volume(tiling, node)
    assert [column.tolist() and near.width[column[0]] for column in near.columns] == [
        tiling.width[column[0]] for column in tiling.columns
    ]
    for kind in set(kinds):
        ranks = [rank for rank, own in enumerate(kinds) if own == kind]
        assert sorted(near.area[ranks]) == sorted(tiling.area[ranks])


@pytest.mark.parametrize("seed", range(5))
def test_exchanges_bring_shuffled_ranks_of_a_node_together(seed):
    """Four ranks of each of four nodes are shuffled. After pairwise exchanges the traffic is at
    most that of one column per node."""
    node, volume = np.random.default_rng(seed).permutation(np.arange(16) % 4), VOLUMES["wave"]
    shuffled = make_even_grid(16, (4, 4))
    near = exchange_ranks(shuffled, node, ["a"] * 16, volume)
    assert volume(near, node) <= 2 * 3 * 16 < volume(shuffled, node)  # three cuts, both ways


def test_above_the_limit_of_ranks_none_are_exchanged():
    tiling = make_even_grid(MAX_RANKS + 1, (MAX_RANKS + 1, 1))
    assert (
        exchange_ranks(
            tiling, np.arange(MAX_RANKS + 1) % 2, ["a"] * (MAX_RANKS + 1), VOLUMES["wave"]
        )
        is tiling
    )


SVG = "{http://www.w3.org/2000/svg}"


def drawn(tiling, node, titles=None):
    return ET.fromstring(
        draw_partition(
            tiling, np.array(node), titles or [f"rank {rank}" for rank in range(tiling.ranks)]
        )
    )


def test_every_rectangle_with_work_is_drawn_once_with_a_proportional_area():
    tiling = arrange_in_columns(np.array([5, 0, 7, 1, 3]), 16)
    picture = drawn(tiling, [0, 0, 1, 1, 2])
    shapes = [
        shape for shape in picture.findall(f"{SVG}rect") if shape.find(f"{SVG}title") is not None
    ]
    area = [
        float(shape.get("width")) * float(shape.get("height")) * (16 / SQUARE_PX) ** 2
        for shape in shapes
    ]
    assert area == pytest.approx(tiling.area[tiling.area > 0])
    assert [shape.find(f"{SVG}title").text for shape in shapes] == [
        "rank 0",
        "rank 2",
        "rank 3",
        "rank 4",
    ]


def test_ranks_are_numbered_and_nodes_listed():
    picture = drawn(make_even_grid(8, (2, 2)), [0, 0, 7, 7])
    assert [text.text for text in picture.findall(f"{SVG}text")] == [
        "0",
        "1",
        "2",
        "3",
        "node 0",
        "node 7",
    ]


@pytest.mark.parametrize("nodes", [16, 96])
def test_every_node_has_a_distinct_fill(nodes):
    picture = drawn(make_even_grid(96, (1, nodes)), range(nodes))
    looks = {ET.tostring(shape).split(b">", 1)[1] for shape in picture.iter(f"{SVG}pattern")}
    strokes = {pattern.find(f"{SVG}path").get("d") for pattern in picture.iter(f"{SVG}pattern")}
    assert len(looks) == nodes <= len(HATCHES) * len(TINTS)
    assert len(strokes) == 16  # that many also on a black-and-white print


def test_titles_are_escaped_in_pictures():
    picture = drawn(make_even_grid(2, (1, 1)), [0], ["<script>"])
    assert not list(picture.iter(f"{SVG}script"))


def test_unreadable_pictures_are_refused():
    assert "20,001 rectangles" in catch_error_message(
        draw_partition, make_even_grid(20_001, (1, 20_001)), np.zeros(20_001), [""] * 20_001
    )
