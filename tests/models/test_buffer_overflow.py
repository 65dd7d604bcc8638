"""Buffer overflow at a receiver: the fluid model compared with a packet-by-packet simulation and
with equation 4 of the cluster model's paper; the window of a gather, equations 3 to 7."""

import heapq
from dataclasses import replace
from itertools import count
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.advice.gather_windows import gather_bounds
from commodel.files.parameter_sets import read_parameters
from commodel.models.evaluation.buffer_overflow import (
    choose_window,
    compute_transfer_ratio,
    find_departures,
    find_fewest_senders,
    find_most_senders,
    find_overflow,
    find_overflow_candidates,
    time_to_fill,
)
from commodel.models.evaluation.replay import Costs, finish_times
from commodel.patterns.algorithms.gather import gather_windowed
from commodel.patterns.schedule import Schedule
from commodel.platforms.tools import ROOT


def overflow_of_one_row(dst, departure, busy, packets, service, buffer):
    columns = (
        np.broadcast_to(np.asarray(column, dtype=float), (1, len(dst)))
        for column in (departure, busy, packets)
    )
    return find_overflow(np.array(dst), *columns, np.array([[service]]), np.array([[buffer]]))


def simulate_packets(dst, departure, busy, packets, service, buffer) -> np.ndarray:
    """Return the number of lost packets of each message, with one event per packet."""
    arrivals = [
        (start + (number + 0.5) / n * duration, message)
        for message, (start, duration, n) in enumerate(zip(departure, busy, packets, strict=True))
        for number in range(n)
    ]
    queued, free, lost = dict.fromkeys(dst, 0), dict.fromkeys(dst, 0.0), np.zeros(len(dst))
    for now, message in sorted(arrivals):
        to = dst[message]
        while queued[to] and free[to] <= now:
            queued[to], free[to] = queued[to] - 1, free[to] + service
        if not queued[to]:
            free[to] = now + service
        if queued[to] < buffer:
            queued[to] += 1
        else:
            lost[message] += 1
    return lost


messages = st.lists(
    st.tuples(st.integers(0, 2), st.floats(0, 3000), st.floats(50, 2000), st.integers(20, 400)),
    min_size=1,
    max_size=9,
)


@settings(deadline=None, max_examples=60)
@given(messages, st.integers(40, 300), st.floats(0.3, 1))
def test_losses_agree_with_a_packet_by_packet_simulation(rows, buffer, service_ratio):
    """No sender is faster than the receiver; several concurrent senders may be."""
    dst, departure, busy, packets = zip(*rows, strict=True)
    service = service_ratio * min(duration / n for duration, n in zip(busy, packets, strict=True))
    wanted = simulate_packets(dst, departure, busy, packets, service, buffer)
    lost = overflow_of_one_row(dst, departure, busy, packets, service, buffer).lost[0]
    for to in set(dst):
        sent_there = np.array(dst) == to
        assert lost[sent_there].sum() == pytest.approx(
            wanted[sent_there].sum(), abs=4.0 + 3 * len(dst)
        )
    assert lost.sum() <= sum(packets)


@given(messages, st.integers(1, 300), st.floats(0.5, 6))
def test_messages_that_are_not_checked_lose_nothing(rows, buffer, service):
    dst, departure, busy, packets = (
        np.array(column, dtype=float) for column in zip(*rows, strict=True)
    )
    lost = overflow_of_one_row(dst.astype(int), departure, busy, packets, service, buffer).lost[0]
    candidates = find_overflow_candidates(
        dst.astype(int), busy[None], packets[None], np.array([[service]]), np.array([[buffer]])
    )
    assert np.all(np.delete(lost, candidates) <= 0.5 + 1e-9)


@pytest.mark.parametrize("senders", [1, 2, 4, 15])
@pytest.mark.parametrize("packets", [10, 400, 3000])
def test_equation_4(senders, packets):
    g_s, g_r, buffer = 122.4, 123.2, 1935
    outcome = overflow_of_one_row(np.zeros(senders, int), 0.0, packets * g_s, packets, g_r, buffer)
    share = compute_transfer_ratio(senders, senders * packets, g_s, g_r, buffer)
    assert outcome.delivered[0] == pytest.approx(share, abs=0.6 / (senders * packets))
    np.testing.assert_allclose(outcome.lost[0], packets * (1 - share), atol=0.6)
    assert np.all(outcome.retransmitted == (outcome.delivered < 1))


@pytest.mark.parametrize("departures", [[0], [0, 100], [0, 100, 200, 300], [300, 0, 250]])
def test_one_sender_at_a_time_overflows_nothing(departures):
    """The receiver is slow, and 5000 packets per message exceed the buffer of 10 packets."""
    outcome = overflow_of_one_row(np.zeros(len(departures), int), departures, 50.0, 5000, 3.0, 10)
    assert outcome.lost.sum() == 0
    assert outcome.delivered[0] == 1


def test_a_pause_empties_the_buffer():
    """Two bursts that each fit into the buffer lose nothing if the buffer empties between them."""
    concurrent, sequential = (
        overflow_of_one_row([0, 0, 0, 0], [0, 0, t, t], 100.0, 100, 1.0, 120)
        for t in (100.0, 1000.0)
    )
    assert concurrent.lost.sum() > 50
    assert sequential.lost.sum() == 0
    assert sequential.delivered[0] == 1


def test_rows_and_receivers_are_independent():
    rng = np.random.default_rng(3)
    dst = rng.integers(0, 5, 60)
    departure, busy, packets = (
        rng.uniform(0, 900, (7, 60)),
        rng.uniform(50, 300, (7, 60)),
        rng.integers(1, 200, (7, 60)),
    )
    service, buffer = rng.uniform(0.5, 3, (7, 1)), rng.integers(10, 300, (7, 1)).astype(float)
    together = find_overflow(dst, departure, busy, packets, service, buffer)
    for row in range(7):
        worst = []
        for to in range(5):
            sent_there = dst == to
            separate = overflow_of_one_row(
                dst[sent_there],
                departure[row, sent_there],
                busy[row, sent_there],
                packets[row, sent_there],
                service[row, 0],
                buffer[row, 0],
            )
            np.testing.assert_allclose(
                together.lost[row, sent_there], separate.lost[0], rtol=1e-9, atol=1e-6
            )
            np.testing.assert_array_equal(
                together.retransmitted[row, sent_there], separate.retransmitted[0]
            )
            worst.append(separate.delivered[0])
        assert together.delivered[row] == pytest.approx(min(worst))


def reference_departures(schedule: Schedule, send, wire, receive, gap_out) -> np.ndarray:
    """Return when each message of a schedule departs, message by message. Receivers process
    arrivals in order."""
    done, out_free = np.zeros(schedule.ranks), np.zeros(schedule.ranks)
    departure = np.zeros(len(schedule.src))
    for step in np.unique(schedule.step):
        rows = np.flatnonzero(schedule.step == step)
        order, in_flight = count(), []
        for row in rows:
            src = schedule.src[row]
            departure[row] = max(done[src], out_free[src])
            out_free[src] = departure[row] + gap_out[row]
            done[src] += send[row]
            heapq.heappush(in_flight, (departure[row] + send[row] + wire[row], next(order), row))
        while in_flight:
            now, _, row = heapq.heappop(in_flight)
            dst = schedule.dst[row]
            done[dst] = max(now, done[dst]) + receive[row]
        for row in rows:
            done[schedule.src[row]] = max(done[schedule.src[row]], departure[row] + send[row])
    return departure


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_departures_agree_with_the_reference(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 25))
    src = rng.integers(0, 5, rows)
    dst = (src + rng.integers(1, 5, rows)) % 5
    schedule = Schedule.of(5, np.sort(rng.integers(0, 6, rows)), src, dst, 8)
    send, wire, receive, gap = (rng.uniform(0, 5, rows) for _ in range(4))
    predictions = Costs(send=send, wire=wire, receive=receive, gap_out=gap)
    some = np.flatnonzero(rng.random(rows) < 0.7)
    departures = find_departures(schedule, predictions, np.zeros(0), some)
    np.testing.assert_allclose(
        departures, reference_departures(schedule, send, wire, receive, gap)[some], rtol=1e-12
    )


def test_a_token_starts_the_next_sender():
    schedule = gather_windowed(4, 1500, 1)
    predictions = Costs(send=10.0, wire=5.0, receive=1.0, gap_out=10.0)
    blocks = np.flatnonzero(schedule.bytes > 0)
    np.testing.assert_allclose(
        find_departures(schedule, predictions, np.zeros(0), blocks), [0, 26, 52]
    )
    assert finish_times(schedule, predictions, np.zeros(0))[0] == pytest.approx(68)


PUBLISHED = read_parameters(ROOT / "params/published/cluster/fast-ethernet-16.yaml")
G_S, G_R = 122.4e-6, 123.2e-6  # of a full packet, by table 1


def test_bounds_of_the_gather():
    g_s, g_r = G_S, G_R
    assert find_fewest_senders(g_s, g_r) == 1
    assert find_fewest_senders(3.0, 1.0) == 3
    assert find_most_senders(15, 1000, g_s, g_r, 1935) == 15
    assert find_most_senders(15, 4000, 1.0, 1.0, 1935) == 1  # 4000 / 2065
    assert find_most_senders(15, 2000, 1.0, 1.0, 1935) == 15  # 2000 / 65 = 30, but there are 15
    assert choose_window(15, 100, 1.0, 1.0, 1935)[0] == 15  # the buffer holds all 1500 packets
    # admissible: 3 to 9; the last round has 6 senders, enough
    assert choose_window(15, 700, 3.0, 1.0, 7000)[0] == 9
    # admissible: 3 to 7; with 7, the last round would have 1 sender, too few
    assert choose_window(15, 700, 3.0, 1.0, 6000)[0] == 6


@given(
    st.integers(1, 40),
    st.integers(1, 300),
    st.floats(0.5, 5),
    st.floats(0.5, 5),
    st.integers(1, 5000),
)
def test_the_window_loses_nothing_and_keeps_the_receiver_busy(senders, packets, g_s, g_r, buffer):
    w, rule = choose_window(senders, packets, g_s, g_r, buffer)
    assert 1 <= w <= senders
    k = senders * packets
    if (
        find_fewest_senders(g_s, g_r) <= w
        and k > buffer
        and find_most_senders(senders, k, g_s, g_r, buffer) >= find_fewest_senders(g_s, g_r)
    ):
        assert compute_transfer_ratio(w, k, g_s, g_r, buffer) > 1 - 1e-9
    if rule == "equation 7":
        assert senders % w >= find_fewest_senders(g_s, g_r)
    if rule.startswith("equation 7, divides the senders"):
        assert senders % w == 0


def test_equation_3():
    """15 senders send one packet every 122.4 µs each, the receiver removes one every 123.2 µs:
    after 16.9 ms the buffer has 1935 packets."""
    g_s, g_r = G_S, G_R
    after = time_to_fill(15, g_s, g_r, 1935)
    assert after == pytest.approx(16.91e-3, rel=1e-3)
    assert 15 * after / g_s - after / g_r == pytest.approx(1935)
    assert time_to_fill(1, 2.0, 1.0, 1935) == inf


def test_which_rule_of_equation_7_gave_the_window():
    assert choose_window(15, 100, 1.0, 1.0, 1935)[1] == "the buffer holds all packets (algorithm 1)"
    assert choose_window(15, 700, 3.0, 1.0, 7000) == (9, "equation 7")
    assert choose_window(15, 700, 1.0, 1.0, 1935) == (
        1,
        "equation 7, divides the senders (as printed: none)",
    )
    assert choose_window(15, 700, 2.0, 1.0, 6400) == (
        5,
        "equation 7, divides the senders (as printed: 4)",
    )
    assert choose_window(7, 700, 5.5, 1.0, 10)[1].startswith("equation 7 has no solution")


def test_bounds_have_the_time_until_the_buffer_is_full_and_the_delivered_share():
    large, small = gather_bounds(PUBLISHED, 16, 1 << 20), gather_bounds(PUBLISHED, 16, 1 << 14)
    assert large["through"] == pytest.approx(0.2505, abs=1e-4)
    assert large["full_after"] == pytest.approx(16.91e-3, rel=1e-3)
    # all packets are sent before the buffer is full
    assert (small["through"], small["full_after"]) == (1, None)
    without_buffer = replace(
        PUBLISHED, values={name: v for name, v in PUBLISHED.values.items() if name != "B_L"}
    )
    assert (
        gather_bounds(without_buffer, 16, 1 << 20)["window"],
        gather_bounds(without_buffer, 16, 1 << 20)["through"],
    ) == (15, None)
