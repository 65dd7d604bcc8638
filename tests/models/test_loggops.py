"""LogGOPS's S: found where half a round trip jumps by a request and its answer, and nowhere else."""

import pytest

from commodel.models.families import family
from tests.models.synthetic import LOGGP, Truth, loggp_times, observed
from tests.models.truths.loggops import LOGGOPS, loggops_times

SIZES = tuple(1 << power for power in range(19))


def fit(times, noise, seed=1):
    return family("loggops").fit(observed(Truth(times, {}, sizes=SIZES), "loggops", noise=noise, seed=seed))


@pytest.mark.parametrize("noise", [0, 0.01])
@pytest.mark.parametrize("S", [600, 3000, 5000])
def test_the_threshold_lies_between_the_right_two_sizes(S, noise):
    fitted = fit(loggops_times(**LOGGOPS, S=S), noise)
    threshold = fitted.values["S"][0]
    assert threshold <= S < 2 * threshold
    assert "S" not in fitted.unknown
    for key, value in LOGGOPS.items():
        assert fitted.values[key][0] == pytest.approx(value, rel=1e-3 + 5 * noise), key


@pytest.mark.parametrize("noise", [0, 0.01, 0.03])
@pytest.mark.parametrize("times", [loggops_times(**LOGGOPS), loggp_times(**LOGGP)])
def test_without_a_jump_there_is_no_threshold(times, noise):
    fitted = fit(times, noise)
    assert "S" not in fitted.values
    assert "256 KiB" in fitted.missing["S"]


def test_a_change_of_slope_is_no_jump():
    machine = loggops_times(**LOGGOPS)

    def prtt(case):
        faster = 1e-8 * max(case["bytes"] - 6000, 0) if not case["late"] else 0
        return machine["prtt"](case) - faster

    assert "S" not in fit(machine | {"prtt": prtt}, 0).values


def waits_for_its_receiver(case):
    """A machine on which messages of more than 1 KiB wait for their receiver, without a round trip of their own: what a
    late receiver takes for overhead is then the whole message."""
    prtt = loggops_times(**LOGGOPS)["prtt"]
    if case["late"] and case["bytes"] > 1024:
        return prtt({**case, "late": 0, "n": 1}) / 2
    return prtt(case)


def test_waiting_is_not_taken_for_overhead():
    fitted = fit(loggops_times(**LOGGOPS) | {"prtt": waits_for_its_receiver}, 0.01)
    assert "S" not in fitted.values
    for key, value in LOGGOPS.items():
        assert fitted.values[key][0] == pytest.approx(value, rel=0.06), key


def test_copies_of_small_messages_are_not_carried_on_where_bytes_cost_less():
    """Above 3000 B a message asks, and from there on its bytes cost a quarter: a round trip of a large one is found
    again, by giving up some of O."""
    machine = loggops_times(**LOGGOPS, S=3000)["prtt"]

    def prtt(case):
        dear = machine(case)
        if case["bytes"] < 3000 or case["late"] or case["n"] > 1:
            return dear
        return dear - 2 * 0.75 * (2 * LOGGOPS["O"] + LOGGOPS["G"]) * (case["bytes"] - 3000)

    largest = fit(loggops_times(**LOGGOPS) | {"prtt": prtt}, 0).curves[0]
    assert largest.fitted[-1] == pytest.approx(largest.measured[-1], rel=0.05)
