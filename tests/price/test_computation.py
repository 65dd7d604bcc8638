"""Times of computation: share over speed, rank by rank, with the interval of the speed."""

import numpy as np
import pytest

from commodel.models.speeds import Speed
from commodel.patterns.rectangles import Rectangles, even
from commodel.price.kernel_times import computation, iterations

FAST, SLOW = Speed.of(((1.0, 8.0, 4.0, 16.0),)), Speed.of(((1.0, 2.0),))


def test_seconds_are_share_over_speed_and_intervals_turn_round():
    computed = computation(even(4, (2, 1)), [FAST, SLOW])
    assert list(computed.seconds) == [1, 4]
    assert (computed.low[0], computed.high[0]) == (0.5, 2)
    assert (computed.low[1], computed.high[1]) == (4, 4)
    assert computed.slowest == 4
    assert computed.imbalance == pytest.approx(4 / 2.5 - 1)


def test_a_rank_without_work_takes_no_time():
    tiling = Rectangles.of([0, 0], [0, 0], [4, 0], [4, 0])
    np.testing.assert_array_equal(computation(tiling, [SLOW, FAST]).seconds, [8, 0])


def test_summa_has_an_iteration_for_each_block_of_a_side():
    assert (iterations("gemm", even(4, (2, 1))), iterations("wave", even(4, (2, 1)))) == (4, 1)
