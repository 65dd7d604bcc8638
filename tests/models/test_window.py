"""The window of the cluster model's gather: equations 3 to 7 of its paper."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.advice.gather_windows import gather_bounds
from commodel.files.parameter_sets import read_parameters
from commodel.models.pricing.buffer_overflow import fewest, most, time_to_fill, transfer_ratio, window
from commodel.platforms.tools import ROOT

PUBLISHED = read_parameters(ROOT / "params/published/cluster/fast-ethernet-16.yaml")
G_S, G_R = 122.4e-6, 123.2e-6  # of a full packet, by table 1


def test_bounds_of_the_gather():
    g_s, g_r = G_S, G_R
    assert fewest(g_s, g_r) == 1
    assert fewest(3.0, 1.0) == 3
    assert most(15, 1000, g_s, g_r, 1935) == 15
    assert most(15, 4000, 1.0, 1.0, 1935) == 1  # 4000 / 2065
    assert most(15, 2000, 1.0, 1.0, 1935) == 15  # 2000 / 65 = 30, but there are 15
    assert window(15, 100, 1.0, 1.0, 1935)[0] == 15  # the buffer holds all 1500
    assert window(15, 700, 3.0, 1.0, 7000)[0] == 9  # between 3 and 9; 6 are left over at the end, enough
    assert window(15, 700, 3.0, 1.0, 6000)[0] == 6  # between 3 and 7; of 7, 1 would be left over, too few


def loss(x, k, g_s, g_r, buffer):
    """A packet at a time through a buffer: arrivals evenly spaced, the departures whenever there is something."""
    held, lost, next_out = 0.0, 0, 0.0
    for number in range(k):
        now = number * g_s / x
        while held > 0 and next_out <= now:
            held, next_out = held - 1, next_out + g_r
        if held == 0:
            next_out = max(next_out, now + g_r)
        if held < buffer:
            held += 1
        else:
            lost += 1
    return 1 - lost / k


@given(st.integers(2, 12), st.integers(200, 3000), st.integers(20, 150))
def test_the_transfer_ratio_is_what_a_buffer_does(x, k, buffer):
    """Equation 4 against a buffer filled and emptied packet by packet."""
    g_s, g_r = 5.0, 1.5
    assert transfer_ratio(x, k, g_s, g_r, buffer) == pytest.approx(loss(x, k, g_s, g_r, buffer), abs=0.03)


@given(st.integers(1, 40), st.integers(1, 300), st.floats(0.5, 5), st.floats(0.5, 5), st.integers(1, 5000))
def test_the_window_loses_nothing_and_keeps_the_receiver_busy(senders, packets, g_s, g_r, buffer):
    w, rule = window(senders, packets, g_s, g_r, buffer)
    assert 1 <= w <= senders
    k = senders * packets
    if fewest(g_s, g_r) <= w and k > buffer and most(senders, k, g_s, g_r, buffer) >= fewest(g_s, g_r):
        assert transfer_ratio(w, k, g_s, g_r, buffer) > 1 - 1e-9
    if rule == "equation 7":
        assert senders % w >= fewest(g_s, g_r)
    if rule.startswith("equation 7, nothing left over"):
        assert senders % w == 0


def test_equation_3():
    """15 senders a packet each 122.4 µs, and one in 123.2 µs goes: 1935 are there after 16.9 ms, in a slow fill too."""
    g_s, g_r = G_S, G_R
    after = time_to_fill(15, g_s, g_r, 1935)
    assert after == pytest.approx(16.91e-3, rel=1e-3)
    assert 15 * after / g_s - after / g_r == pytest.approx(1935)
    assert time_to_fill(1, 2.0, 1.0, 1935) == inf


def test_which_rule_of_equation_7_gave_the_window():
    assert window(15, 100, 1.0, 1.0, 1935)[1] == "the buffer holds all (algorithm 1)"
    assert window(15, 700, 3.0, 1.0, 7000) == (9, "equation 7")
    assert window(15, 700, 1.0, 1.0, 1935) == (1, "equation 7, nothing left over (as printed: none)")
    assert window(15, 700, 2.0, 1.0, 6400) == (5, "equation 7, nothing left over (as printed: 4)")
    assert window(7, 700, 5.5, 1.0, 10)[1].startswith("nothing fits equation 7")


def test_bounds_say_when_the_buffer_is_full_and_what_gets_through():
    large, small = gather_bounds(PUBLISHED, 16, 1 << 20), gather_bounds(PUBLISHED, 16, 1 << 14)
    assert large["through"] == pytest.approx(0.2505, abs=1e-4)
    assert large["full_after"] == pytest.approx(16.91e-3, rel=1e-3)
    assert (small["through"], small["full_after"]) == (1, None)  # they have all sent before
    blind = replace(PUBLISHED, values={name: v for name, v in PUBLISHED.values.items() if name != "B_L"})
    assert (gather_bounds(blind, 16, 1 << 20)["window"], gather_bounds(blind, 16, 1 << 20)["through"]) == (15, None)
