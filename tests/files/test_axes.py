"""Lists, ranges and texts that denote several values of an axis, and texts that denote none."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel import units
from commodel.errors import UserError
from commodel.files import quantities


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (4, [4]),
        ("4KiB", [4096]),
        ([1, "2KiB", 1], [1, 2048, 1]),
        ({"from": 1, "to": 8, "factor": 2}, [1, 2, 4, 8]),
        ({"from": 1, "to": 9, "factor": 2}, [1, 2, 4, 8]),
        ({"from": 1, "to": 4, "factor": 1.5}, [1, 2, 3]),
        ({"from": 0, "to": 8, "step": 4}, [0, 4, 8]),
        ({"from": 5, "to": 5, "step": 4}, [5]),
        ({"from": 7, "to": 8, "factor": 1e300}, [7]),
        ("1,2,4", [1, 2, 4]),
        ("1KiB:8KiB:*2", [1024, 2048, 4096, 8192]),
        ("2:8:+2,100", [2, 4, 6, 8, 100]),
    ],
)
def test_expand(values, wanted):
    assert quantities.expand_axis(values) == wanted


def test_expand_counts():
    assert quantities.expand_axis("2:64:+2", units.parse_count) == list(range(2, 65, 2))
    with pytest.raises(UserError, match="without a unit"):
        quantities.expand_axis("2KiB", units.parse_count)


@pytest.mark.parametrize(
    "values",
    [
        [],
        {},
        "",
        ",",
        "1,,2",
        "1:2",
        "1:2:3",
        "1:2:*",
        "1:2:+0",
        "1:2:*1",
        "1:2:*-2",
        "0:2:*2",
        "4:2:*2",
        "1:2:3:4",
        {"from": 1, "to": 2},
        {"from": 1, "to": 2, "factor": 2, "step": 1},
        {"from": 1, "too": 2, "factor": 2},
        {"from": 1, "to": 2, "factor": "x"},
        {"from": [], "to": 2, "factor": 2},
        {"from": 0, "to": 1 << 50, "step": 1},
        {"from": 1, "to": 1 << 50, "factor": 1.0000001},
        [1] * 100_001,
        ",".join(["1:60000:+1"] * 3),
        [[1]],
    ],
    ids=lambda value: str(value)[:30],
)
def test_expand_refuses(values):
    with pytest.raises(UserError) as caught:
        quantities.expand_axis(values)
    assert "wanted" in caught.value.message or "did you mean" in caught.value.message


@settings(deadline=None)
@given(st.integers(1, 10**6), st.integers(1, 10**9), st.integers(2, 100))
def test_factor_range_is_the_obvious_loop(low, high, factor):
    wanted, entry = [], low
    while entry <= high:
        wanted.append(entry)
        entry *= factor
    if wanted:
        assert quantities.expand_axis({"from": low, "to": high, "factor": factor}) == wanted


@settings(deadline=None)
@given(st.integers(1, 10**6), st.integers(1, 1 << 50), st.floats(1.001, 50))
def test_fractional_factor_rises_from_the_first_entry_and_stays_below_the_last(low, high, factor):
    if low <= high:
        entries = quantities.expand_axis({"from": low, "to": high, "factor": factor})
        assert entries[0] == low
        assert entries[-1] <= high
        assert all(earlier < later for earlier, later in itertools.pairwise(entries))
        assert entries[-1] * factor > high - 1
