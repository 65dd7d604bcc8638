"""The library's own choice beside a family's picks, on two layouts: who gains, and layouts that tie."""

import pandas as pd
import pytest

from commodel.compare.comparison import compare, selection, summarize
from commodel.records import Batch, Point
from tests.planning import planned

LAYOUTS = [
    Point("p", "bcast", choice, "", layout, 8, 8, nodes=4)
    for choice in ("linear", "library", "binomial")
    for layout in ("block:2", "cyclic:2")
]
TIMES = dict(zip([point.id for point in LAYOUTS], [10.0, 6.0, 9.0, 8.0, 4.0, 16.0], strict=True))


def laid_out(prices):
    """Two algorithms and the library on two layouts; `prices` of linear and binomial on block and cyclic."""
    plan = planned(Batch("b", "p", 8, tuple(LAYOUTS)), families=("f",))
    about = {"kind": "point", "valid": True, "pass": 1, "skew": 0.0, "stop": "precision"}
    rows = [about | {"id": case, "seconds": time} for case, time in TIMES.items() for _ in range(6)]
    priced = [point.id for point in LAYOUTS if point.priced]
    predictions = [(case, "f", price, price, price, "ok") for case, price in zip(priced, prices, strict=True)]
    names = ["point", "family", "predicted", "predicted_low", "predicted_high", "status"]
    return compare(plan, pd.DataFrame(rows), pd.DataFrame(predictions, columns=names))


def test_the_library_is_measured_and_of_no_family():
    rows = laid_out([1, 2, 3, 4])
    own = rows[rows["algorithm"] == "library"]
    assert own["family"].tolist() == ["", ""]
    assert own["status"].tolist() == ["library: measured, not priced"] * 2
    assert own["measured"].tolist() == [9.0, 8.0]
    assert own["fan_in"].tolist() == [0, 0]
    assert not own[["chosen", "best", "tie", "inside"]].any(axis=None)
    assert rows["library"].tolist() == [8.0] * 6  # the better of its layouts
    assert rows["fastest"].tolist() == [4.0] * 6
    assert summarize(rows, ["family"])["family"].tolist() == ["f"]
    assert selection(rows, ["family"])["family"].tolist() == ["f"]


def test_what_a_family_s_pick_is_to_the_library():
    rows = laid_out([1, 2, 3, 4])
    (pick,) = selection(rows, ["family"]).to_dict("records")
    assert (pick["over_library"], pick["over_fastest"]) == pytest.approx((10 / 8, 10 / 4))
    assert pick["regret_mean"] == pytest.approx(10 / 4 - 1)
    assert pick["tied"] == 0
    (right,) = selection(laid_out([4, 3, 1, 2]), ["family"]).to_dict("records")
    assert (right["over_library"], right["over_fastest"], right["regret_mean"]) == pytest.approx((0.5, 1, 0))


def test_means_over_the_library_are_geometric():
    """A family that is twice as fast in one job and half as fast in the other gains nothing."""
    rows = laid_out([4, 3, 1, 2])
    twice = pd.concat([rows, rows.assign(group="other", measured=4 * rows["measured"])])
    (pick,) = selection(twice, ["family"]).to_dict("records")
    assert pick["over_library"] == pytest.approx(1)


def test_layouts_that_a_family_prices_the_same_are_a_tie():
    blind = laid_out([2, 2 + 1e-12, 3, 3])
    assert blind["chosen"].tolist() == [True, False, False, False, False, False]  # the first in the plan
    assert blind["tie"].tolist() == blind["chosen"].tolist()
    last = laid_out([2 + 1e-12, 2, 3, 3])  # not the smaller by the last bit
    assert last["chosen"].tolist() == blind["chosen"].tolist()
    assert selection(blind, ["family"])["tied"].tolist() == [1.0]
    seeing = laid_out([2.1, 2, 3, 3])
    assert seeing["chosen"].tolist() == [False, True, False, False, False, False]
    assert not seeing["tie"].any()
