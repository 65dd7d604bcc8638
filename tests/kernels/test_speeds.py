"""Curves of speed: they interpolate their rows, a larger share takes longer, and invalid files are
refused."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel_kernels.speeds import (
    SPEED_FORMS,
    KernelSpeeds,
    Speed,
    Speeds,
    find_longest_growing,
    read_speeds,
    write_speeds,
)
from tests.refusals import catch_error_message

ROWS = ((16.0, 1.0e5), (64.0, 2.0e5, 1.9e5, 2.2e5), (1024.0, 3.0e5), (4096.0, 2.0e5))
FILE = """platform: fermi
simulated: true
kernels:
  gemm:
    block: 32
    kinds:
      fat/6:
        - [16, 1.0e+5]
        - ROW
"""


@st.composite
def rows(draw):
    sizes = draw(st.lists(st.integers(1, 10**6), min_size=1, max_size=12, unique=True))
    return tuple((float(size), draw(st.floats(1e-2, 1e7))) for size in sorted(sizes))


@pytest.mark.parametrize("form", SPEED_FORMS)
def test_a_speed_curve_passes_through_the_rows_and_is_constant_outside(form):
    speed = Speed.of(ROWS, form)
    assert speed.dropped == 0
    np.testing.assert_allclose(speed.at([row[0] for row in ROWS]), [row[1] for row in ROWS])
    np.testing.assert_allclose(speed.at([0, 1, 5000, 1e9]), [1e5, 1e5, 2e5, 2e5])


def test_between_rows_piecewise_is_the_straight_line():
    assert Speed.of(ROWS).at(40) == pytest.approx(1.5e5)


def test_akima_is_scipys():
    from scipy.interpolate import Akima1DInterpolator

    x = np.linspace(16, 4096, 500)
    spline = Akima1DInterpolator([row[0] for row in ROWS], [row[1] for row in ROWS])(x)
    np.testing.assert_allclose(Speed.of(ROWS, "akima").at(x), np.minimum(spline, 3e5))


def test_a_constant_speed_is_one_row():
    speed = Speed.of(((100.0, 50.0),))
    assert speed.seconds(300.0) == 6
    assert speed.largest_share(6.0) == pytest.approx(300)


def test_the_interval_follows_the_rows():
    low, high = Speed.of(ROWS).interval(64.0)
    assert (low, high) == (pytest.approx(1.9e5), pytest.approx(2.2e5))


def test_a_row_faster_than_the_row_of_a_smaller_share_is_dropped():
    outlier = (*ROWS[:2], (70.0, 1.0), *ROWS[2:])  # 70 s for what 64 takes 0.3 ms
    speed = Speed.of(outlier)
    assert (speed.dropped, list(speed.size)) == (1, [16, 64, 1024, 4096])


@given(st.lists(st.integers(0, 30).map(float), min_size=1, max_size=9))
def test_the_rows_kept_are_as_many_as_can_be(times):
    kept = [times[place] for place in find_longest_growing(np.array(times))]
    assert all(a < b for a, b in pairwise(kept))
    masks = (
        [t for bit, t in enumerate(times) if mask >> bit & 1] for mask in range(1, 1 << len(times))
    )
    assert len(kept) == max(len(part) for part in masks if all(a < b for a, b in pairwise(part)))


@pytest.mark.parametrize("form", SPEED_FORMS)
@given(rows=rows(), seconds=st.floats(1e-9, 1e9))
def test_the_largest_share_takes_the_given_time(form, rows, seconds):
    speed = Speed.of(rows, form)
    x = speed.largest_share(seconds)
    assert x > 0
    assert np.all(speed.at(x) > 0)
    if form == "piecewise" or len(speed.size) < 3:
        # speeds may fall to a billionth
        assert speed.seconds(x) == pytest.approx(seconds, rel=1e-3)


@given(rows=rows(), seconds=st.lists(st.floats(1e-9, 1e9), min_size=2, max_size=5))
def test_more_time_is_enough_for_more(rows, seconds):
    for form in SPEED_FORMS:
        shares = [Speed.of(rows, form).largest_share(time) for time in sorted(seconds)]
        assert all(b >= a * (1 - 1e-9) for a, b in pairwise(shares))


def test_a_spline_is_inverted_to_a_thousandth():
    speed = Speed.of(ROWS, "akima")
    for x in (20.0, 50.0, 500.0, 3000.0):
        assert speed.largest_share(float(speed.seconds(x))) == pytest.approx(x, rel=1e-3)


def test_speeds_read_from_a_file_equal_the_written_speeds(tmp_path):
    speeds = Speeds(
        {"gemm": KernelSpeeds({"fat/6": ROWS}, 32)}, "fermi", True, "by hand", {"seed": 1}
    )
    write_speeds(tmp_path / "s.yaml", speeds)
    assert read_speeds(tmp_path / "s.yaml") == speeds


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        (
            "[32, 0]",
            "s.yaml:9: kernels.gemm.kinds.fat/6[1][1]: found a speed of 0, wanted more than 0",
        ),
        ("[32, -2.5]", "[1][1]: found a speed of -2.5, wanted more than 0"),
        ("[32, 1.0e+200]", "found a speed of 1e+200, wanted 1e-30 to 1e+30"),
        ("[32, .nan]", "found '.nan', wanted a number"),
        ("[32, 1.0, 0, 2.0]", "[1][2]: found a low of 0, wanted more than 0"),
        ("[32]", "[1]: found 1 numbers, wanted [size, speed] or [size, speed, low, high]"),
        ("[16, 1.0e+5]", "[1][0]: found size 16 after 16, wanted sizes that grow"),
        ("[32, 5.0, 6.0, 7.0]", "found speed 5 with an interval from 6 to 7, which lacks it"),
        ("[32, fast]", "found 'fast', wanted a number"),
        ("{size: 32}", "found a mapping, wanted a list"),
    ],
)
def test_a_bad_row_is_refused_with_the_line_number(tmp_path, row, wanted):
    (tmp_path / "s.yaml").write_text(FILE.replace("ROW", row))
    text = catch_error_message(read_speeds, tmp_path / "s.yaml")
    assert wanted in text
    assert "s.yaml:9:" in text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("kernels: {}", "kernels: found none, wanted gemm or wave"),
        ("kernels: {gem: {kinds: {a: [[1, 1]]}}}", "found an unknown kernel; did you mean 'gemm'?"),
        ("kernels: {wave: {kinds: {}}}", "found none, wanted a curve for each kind of process"),
        ("kernels: {wave: {kinds: {a: []}}}", "found no rows"),
        ("kernels: {wave: {block: 0, kinds: {a: [[1, 1]]}}}", "kernels.wave.block: found 0"),
        ("kernels: {wave: {kinds: {a: [[1, 1]]}, unit: s}}", "unknown key"),
        ("platform: fermi", "found no key 'kernels'"),
    ],
)
def test_a_bad_file_is_refused(tmp_path, text, wanted):
    (tmp_path / "s.yaml").write_text(text)
    assert wanted in catch_error_message(read_speeds, tmp_path / "s.yaml")


def test_the_error_for_a_kind_without_speeds_names_the_kinds_with_speeds():
    speeds = Speeds({"gemm": KernelSpeeds({"fat/6": ROWS, "thin/4": ROWS})})
    text = catch_error_message(speeds.curves, "gemm", ["fat/6", "fat/gpu"])
    assert text == "no speeds of 'fat/gpu' for gemm; there are those of fat/6, thin/4"
    assert "did you mean 'gemm'?" in catch_error_message(speeds.curves, "gem", ["fat/6"])


def test_processes_of_a_kind_share_a_curve():
    speeds = Speeds({"gemm": KernelSpeeds({"fat/6": ROWS, "thin/4": ROWS})})
    first, second, third = speeds.curves("gemm", ["fat/6", "thin/4", "fat/6"])
    assert first is third is not second
