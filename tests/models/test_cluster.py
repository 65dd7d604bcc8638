"""The cluster model against its paper (table 1, equations 2, 4 and 8), and fits to samples computed
from the model."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.files.parameter_sets import read_parameters
from commodel.models.evaluation.buffer_overflow import compute_transfer_ratio, count_ranks_in_flight
from commodel.models.evaluation.values import Values
from commodel.models.families import complete_values, find_family
from commodel.models.families.cluster import (
    compute_delivered_share,
    compute_latency,
    describe_limits,
)
from commodel.models.fitting.observed import Observed
from commodel.models.probes import Site
from commodel.parameters import Estimate, ParameterSet
from commodel.patterns.build import build_schedule
from commodel.patterns.schedule import Schedule
from commodel.platforms.tools import ROOT
from tests.models.synthetic import costs, observed
from tests.models.truths.cluster import B_L, RATIO, TRUTH
from tests.patterns.catalogue import point

US = 1e-6
PUBLISHED = read_parameters(ROOT / "params/published/cluster/fast-ethernet-16.yaml")


def published() -> Values:
    return complete_values(find_family("cluster"), Values.of(PUBLISHED))


def compute_value(name, size):
    """Return a published parameter, in seconds, at a size in bytes."""
    return float(published().at(name, np.array([size]))[0, 0])


@pytest.mark.parametrize(
    ("name", "size", "microseconds"),
    [
        ("O_s", 1500, 44.32),
        ("g_r", 41, 8.2168),
        ("O_s", 40, 7.472),
        ("g_s", 40, 6.73),
        ("O_r", 41, 13.9349),
        ("M_mtm", 1000, 33.156),
        ("T_s", 40, 13.692),
        ("T_s", 1000, 88.48),
    ],
)
def test_table_1(name, size, microseconds):
    assert compute_value(name, size) == pytest.approx(microseconds * US, rel=1e-6)


@pytest.mark.parametrize(
    ("size", "ranks", "microseconds"), [(1500, 16, 311.4551), (16, 16, 42.9016)]
)
def test_latency_with_contention(size, ranks, microseconds):
    seconds = compute_latency(
        published(), np.array([size]), ranks, published().at("g_s", np.array([size]))
    )
    assert seconds[0, 0] == pytest.approx(microseconds * US, rel=1e-6)


def make_set(**values) -> ParameterSet:
    """Return a parameter set with these values and no latency by ranks or size."""
    numbers = {"L_p": 0.0, "L_m": 0.0, "packet": 1500.0} | values
    return ParameterSet(
        "cluster", "", "", {name: Estimate(v, "s", v, v) for name, v in numbers.items()}
    )


def repeated_broadcast(ranks, packets) -> Schedule:
    """Return the broadcast of a long message in the paper: the binomial tree, once per packet."""
    rounds = ranks.bit_length() - 1
    rows = [
        (packet * rounds + step, src, src + (ranks >> (step + 1)))
        for packet in range(packets)
        for step in range(rounds)
        for src in range(0, ranks, ranks >> step)
    ]
    return Schedule.of(ranks, *np.array(rows).T, 1)


@pytest.mark.parametrize("ranks", [4, 8, 16])
@pytest.mark.parametrize("packets", [1, 2, 7])
@pytest.mark.parametrize(
    "overheads", [(4.0, 10.0, 13.0, 6.0, 7.0), (44.32, 122.4, 311.5, 76.5, 9.93)]
)
def test_equation_2(ranks, packets, overheads):
    """While an inner node receives a packet, it cannot forward the previous one. The paper's node
    p/2 is the bottleneck if a reception takes at least as long as a gap; else the root is, as in
    equation 1."""
    O_s, g_s, L, O_r, U_r = overheads
    rounds = ranks.bit_length() - 1
    period = max((rounds - 1) * g_s + O_r + U_r, rounds * g_s)
    wanted = (packets - 1) * period + rounds * (O_s + L + O_r + U_r)
    values = make_set(
        **{"O_s.a": O_s, "g_s.a": g_s, "g_r.a": 1.0, "O_r.a": O_r, "U_r": U_r, "L_0": L}
    )
    assert costs(find_family("cluster"), repeated_broadcast(ranks, packets), values, False)[
        0
    ] == pytest.approx(wanted)


@pytest.mark.parametrize(("ranks", "ratio"), [(4, 1.17), (16, 1.08), (256, 1.04)])
def test_with_full_packets_the_period_is_that_of_equation_1(ranks, ratio):
    """The predicted time of each further packet is that of equation 1, the longer: `ratio` times
    that of equation 2."""
    first, last = (
        float(
            costs(
                find_family("cluster"),
                with_full_packets(repeated_broadcast(ranks, k)),
                PUBLISHED,
                False,
            )[0]
        )
        for k in (8, 24)
    )
    rounds = ranks.bit_length() - 1
    equation_1 = rounds * compute_value("g_s", 1500)
    equation_2 = (rounds - 1) * compute_value("g_s", 1500) + compute_value("O_r", 1500) + 9.93e-6
    assert (last - first) / 16 == pytest.approx(equation_1)
    assert equation_1 / equation_2 == pytest.approx(ratio, abs=0.005)


def with_full_packets(pattern, bytes=1500):
    return pattern.resize(np.full(len(pattern.src), bytes), pattern.work.bytes)


@pytest.mark.parametrize("packets", [1, 3, 40])
def test_equation_8(packets):
    """A gather takes at least as long as the receiver needs for all packets."""
    senders, size = 15, packets * 1500
    pattern = Schedule.of(16, 0, np.arange(1, 16), 0, size, root=0)
    cost = float(costs(find_family("cluster"), pattern, PUBLISHED, False)[0])
    g_r, receive = compute_value("g_r", 1500), compute_value("O_r", 1500) + 9.93e-6
    first_arrival = compute_value("O_s", 1500) + float(
        compute_latency(published(), np.array([1500]), 16, compute_value("g_s", 1500))[0, 0]
    )
    arrival_of_one_sender = first_arrival + (packets - 1) * max(compute_value("g_s", 1500), receive)
    assert cost >= first_arrival + (senders * packets - packets) * g_r
    of_other_senders = (senders - 1) * packets * g_r
    wanted = arrival_of_one_sender + (packets > 1) * receive + of_other_senders + receive
    assert cost == pytest.approx(wanted, rel=0.02)


def test_a_gather_that_overflows_the_buffer_has_a_note():
    small = Schedule.of(16, 0, np.arange(1, 16), 0, 1500, root=0)
    large = Schedule.of(16, 0, np.arange(1, 16), 0, 1 << 20, root=0)
    assert describe_limits(small, published()) == ""
    assert describe_limits(large, published()) == (
        "loses packets: 25 % delivered at the most loaded receiver, the rest a timeout of 200 ms later"
    )


def gather(algorithm, ranks=16, bytes=1 << 20) -> Schedule:
    return build_schedule(point("gather", algorithm, ranks=ranks, bytes=bytes))


def predict(pattern, **values) -> float:
    """Return the time predicted from the published set, with some of its values replaced."""
    numbers = PUBLISHED.values | {
        name: Estimate(value, "", value, value) for name, value in values.items()
    }
    return float(
        costs(find_family("cluster"), pattern, replace(PUBLISHED, values=numbers), False)[0]
    )


def test_an_overflow_adds_one_timeout():
    """1 MiB from each of 15 senders at once overflows the buffer; 64 KiB, or one sender at a time,
    does not."""
    assert predict(gather("linear")) - predict(gather("linear"), timeout=0.0) == pytest.approx(0.2)
    assert predict(gather("linear"), timeout=1.0) - predict(
        gather("linear"), timeout=0.0
    ) == pytest.approx(1)
    assert predict(gather("windowed:1"), timeout=1.0) == predict(gather("windowed:1"), timeout=0.0)
    assert predict(gather("linear", bytes=1 << 16)) == predict(
        gather("linear", bytes=1 << 16), timeout=0.0
    )


def test_without_a_value_of_the_buffer_no_loss_is_predicted():
    values = {name: value for name, value in PUBLISHED.values.items() if name != "B_L"}
    without_buffer = replace(PUBLISHED, values=values)
    cost = float(costs(find_family("cluster"), gather("linear"), without_buffer, False)[0])
    assert cost == predict(gather("linear"), timeout=0.0)
    assert (
        describe_limits(
            gather("linear"), complete_values(find_family("cluster"), Values.of(without_buffer))
        )
        == ""
    )


@pytest.mark.parametrize("window", [1, 2, 4, 8, 16])
def test_the_loss_of_a_windowed_gather_follows_equation_4_with_all_packets(window):
    """Equation 4 has the packets of all windows, because the buffer still has packets of one when
    the next one begins.

    The window divides the 16 senders. Tokens between windows take 0.1 ms each, which explains the
    tolerance.
    """
    share = compute_delivered_share(gather(f"windowed:{window}", ranks=17), published())
    wanted = compute_transfer_ratio(
        window, 16 * 700, compute_value("g_s", 1500), compute_value("g_r", 1500), 1935
    )
    assert float(share) == pytest.approx(wanted, abs=3e-3)


def test_a_ring_does_not_overflow_the_buffer():
    """In a ring a rank receives a block before the next block is sent."""
    ring = build_schedule(point("allgather", "ring", ranks=16, bytes=1 << 20))
    assert float(compute_delivered_share(ring, published())) == 1


@pytest.mark.parametrize(
    ("operation", "choice", "ranks"),
    [
        ("bcast", "linear", 4),
        ("bcast", "binomial", [2, 4, 8, 16]),
        ("bcast", "chain", 2),
        ("gather", "linear", 16),
        ("gather", "windowed:1", 2),
        ("scatter", "binomial", [2, 4, 8, 16]),
        ("allgather", "ring", 16),
        ("alltoall", "pairwise", 16),
    ],
)
def test_ranks_with_messages_in_flight_are_counted(operation, choice, ranks):
    """A message is in flight for 2.5 s and occupies its sender for 1 s, so a sender has up to three
    in flight."""
    pattern = build_schedule(point(operation, choice, ranks=16, bytes=100))
    in_flight = count_ranks_in_flight(pattern, np.array([[2.5]]), np.array([[1.0]]))[0]
    assert np.unique(in_flight[pattern.bytes > 0].round(9)).tolist() == np.ravel(ranks).tolist()


def test_ranks_of_random_steps_are_counted_as_by_a_loop_over_messages():
    rng = np.random.default_rng(4)
    src = rng.integers(0, 9, 60)
    pattern = Schedule.of(
        9, np.sort(rng.integers(0, 5, 60)), src, (src + rng.integers(1, 9, 60)) % 9, 8
    )
    single_seconds, busy = rng.uniform(0, 4, (3, 60)), rng.uniform(0.5, 1.5, (3, 60))
    in_flight = count_ranks_in_flight(pattern, single_seconds, busy)
    for row in range(60):
        rows = np.flatnonzero(pattern.step == pattern.step[row])
        senders, ends = set(pattern.src[rows]), set(pattern.src[rows]) | set(pattern.dst[rows])
        for draw in range(3):
            reached = 0.0
            for message in rows:
                own = np.count_nonzero(pattern.src[rows] == pattern.src[message])
                reached += (
                    min(max(np.ceil(single_seconds[draw, message] / busy[draw, message]), 1), own)
                    / own
                )
            assert in_flight[draw, row] == pytest.approx(min(len(ends), len(senders) + reached))


def test_the_latency_of_a_round_depends_on_the_ranks_of_that_round():
    """In a binomial broadcast of a packet over 16 ranks, 2, 4, 8 and 16 ranks exchange messages in
    the four rounds."""
    size, rounds = 1500, (2, 4, 8, 16)
    seconds = float(
        costs(
            find_family("cluster"),
            build_schedule(point("bcast", "binomial", ranks=16, bytes=size)),
            PUBLISHED,
            False,
        )[0]
    )
    overheads = compute_value("O_s", size) + compute_value("O_r", size) + 9.93e-6
    gap = published().at("g_s", np.array([size]))
    wanted = sum(
        overheads + float(compute_latency(published(), np.array([size]), ranks, gap)[0, 0])
        for ranks in rounds
    )
    assert seconds == pytest.approx(wanted)


COUNTS = TRUTH.counts["flood"]


def fitted(counts=COUNTS, **machine):
    """Return the fit to samples without noise, computed from TRUTH with these counts of datagrams
    and other fields."""
    return find_family("cluster").fit(
        observed(replace(TRUTH, counts={"flood": counts}, **machine), "cluster")
    )


def count_datagrams(delivered, case):
    """Return the counts of a flood as in TRUTH, except that the network delivers `delivered`
    datagrams."""
    return {
        "arrived": COUNTS({**case, "what": "arrived"}),
        "through": delivered,
        "held": -1,
        "room": 212992,
    }[case["what"]]


def test_gaps_of_a_sender_are_not_those_of_its_receiver():
    """Packets to one receiver depart with the receiver's gap, packets to eight receivers with the
    sender's gap."""
    estimates = fitted()
    assert estimates.values["g_s.a"][0] == pytest.approx(1.2e-5)
    assert estimates.values["g_r.a"][0] == pytest.approx(1.5e-5)


def test_retransmissions_do_not_change_the_gap():
    """Of 30 streams that exceed the buffer, 25 lose packets and take 1.5 times as long; g_r is
    fitted to the others."""

    def small_buffer(case):
        sent = case["packets"] * case["senders"]
        return count_datagrams(min(sent, RATIO * sent + 34), case)

    complete = observed(replace(TRUTH, counts={"flood": small_buffer}), "cluster")
    slower = np.where(np.arange(30) < 5, 1.0, 1.5)
    streams = [
        replace(case, seconds=case.seconds * (slower if case.settings["each"] == 12 else 1.0))
        for case in complete.probes["stream"]
    ]
    estimates = find_family("cluster").fit(
        Observed({**complete.probes, "stream": streams}, complete.seed)
    )
    assert estimates.values["g_r.a"][0] == pytest.approx(1.5e-5)
    assert estimates.values["g_r.b"][0] == pytest.approx(9e-8)
    assert estimates.notes["g_r"].startswith("of the fastest streams")
    assert "g_r" not in fitted().notes


def test_receives_completed_in_the_background_do_not_change_the_time_to_receive():
    # TRUTH: 0 at 1500 bytes, where receives complete in the background
    assert fitted().values["U_r"][0] == pytest.approx(9e-6)


def test_the_buffer_excludes_losses_of_the_receivers_socket():
    estimates = fitted()
    assert estimates.values["B_L"][0] == pytest.approx(B_L)
    assert "; the receiver's socket of 208 KiB dropped up to 10 % more" in estimates.notes["B_L"]


def test_the_buffer_is_fitted_to_times_of_arrival_if_they_were_measured():
    """The shortest flood that loses a quarter or more is used, because senders pause in longer
    ones."""

    def counts(case):
        held = (
            {64: 300, 256: 350, 1024: 400, 4096: 200}[case["packets"]]
            if case["what"] == "held"
            else None
        )
        return COUNTS(case) if held is None else held * case["bytes"]

    estimates = fitted(counts)
    draws = estimates.values["B_L"]
    assert draws[0] == 400.5
    assert (draws[1:].min(), draws[1:].max()) == (
        pytest.approx(400, abs=0.01),
        pytest.approx(401, abs=0.01),
    )
    assert estimates.settings["recovery"] == "tcp"
    assert fitted().notes["B_L"].startswith("by counts of datagrams")


def test_without_losses_in_the_network_the_buffer_is_missing():
    estimates = fitted(lambda case: count_datagrams(case["packets"] * case["senders"], case))
    assert "B_L" not in estimates.values
    assert estimates.missing["B_L"].startswith(
        "not observable: nothing was lost of 32768 datagrams at once; the receiver's so"
    )


def test_the_buffer_has_a_note_if_losses_of_the_socket_are_not_counted():
    estimates = fitted(
        lambda case: (
            -1 if case["what"] in ("through", "held") else COUNTS({**case, "what": "through"})
        )
    )
    assert estimates.values["B_L"][0] == pytest.approx(B_L)
    assert "; of the network or of the receiver" in estimates.notes["B_L"]


def fit_late_streams(waits, **machine):
    """Return the fit to the streams of TRUTH, each with one more sample; `waits`: seconds by which
    these are late."""
    samples = observed(replace(TRUTH, **machine), "cluster")
    streams = [
        replace(
            case,
            seconds=np.append(case.seconds, case.seconds[0] + wait),
            passes=np.ones(31, dtype=int),
        )
        for case, wait in zip(samples.probes["stream"], [*waits, *np.zeros(99)], strict=False)
    ]
    return find_family("cluster").fit(Observed({**samples.probes, "stream": streams}, samples.seed))


def test_the_timeout_is_the_median_delay_of_late_streams():
    """Four streams are late by about 0.2 s. The delays of two others differ and are ignored."""
    estimates = fit_late_streams([0.199, 0.031, 0.203, 0.211, 0.0872, 0.2])
    assert estimates.values["timeout"][0] == pytest.approx(0.2015)
    low, high = np.percentile(estimates.values["timeout"], [2.5, 97.5])
    assert 0.199 <= low < high <= 0.211
    assert estimates.notes["timeout"].startswith("from streams to one rank")


@pytest.mark.parametrize("waits", [[], [0.2, 0.2], [0.02, 0.05, 0.1, 0.2, 0.4]])
def test_without_three_similar_delays_the_timeout_is_that_of_linux(waits):
    estimates = fit_late_streams(waits)
    assert estimates.values["timeout"].tolist() == [0.2] * 201
    assert estimates.notes["timeout"] == "the value of Linux, not measured"


def test_on_one_host_late_streams_do_not_change_the_timeout():
    estimates = fit_late_streams([0.05, 0.05, 0.05, 0.05], site=Site(1, 12))
    assert estimates.values["timeout"][0] == 0.2


def test_g_s_has_a_note_if_measured_with_one_receiver():
    assert fitted().notes.get("g_s") is None
    assert fitted(site=Site(2, 1)).notes["g_s"] == "measured with one receiver, which may limit it"


def test_on_one_host_the_buffer_is_missing():
    estimates = fitted(site=Site(1, 12))
    assert "B_L" not in estimates.values
    assert estimates.missing["B_L"].startswith("not observable: all ranks are on one host")
