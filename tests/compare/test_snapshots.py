"""Changes between two snapshots: ratios with intervals computed by hand, and the changes that
count."""

import math
from types import SimpleNamespace

import pytest

from commodel.compare.snapshots import (
    NOT_DETERMINED,
    ONLY_IN_NEW,
    ONLY_IN_OLD,
    OTHER_MESSAGES,
    PARAMETER,
    POINT,
    SAME,
    SLOWER,
    Quantity,
    Snapshot,
    compare_provenance,
    describe_changes,
    list_changes,
    select_measured_quantities,
)
from commodel.errors import UserError


def snapshot(values, platform="net", name="s", about=None, kind=POINT):
    quantities = {(kind, platform, what): quantity for what, quantity in values.items()}
    return Snapshot(name, quantities, about or {})


def time(value, low=None, high=None, **about):
    return Quantity(value, low or value, high or value, "s", **about)


def test_a_ratio_has_the_interval_of_two_independent_measurements():
    old, new = snapshot({"a": time(1.0, 0.9, 1.2)}), snapshot({"a": time(2.0, 1.6, 2.2)})
    (change,) = list_changes(old, new)
    assert change.ratio == 2.0
    assert math.log(2 / change.low) == pytest.approx(
        math.hypot(math.log(2 / 1.6), math.log(1.2 / 1.0))
    )
    assert math.log(change.high / 2) == pytest.approx(
        math.hypot(math.log(2.2 / 2), math.log(1.0 / 0.9))
    )
    assert change.verdict == SLOWER


@pytest.mark.parametrize(
    ("new", "verdict", "beyond"),
    [
        (time(1.3, 1.25, 1.35), SLOWER, True),
        (time(1.3, 0.9, 1.6), SAME, False),  # its interval explains it
        (time(1.05, 1.04, 1.06), SLOWER, False),  # told apart, and small
        (time(0.8, 0.79, 0.81), "faster", True),
        (time(1.3, identity="x"), OTHER_MESSAGES, False),
        (time(1.3, known=False), NOT_DETERMINED, False),
    ],
)
def test_a_change_counts_if_significant_and_larger_than_the_share(new, verdict, beyond):
    (change,) = list_changes(snapshot({"a": time(1.0, 0.99, 1.01)}), snapshot({"a": new}))
    assert (change.verdict, change.exceeds(0.1)) == (verdict, beyond)


def test_a_difference_below_1_percent_is_no_change_but_may_exceed_a_smaller_share():
    (change,) = list_changes(snapshot({"a": time(1.0)}), snapshot({"a": time(1.009)}))
    assert change.verdict == SAME
    assert [change.exceeds(share) for share in (0.005, 0.009001)] == [True, False]
    (change,) = list_changes(snapshot({"a": time(1.0)}), snapshot({"a": time(1.011)}))
    assert change.verdict == SLOWER


def test_labels_say_the_meaning_of_values_of_functions_in_pieces():
    names = ["shares L.node.x5", "shares L.node.b5", "shares L.node.b", "loggp L"]
    same = snapshot({name: time(1.0) for name in names}, kind=PARAMETER)
    labels = [change.label for change in list_changes(same, same)]
    assert labels == [
        f"{names[0]} (size above which piece 5 applies)",
        f"{names[1]} (b of piece 5)",
        *names[2:],
    ]
    (point,) = list_changes(snapshot({names[0]: time(1.0)}), snapshot({names[0]: time(1.0)}))
    assert point.label == names[0]


def test_a_value_that_was_zero_exceeds_every_share_where_intervals_part():
    zero, apart = time(0.0), time(1e-6, 9e-7, 2e-6)
    (change,) = list_changes(
        snapshot({"L": zero}, kind=PARAMETER), snapshot({"L": apart}, kind=PARAMETER)
    )
    assert change.verdict == "larger"
    assert change.exceeds(1.0)
    (change,) = list_changes(
        snapshot({"L": zero}, kind=PARAMETER), snapshot({"L": zero}, kind=PARAMETER)
    )
    assert change.verdict == SAME


def test_points_in_one_snapshot_only_are_reported_and_exceed_no_limit():
    several = list_changes(
        snapshot({"a": time(1.0), "b": time(1.0)}), snapshot({"a": time(1.0), "c": time(1.0)})
    )
    assert [change.verdict for change in several] == [SAME, ONLY_IN_OLD, ONLY_IN_NEW]
    assert not any(change.exceeds(0.1) for change in several)


def test_points_in_one_snapshot_only_are_named():
    old, new = (
        snapshot({"a": time(1.0), "b": time(1.0)}),
        snapshot({"a": time(1.0), **{x: time(1.0) for x in "cdefg"}}),
    )
    *_, gone, fresh = describe_changes(old, new, list_changes(old, new))
    assert gone == "only in the old one: net b"
    assert fresh == "only in the new one: net c; net d; net e; net f and 1 more"


def test_one_platform_each_is_the_same_one_by_another_name():
    (change,) = list_changes(snapshot({"a": time(1.0)}, "old"), snapshot({"a": time(1.0)}, "new"))
    assert (change.platform, change.verdict) == ("old", SAME)


@pytest.mark.parametrize(("there", "verdict"), [("x", SLOWER), ("y", OTHER_MESSAGES), ("", SLOWER)])
def test_points_of_a_renamed_platform_are_matched_by_message_digest_not_by_id(there, verdict):
    old_points = {"a": time(1.0, identity="1", message_digest="x"), "b": time(1.0)}
    new_points = {"a": time(2.0, identity="2", message_digest=there), "c": time(1.0)}
    old = snapshot(old_points, "old", about={("old", "cpu"): "x"})
    new = snapshot(new_points, "new", about={("new", "cpu"): "x"})
    compared = list_changes(old, new)
    assert [change.verdict for change in compared] == [verdict, ONLY_IN_OLD, ONLY_IN_NEW]
    assert [change.platform for change in compared] == ["old", "old", "new"]
    assert compare_provenance(old, new) == []


def test_points_of_the_library_have_the_name_that_reports_have():
    row = {
        "operation": "bcast",
        "alternative": "library",
        "leaves": 0,
        "ranks": 8,
        "layout": "block",
        "bytes": 1024,
    }
    row |= {
        "measured": 1.0,
        "measured_low": 1.0,
        "measured_high": 1.0,
        "platform": "net",
        "point": "x",
    }
    assert list(select_measured_quantities([SimpleNamespace(**row)])) == [
        (POINT, "net", "bcast MPI default, 8 ranks, block, 1 KiB")
    ]


def test_nothing_in_common_is_refused():
    with pytest.raises(UserError, match="no point and no parameter in common"):
        list_changes(snapshot({"a": time(1.0)}), snapshot({"b": time(1.0)}))


def test_the_comparison_of_provenance_lists_only_differences():
    old = snapshot({}, about={("net", "mpi"): "MPICH 4", ("net", "cpu"): "x"})
    new = snapshot(
        {}, about={("net", "mpi"): "MPICH 5", ("net", "cpu"): "x", ("net", "kernel"): "6"}
    )
    assert compare_provenance(old, new) == [
        ("net", "mpi", "MPICH 4", "MPICH 5"),
        ("net", "kernel", "", "6"),
    ]
