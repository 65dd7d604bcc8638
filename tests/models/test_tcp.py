"""Messages over TCP through one switch: losses and retransmissions, compared with closed forms and
with a laboratory experiment."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.models.evaluation.tcp import Port, simulate
from commodel.models.evaluation.values import Values
from commodel.models.families import complete_values, find_family
from commodel.models.families.cluster import describe_limits
from commodel.parameters import Estimate, ParameterSet
from commodel.patterns.build import build_schedule
from commodel.patterns.schedule import Schedule
from commodel.predictions.predictions import predict
from tests.patterns.catalogue import point

GAP, WAY, TIMEOUT = 125e-6, 60e-6, 0.2
PORT = Port(GAP, GAP, WAY, WAY, 1e9, TIMEOUT)


def gather(packets, senders=7):
    return Schedule.of(senders + 1, 0, np.arange(1, senders + 1), 0, packets, root=0)


def repeats_of(packets, senders=7, repeats=20, seed=1, **port):
    pattern = gather(packets, senders)
    gaps = (GAP, port.get("gap_in", GAP))
    return simulate(pattern, np.full(senders, packets), gaps, replace(PORT, **port), repeats, seed)


@pytest.mark.parametrize(("senders", "packets"), [(1, 1), (1, 40), (7, 1), (7, 12), (3, 700)])
def test_a_gather_without_losses_takes_the_receive_time_of_all_packets(senders, packets):
    outcome = repeats_of(packets, senders)
    skew = senders.bit_length() * (WAY + GAP)
    least = (senders * packets - 1) * GAP + WAY
    assert outcome.drops.sum() == outcome.timeouts.sum() == 0
    assert np.all(outcome.finish[:, 0] >= least)
    assert np.all(outcome.finish[:, 0] <= least + skew + GAP)


def test_all_that_is_lost_is_sent_again():
    """With any buffer of the port, all repetitions end and take at least as long as the receiver
    needs for all packets."""
    for buffer in (1, 3, 21, 86):
        outcome = repeats_of(100, buffer=buffer)
        assert outcome.drops.sum() > 0
        assert np.all(outcome.finish[:, 0] > 699 * GAP)
        assert np.all(outcome.finish > 0)


def test_a_lost_single_packet_waits_for_the_timeout():
    """No later packet reveals the loss. Some of the concurrent packets exceed the buffer."""
    outcome = repeats_of(1, buffer=2, gap_in=10 * GAP)
    lost = outcome.drops > 0
    assert lost.any()
    assert np.array_equal(outcome.timeouts > 0, lost)
    assert np.all(outcome.finish[lost, 0] > TIMEOUT)
    assert np.all(outcome.finish[~lost, 0] < TIMEOUT / 10)


def test_a_lost_packet_that_others_follow_is_sent_again_soon():
    """Two senders send long messages: the retransmission takes place before the port is idle."""
    outcome = repeats_of(2000, senders=2, buffer=30, repeats=5)
    assert outcome.drops.sum() > 0
    assert np.median(outcome.finish[:, 0]) < 1.05 * 4000 * GAP


def test_more_senders_and_smaller_buffers_lose_more():
    by_senders = [
        repeats_of(60, senders=senders, buffer=21).drops.mean() for senders in (1, 2, 4, 7)
    ]
    by_buffer = [repeats_of(60, buffer=buffer).drops.mean() for buffer in (10, 40, 160)]
    assert by_senders[0] == 0
    assert by_senders == sorted(by_senders)
    assert by_buffer == sorted(by_buffer, reverse=True)


def test_the_same_seed_has_the_same_repeats():
    one, same, other = (repeats_of(50, buffer=21, seed=seed).finish for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


# Fitted in the lab of `make lab-paper` to eight hosts at 100 Mbit/s, whose switch holds 32 KiB for
# each.
FITTED = {
    "O_s.a": 7.2e-6, "O_s.b": 3.5e-9, "g_s.a": 6.8e-6, "g_s.b": 8.02e-8, "g_r.a": 5.1e-6, "g_r.b": 8.22e-8,
    "O_r.a": 0.0, "U_r": 1.4e-6, "L_0": 0.0, "L_p": 1.81e-5, "L_m": 1.35e-8, "B_L": 21.5, "timeout": 0.1976,
}  # fmt: skip
LAB = [  # its medians in ms: ranks, bytes, of linear, windowed:1 and windowed:2
    (4, 4096, 1.06, 1.06, 1.06), (4, 16384, 4.35, 4.34, 4.33), (4, 65536, 17.56, 17.43, 17.39),
    (4, 262144, 72.4, 69.8, 74.0), (4, 1048576, 375.8, 280.5, 316.7), (8, 4096, 2.52, 2.53, 2.53),
    (8, 16384, 15.66, 10.26, 13.59), (8, 65536, 47.5, 40.7, 40.8), (8, 262144, 316.3, 166.4, 167.6),
    (8, 1048576, 815.9, 713.1, 692.0),
]  # fmt: skip
CHOICES = ("linear", "windowed:1", "windowed:2")


def fitted(**settings):
    numbers = {name: Estimate(value, "", value, value) for name, value in FITTED.items()}
    forms = dict.fromkeys(("O_s", "g_s", "g_r"), "linear")
    return ParameterSet("cluster", "", "", numbers, forms=forms, settings=settings)


def medians(parameters):
    points = [
        point("gather", choice, ranks=ranks, bytes=size)
        for ranks, size, *_ in LAB
        for choice in CHOICES
    ]
    return np.array([row.seconds for row in predict(parameters, points)]).reshape(-1, len(CHOICES))


def test_gathers_of_the_lab():
    """If each loss takes a timeout, the mean error exceeds a factor of 3."""
    measured = np.array([row[2:] for row in LAB]) * 1e-3
    errors = {
        how: np.exp(np.abs(np.log(medians(fitted(recovery=how)) / measured)))
        for how in ("tcp", "timeout")
    }
    assert errors["tcp"].mean() < 1.15
    assert errors["tcp"].max() < 1.6
    assert errors["timeout"][:, 0].mean() > 3


def test_draws_are_single_repeats():
    chances = tuple(((np.arange(40) + 0.5) / 40).tolist())
    parameters = replace(
        fitted(recovery="tcp"),
        values={**fitted().values, "chance": Estimate(0.5, "", 0.5, 0.5)},
        draws={"chance": chances},
    )
    (row,) = predict(parameters, [point("gather", "linear", ranks=8, bytes=65536)])
    assert row.parameter_low < row.seconds < row.parameter_high
    assert row.parameter_high > 0.2
    assert row.parameter_low == pytest.approx(0.0393, rel=0.02)


def test_the_validity_states_the_range_and_how_often_there_is_a_timeout():
    values = complete_values(find_family("cluster"), Values.of(fitted(recovery="tcp")))
    text = describe_limits(build_schedule(point("gather", "linear", ranks=8, bytes=65536)), values)
    assert text.startswith(
        "loses packets: 21 % delivered at the most loaded receiver; over TCP 95 % of the repeats take 39"
    )
    assert text.endswith("% of them with a timeout of 198 ms")
    assert (
        describe_limits(build_schedule(point("gather", "linear", ranks=4, bytes=1024)), values)
        == ""
    )


def test_another_recovery_is_refused():
    with pytest.raises(UserError, match="recovery: found 'udp', wanted timeout or tcp"):
        complete_values(find_family("cluster"), Values.of(fitted(recovery="udp")))


@pytest.mark.parametrize(
    "change", [{"buffer": 0.0}, {"timeout": 0.0}, {"gap_in": 0.0}, {"gap_out": 0.0, "latency": 0.0}]
)
def test_values_from_anywhere_end(change):
    """A parameter set may have any number that is not negative."""
    assert np.isfinite(repeats_of(30, repeats=2, **{"buffer": 3.0, **change}).finish).all()
