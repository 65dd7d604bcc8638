"""The cluster model fitted to machines that are the model: gaps, taking, the buffer, the time-out."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.models.families import family
from commodel.models.fitting.observed import Observed
from commodel.models.probes import Site
from tests.models.synthetic import observed
from tests.models.truths.cluster import B_L, RATIO, TRUTH

COUNTS = TRUTH.counts["flood"]


def fitted(counts=COUNTS, **machine):
    """From a machine that is the model, without noise, and with other counts of datagrams."""
    return family("cluster").fit(observed(replace(TRUTH, counts={"flood": counts}, **machine), "cluster"))


def counts_where_pass(passed, case):
    """What is counted where so many of the datagrams that arrived pass the receiver's socket."""
    return {"arrived": COUNTS({**case, "what": "arrived"}), "through": passed, "room": 212992}[case["what"]]


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
    estimates = family("cluster").fit(Observed({**whole.probes, "stream": streams}, whole.seed))
    assert estimates.values["g_r.a"][0] == pytest.approx(1.5e-5)
    assert estimates.values["g_r.b"][0] == pytest.approx(9e-8)
    assert estimates.notes["g_r"].startswith("of the fastest streams")
    assert "g_r" not in fitted().notes


def test_receives_that_are_complete_say_nothing_about_taking():
    assert fitted().values["U_r"][0] == pytest.approx(9e-6)  # the truth has none at 1500 bytes


def test_the_buffer_is_the_networks():
    estimates = fitted()
    assert estimates.values["B_L"][0] == pytest.approx(B_L)
    assert estimates.notes["B_L"].startswith("the receiver's socket of 208 KiB threw away up to 10 % more")


def test_what_only_the_receiver_loses_is_no_buffer_of_the_network():
    estimates = fitted(lambda case: counts_where_pass(case["packets"] * case["senders"], case))
    assert "B_L" not in estimates.values
    assert estimates.missing["B_L"].startswith(
        "not observable: nothing was lost of 32768 datagrams at once; the receiver's so"
    )


def test_where_a_system_does_not_count_a_socket_s_losses_the_value_says_so():
    estimates = fitted(lambda case: -1 if case["what"] == "through" else COUNTS({**case, "what": "through"}))
    assert estimates.values["B_L"][0] == pytest.approx(B_L)
    assert estimates.notes["B_L"].startswith("the network's or the receiver's")


def late_streams(waits, **how):
    """The truth's streams, now and then one of them later by as much."""
    whole = observed(replace(TRUTH, **how), "cluster")
    streams = [
        replace(case, seconds=np.append(case.seconds, case.seconds[0] + wait), passes=np.ones(31, dtype=int))
        for case, wait in zip(whole.probes["stream"], [*waits, *np.zeros(99)], strict=False)
    ]
    return family("cluster").fit(Observed({**whole.probes, "stream": streams}, whole.seed))


def test_the_time_out_is_what_streams_are_late_by():
    """Of four that are late 0.2 s, or nearly, and two that are for other reasons."""
    estimates = late_streams([0.199, 0.031, 0.203, 0.211, 0.0872, 0.2])
    assert estimates.values["timeout"][0] == pytest.approx(0.2015)
    low, high = np.percentile(estimates.values["timeout"], [2.5, 97.5])
    assert 0.199 <= low < high <= 0.211
    assert estimates.notes["timeout"].startswith("by which streams")


@pytest.mark.parametrize("waits", [[], [0.2, 0.2], [0.02, 0.05, 0.1, 0.2, 0.4]])
def test_without_streams_that_are_late_alike_the_time_out_is_the_systems(waits):
    estimates = late_streams(waits)
    assert estimates.values["timeout"].tolist() == [0.2] * 201
    assert estimates.notes["timeout"] == "taken from Linux, not measured"


def test_where_nothing_is_lost_nobody_waits_for_it():
    estimates = late_streams([0.05, 0.05, 0.05, 0.05], site=Site(1, 12))
    assert estimates.values["timeout"][0] == 0.2


def test_with_one_receiver_the_gap_may_be_its_own():
    assert fitted().notes.get("g_s") is None
    assert fitted(site=Site(2, 1)).notes["g_s"] == "with but one receiver, whose pace it may be"


def test_on_one_host_there_is_no_buffer_of_a_network():
    estimates = fitted(site=Site(1, 12))
    assert "B_L" not in estimates.values
    assert estimates.missing["B_L"].startswith("not observable: all ranks are on one host")
