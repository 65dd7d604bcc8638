"""The cluster model against its paper (table 1, equations 2 and 8), and fitted to machines that are the model."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.files.parameter_sets import read_parameters
from commodel.models.evaluation.buffer_overflow import compute_transfer_ratio, count_ranks_in_flight
from commodel.models.evaluation.values import Values
from commodel.models.families import complete_values, find_family
from commodel.models.families.cluster import compute_delivered_share, compute_latency, describe_limits
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


def of(name, size):
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
    assert of(name, size) == pytest.approx(microseconds * US, rel=1e-6)


@pytest.mark.parametrize(("size", "ranks", "microseconds"), [(1500, 16, 311.4551), (16, 16, 42.9016)])
def test_latency_with_contention(size, ranks, microseconds):
    seconds = compute_latency(published(), np.array([size]), ranks, published().at("g_s", np.array([size])))
    assert seconds[0, 0] == pytest.approx(microseconds * US, rel=1e-6)


def simple(**values) -> ParameterSet:
    numbers = {"L_p": 0.0, "L_m": 0.0, "packet": 1500.0} | values
    return ParameterSet("cluster", "", "", {name: Estimate(v, "s", v, v) for name, v in numbers.items()})


def repeated_broadcast(ranks, packets) -> Schedule:
    """The paper's broadcast of a long message: the binomial tree, once for each packet."""
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
@pytest.mark.parametrize("overheads", [(4.0, 10.0, 13.0, 6.0, 7.0), (44.32, 122.4, 311.5, 76.5, 9.93)])
def test_equation_2(ranks, packets, overheads):
    """Receiving a packet keeps an inner node from sending the one before it on. (The paper's node p/2 is the bottleneck
    where a reception takes at least as long as a gap; else the root is, as in equation 1.)"""
    O_s, g_s, L, O_r, U_r = overheads
    rounds = ranks.bit_length() - 1
    period = max((rounds - 1) * g_s + O_r + U_r, rounds * g_s)
    wanted = (packets - 1) * period + rounds * (O_s + L + O_r + U_r)
    values = simple(**{"O_s.a": O_s, "g_s.a": g_s, "g_r.a": 1.0, "O_r.a": O_r, "U_r": U_r, "L_0": L})
    assert costs(find_family("cluster"), repeated_broadcast(ranks, packets), values, False)[0] == pytest.approx(wanted)


@pytest.mark.parametrize(("ranks", "above"), [(4, 1.17), (16, 1.08), (256, 1.04)])
def test_at_full_packets_equation_1_is_the_longer(ranks, above):
    """By what the family says of itself: further packets, over what equation 2 has for them."""
    first, last = (
        float(costs(find_family("cluster"), resized(repeated_broadcast(ranks, k)), PUBLISHED, False)[0])
        for k in (8, 24)
    )
    rounds = ranks.bit_length() - 1
    equation_1 = rounds * of("g_s", 1500)
    equation_2 = (rounds - 1) * of("g_s", 1500) + of("O_r", 1500) + 9.93e-6
    assert (last - first) / 16 == pytest.approx(equation_1)
    assert equation_1 / equation_2 == pytest.approx(above, abs=0.005)


def resized(pattern, bytes=1500):
    return pattern.resize(np.full(len(pattern.src), bytes), pattern.work.bytes)


@pytest.mark.parametrize("packets", [1, 3, 40])
def test_equation_8(packets):
    """A gather takes at least as long as the receiver needs for all its packets."""
    senders, size = 15, packets * 1500
    pattern = Schedule.of(16, 0, np.arange(1, 16), 0, size, root=0)
    cost = float(costs(find_family("cluster"), pattern, PUBLISHED, False)[0])
    g_r, taken = of("g_r", 1500), of("O_r", 1500) + 9.93e-6
    first = of("O_s", 1500) + float(compute_latency(published(), np.array([1500]), 16, of("g_s", 1500))[0, 0])
    arrived = first + (packets - 1) * max(of("g_s", 1500), taken)
    assert cost >= first + (senders * packets - packets) * g_r
    assert cost == pytest.approx(arrived + (packets > 1) * (taken) + (senders - 1) * packets * g_r + taken, rel=0.02)


def test_a_gather_that_overflows_the_switch_is_marked():
    small = Schedule.of(16, 0, np.arange(1, 16), 0, 1500, root=0)
    large = Schedule.of(16, 0, np.arange(1, 16), 0, 1 << 20, root=0)
    assert describe_limits(small, published()) == ""
    assert describe_limits(large, published()) == (
        "loses packets: 25 % delivered at the most loaded receiver, the rest a timeout of 200 ms later"
    )


def gather(choice, ranks=16, bytes=1 << 20) -> Schedule:
    return build_schedule(point("gather", choice, ranks=ranks, bytes=bytes))


def predict(pattern, **values) -> float:
    numbers = PUBLISHED.values | {name: Estimate(value, "", value, value) for name, value in values.items()}
    return float(costs(find_family("cluster"), pattern, replace(PUBLISHED, values=numbers), False)[0])


def test_what_overflows_costs_a_time_out():
    """For 1 MiB from 15 senders at once; none for the window of the paper's algorithm."""
    assert predict(gather("linear")) - predict(gather("linear"), timeout=0.0) == pytest.approx(0.2)
    assert predict(gather("linear"), timeout=1.0) - predict(gather("linear"), timeout=0.0) == pytest.approx(1)
    assert predict(gather("windowed:1"), timeout=1.0) == predict(gather("windowed:1"), timeout=0.0)
    assert predict(gather("linear", bytes=1 << 16)) == predict(gather("linear", bytes=1 << 16), timeout=0.0)


def test_without_a_buffer_nothing_is_lost():
    values = {name: value for name, value in PUBLISHED.values.items() if name != "B_L"}
    blind = replace(PUBLISHED, values=values)
    cost = float(costs(find_family("cluster"), gather("linear"), blind, False)[0])
    assert cost == predict(gather("linear"), timeout=0.0)
    assert describe_limits(gather("linear"), complete_values(find_family("cluster"), Values.of(blind))) == ""


@pytest.mark.parametrize("window", [1, 2, 4, 8, 16])
def test_a_windowed_gather_loses_by_equation_4_of_all_its_packets(window):
    """Not of those of a turn: the next senders begin while the buffer still holds what the last have sent. (W divides
    the 16 senders; the tokens take 0.1 ms each, in which a packet leaves.)"""
    share = compute_delivered_share(gather(f"windowed:{window}", ranks=17), published())
    wanted = compute_transfer_ratio(window, 16 * 700, of("g_s", 1500), of("g_r", 1500), 1935)
    assert float(share) == pytest.approx(wanted, abs=3e-3)


def test_ranks_that_answer_each_other_overflow_nothing():
    """However much a rank gets in all: in a ring no block is on its way before the last one has been taken."""
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
def test_latency_counts_the_ranks_that_exchange_messages_at_once(operation, choice, ranks):
    """A message takes 2.5 times as long as its sender, which so reaches three others at once."""
    pattern = build_schedule(point(operation, choice, ranks=16, bytes=100))
    at_once = count_ranks_in_flight(pattern, np.array([[2.5]]), np.array([[1.0]]))[0]
    assert np.unique(at_once[pattern.bytes > 0].round(9)).tolist() == np.ravel(ranks).tolist()


def test_a_step_s_ranks_are_counted_as_one_by_one():
    rng = np.random.default_rng(4)
    src = rng.integers(0, 9, 60)
    pattern = Schedule.of(9, np.sort(rng.integers(0, 5, 60)), src, (src + rng.integers(1, 9, 60)) % 9, 8)
    alone, busy = rng.uniform(0, 4, (3, 60)), rng.uniform(0.5, 1.5, (3, 60))
    at_once = count_ranks_in_flight(pattern, alone, busy)
    for row in range(60):
        rows = np.flatnonzero(pattern.step == pattern.step[row])
        senders, ends = set(pattern.src[rows]), set(pattern.src[rows]) | set(pattern.dst[rows])
        for draw in range(3):
            reached = 0.0
            for message in rows:
                own = np.count_nonzero(pattern.src[rows] == pattern.src[message])
                reached += min(max(np.ceil(alone[draw, message] / busy[draw, message]), 1), own) / own
            assert at_once[draw, row] == pytest.approx(min(len(ends), len(senders) + reached))


def test_a_message_alone_pays_for_two_ranks_however_many_there_are():
    """A broadcast of one packet: 2, 4, 8 and 16 ranks are at it in its four rounds."""
    size, rounds = 1500, (2, 4, 8, 16)
    seconds = float(
        costs(
            find_family("cluster"), build_schedule(point("bcast", "binomial", ranks=16, bytes=size)), PUBLISHED, False
        )[0]
    )
    overheads = of("O_s", size) + of("O_r", size) + 9.93e-6
    gap = published().at("g_s", np.array([size]))
    wanted = sum(
        overheads + float(compute_latency(published(), np.array([size]), ranks, gap)[0, 0]) for ranks in rounds
    )
    assert seconds == pytest.approx(wanted)


COUNTS = TRUTH.counts["flood"]


def fitted(counts=COUNTS, **machine):
    """From a machine that is the model, without noise, and with other counts of datagrams."""
    return find_family("cluster").fit(observed(replace(TRUTH, counts={"flood": counts}, **machine), "cluster"))


def counts_where_pass(passed, case):
    """What is counted where so many of the datagrams that arrived pass the receiver's socket."""
    return {"arrived": COUNTS({**case, "what": "arrived"}), "through": passed, "held": -1, "room": 212992}[case["what"]]


def test_gaps_of_a_sender_are_not_those_of_its_receiver():
    """A burst to one receiver leaves as fast as that takes it, packets dealt to eight as fast as they can be sent."""
    estimates = fitted()
    assert estimates.values["g_s.a"][0] == pytest.approx(1.2e-5)
    assert estimates.values["g_r.a"][0] == pytest.approx(1.5e-5)


def test_what_is_sent_again_is_no_part_of_the_gap():
    """Of streams that are longer than the buffer all but a few lose packets, and take half as long again."""

    def small_buffer(case):
        sent = case["packets"] * case["senders"]
        return counts_where_pass(min(sent, RATIO * sent + 34), case)

    whole = observed(replace(TRUTH, counts={"flood": small_buffer}), "cluster")
    slower = np.where(np.arange(30) < 5, 1.0, 1.5)
    streams = [
        replace(case, seconds=case.seconds * (slower if case.settings["each"] == 12 else 1.0))
        for case in whole.probes["stream"]
    ]
    estimates = find_family("cluster").fit(Observed({**whole.probes, "stream": streams}, whole.seed))
    assert estimates.values["g_r.a"][0] == pytest.approx(1.5e-5)
    assert estimates.values["g_r.b"][0] == pytest.approx(9e-8)
    assert estimates.notes["g_r"].startswith("of the fastest streams")
    assert "g_r" not in fitted().notes


def test_receives_that_are_complete_inform_nothing_about_taking():
    assert fitted().values["U_r"][0] == pytest.approx(9e-6)  # the truth has none at 1500 bytes


def test_the_buffer_is_the_networks():
    estimates = fitted()
    assert estimates.values["B_L"][0] == pytest.approx(B_L)
    assert "; the receiver's socket of 208 KiB dropped up to 10 % more" in estimates.notes["B_L"]


def test_times_of_arrival_show_the_buffer_better_than_counts():
    """Of the shortest flood that loses a quarter or more: in longer ones senders pause."""

    def counts(case):
        held = {64: 300, 256: 350, 1024: 400, 4096: 200}[case["packets"]] if case["what"] == "held" else None
        return COUNTS(case) if held is None else held * case["bytes"]

    estimates = fitted(counts)
    draws = estimates.values["B_L"]
    assert draws[0] == 400.5
    assert (draws[1:].min(), draws[1:].max()) == (pytest.approx(400, abs=0.01), pytest.approx(401, abs=0.01))
    assert estimates.settings["recovery"] == "tcp"
    assert fitted().notes["B_L"].startswith("by counts of datagrams")


def test_what_only_the_receiver_loses_is_no_buffer_of_the_network():
    estimates = fitted(lambda case: counts_where_pass(case["packets"] * case["senders"], case))
    assert "B_L" not in estimates.values
    assert estimates.missing["B_L"].startswith(
        "not observable: nothing was lost of 32768 datagrams at once; the receiver's so"
    )


def test_where_a_system_does_not_count_a_socket_s_losses_the_value_is_marked():
    estimates = fitted(lambda case: -1 if case["what"] in ("through", "held") else COUNTS({**case, "what": "through"}))
    assert estimates.values["B_L"][0] == pytest.approx(B_L)
    assert "; of the network or of the receiver" in estimates.notes["B_L"]


def late_streams(waits, **how):
    """The truth's streams, now and then one of them later by as much."""
    whole = observed(replace(TRUTH, **how), "cluster")
    streams = [
        replace(case, seconds=np.append(case.seconds, case.seconds[0] + wait), passes=np.ones(31, dtype=int))
        for case, wait in zip(whole.probes["stream"], [*waits, *np.zeros(99)], strict=False)
    ]
    return find_family("cluster").fit(Observed({**whole.probes, "stream": streams}, whole.seed))


def test_the_time_out_is_what_streams_are_late_by():
    """Of four that are late 0.2 s, or nearly, and two that are for other reasons."""
    estimates = late_streams([0.199, 0.031, 0.203, 0.211, 0.0872, 0.2])
    assert estimates.values["timeout"][0] == pytest.approx(0.2015)
    low, high = np.percentile(estimates.values["timeout"], [2.5, 97.5])
    assert 0.199 <= low < high <= 0.211
    assert estimates.notes["timeout"].startswith("from streams to one rank")


@pytest.mark.parametrize("waits", [[], [0.2, 0.2], [0.02, 0.05, 0.1, 0.2, 0.4]])
def test_without_streams_that_are_late_alike_the_time_out_is_the_systems(waits):
    estimates = late_streams(waits)
    assert estimates.values["timeout"].tolist() == [0.2] * 201
    assert estimates.notes["timeout"] == "the value of Linux, not measured"


def test_without_losses_no_message_waits_for_a_timeout():
    estimates = late_streams([0.05, 0.05, 0.05, 0.05], site=Site(1, 12))
    assert estimates.values["timeout"][0] == 0.2


def test_with_one_receiver_the_gap_may_be_its_own():
    assert fitted().notes.get("g_s") is None
    assert fitted(site=Site(2, 1)).notes["g_s"] == "measured with one receiver, which may limit it"


def test_on_one_host_there_is_no_buffer_of_a_network():
    estimates = fitted(site=Site(1, 12))
    assert "B_L" not in estimates.values
    assert estimates.missing["B_L"].startswith("not observable: all ranks are on one host")
