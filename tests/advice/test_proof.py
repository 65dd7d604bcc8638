"""Rules that stay are right and pay."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.advice.proof import (
    Gain,
    average_gains,
    choose_unmeasured_sizes,
    compute_control,
    compute_gain,
    drop_wrong_rules,
    join_gains,
    order_starts,
    pool_variances,
)
from commodel.records import LIBRARY, PlacedWorkload


def test_a_gain_by_hand():
    """Ratios 2 and 8: mean of the logarithms is that of 4, and t at one degree of freedom 12.706 of their error."""
    gained = compute_gain([1.0, 1.0], [2.0, 8.0])
    assert gained.times == pytest.approx(4)
    assert gained.high == pytest.approx(4 * np.exp(12.706 * np.log(2)), rel=1e-3)
    assert gained.low == pytest.approx(16 / gained.high)
    assert not gained.is_faster


def test_what_both_share_is_in_no_interval():
    """A network that gets ten times as slow meanwhile."""
    gained = compute_gain([1, 3, 10], [2, 6, 20])
    assert (gained.low, gained.times, gained.high) == pytest.approx((2, 2, 2))
    assert gained.is_faster
    assert compute_gain([2, 6, 20], [1, 3, 10]).is_slower


def test_slower_by_less_than_is_allowed_is_no_harm_but_does_not_pay():
    gained = compute_gain([1.03, 1.03, 1.03], [1, 1, 1])
    assert not gained.is_slower
    assert not gained.is_faster


def test_intervals_hold_the_true_gain_as_often_as_they_state():
    random = np.random.default_rng(5)
    samples = random.lognormal(np.log(1.2), 0.1, (2000, 4))
    held = [gained.low <= 1.2 <= gained.high for gained in (compute_gain([1.0] * 4, row) for row in samples)]
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize("freedom", [2, 8, 1000])
def test_cases_state_together_how_much_pairs_differ(freedom):
    """Variances of cases are inverse χ² with so many degrees of freedom. Intervals hold as often as they say, and those
    of three pairs are narrower than Student's own, the more the more alike cases are. At 2 degrees, where some cases
    differ ten times as much as others, they hold 93 %."""
    random = np.random.default_rng(9)
    held, width, own = [], [], []
    for _ in range(30):
        spread = 0.1 * np.sqrt(freedom / random.chisquare(freedom, 40))
        gains = [compute_gain([1.0] * 3, np.exp(random.normal(0.2, scatter, 3))) for scatter in spread]
        steady = pool_variances(gains)
        held += [seen.low <= np.exp(0.2) <= seen.high for seen in steady]
        width += [np.log(seen.high / seen.low) for seen in steady]
        own += [np.log(seen.high / seen.low) for seen in gains]
    assert np.mean(held) == pytest.approx(0.95, abs=0.025)
    assert np.mean(width) < (0.85 if freedom == 2 else 0.65) * np.mean(own)


def test_a_few_cases_inform_nothing_of_each_other():
    gains = [compute_gain([1, 1, 1], row) for row in ([1, 2, 3], [1, 1.1, 1.2], [2, 2, 3])]
    assert pool_variances(gains) == gains
    assert join_gains(gains[0], gains[1]).pairs == gains[0].pairs + gains[1].pairs


@given(st.lists(st.integers(1, 1 << 22), min_size=1, max_size=6, unique=True).map(sorted))
def test_a_size_between_is_one_that_the_same_rule_holds_for(sizes):
    for size, following in zip(sizes, [*sizes[1:], 1 << 60], strict=True):
        case = choose_unmeasured_sizes(sizes)[size]
        assert size <= case < following
        assert case > size or following <= 2 * size or size < 3


def test_sizes_between_by_hand():
    assert choose_unmeasured_sizes([8, 512, 32768]) == {8: 64, 512: 4096, 32768: 49152}
    assert choose_unmeasured_sizes([0]) == {0: 0}


@given(st.integers(1, 9))
def test_with_and_without_come_first_in_turn(pairs):
    turns = order_starts(pairs)
    assert [turns[at] != turns[at + 1] for at in range(0, 2 * pairs, 2)] == [True] * pairs
    assert abs(sum(turns[::2]) - sum(turns[1::2])) <= 1


def test_the_mean_of_all_cases_by_hand():
    assert average_gains([compute_gain([1, 1, 1], [2, 2, 2]), compute_gain([1, 1, 1], [8, 8, 8])]) == pytest.approx(
        (4, 4, 4)
    )


def test_one_slow_start_states_no_more_of_many_cases_than_of_one():
    noisy = compute_gain([1, 1, 4], [1, 1, 1])
    assert average_gains([noisy] * 50) == pytest.approx((noisy.times, noisy.low, noisy.high))
    assert noisy.low < 1 < noisy.high


def _same(low, high):
    """A gain with this interval, of no rule."""
    return Gain(np.sqrt(low * high), low, high, 1.0, 1.0)


def test_intervals_reach_as_far_as_cases_without_a_rule_want_them():
    """One case of twenty may miss 1 by chance, the next may not."""
    holding = [_same(0.9, 1.1)] * 18
    by_chance = compute_control([*holding, _same(0.9, 1.1), _same(1.5, 1.6)])
    assert (by_chance.cases, by_chance.excluding_one, by_chance.log_margin) == (20, 1, 0.0)
    changed = compute_control([*holding, _same(0.8, 0.9), _same(1.5, 1.6)])
    assert (changed.excluding_one, np.exp(changed.log_margin)) == (2, pytest.approx(1 / 0.9))
    assert _same(1.05, 1.2).widen(changed.log_margin).low == pytest.approx(1.05 * 0.9)
    assert not _same(1.05, 1.2).widen(changed.log_margin).is_faster
    assert _same(1.2, 1.3).widen(changed.log_margin).is_faster
    assert average_gains([compute_gain([1, 1, 1], [2, 2, 2])], changed.log_margin) == pytest.approx((2, 1.8, 2 / 0.9))
    assert compute_control([]).log_margin == 0


def test_the_control_widens_no_honest_intervals_by_much():
    random = np.random.default_rng(5)
    pairs = random.lognormal(0, 0.1, (200, 40, 4))
    wider = [compute_control(compute_gain([1.0] * 4, row) for row in cases).log_margin for cases in pairs]
    assert np.median(wider) < 0.02
    drifting = compute_control(compute_gain([1.0] * 4, row * 1.3) for row in pairs[0])
    assert drifting.log_margin > 0.15


WORKLOADS = [PlacedWorkload("reduce", 8, "block", size) for size in (64, 4096)]
CASE = ("in-place", 8, 64)


@dataclass
class Known:
    """Where `fails` has, by what is tried, the cases that fail and why."""

    fails: dict = field(default_factory=dict)
    requested: list = field(default_factory=list)

    def find_failures(self, name, operation, sizes, choices, layout):
        assert all(choice.ranks <= 8 for choice in choices)
        self.requested.append(
            (name.removeprefix(f"results-{operation}-"), sorted({choice.ranks for choice in choices}))
        )
        return self.fails.get(self.requested[-1][0], {})


def dropped(fails, *algorithms, workloads=WORKLOADS):
    place = Known(fails)
    choices, wrong = drop_wrong_rules(place, dict(zip(workloads, algorithms, strict=True)), lambda text: None)
    return list(choices.values()), wrong, place.requested


def test_what_is_right_stays_and_what_fails_is_dropped_and_named():
    fails = {"chain": {CASE: "ended with code 1"}}
    choices, wrong, requested = dropped(fails, "chain", "linear")
    assert choices == [LIBRARY, "linear"]
    assert wrong == {("reduce", "chain"): "input in-place, 8 ranks, 64 B: ended with code 1"}
    assert [name for name, _ in requested] == ["default", "chain", "linear", "all rules"]
    assert requested[1][1] == [2, 3, 8]


def test_what_fails_without_rules_too_is_no_fault_of_a_rule():
    fails = {name: {CASE: "not done after 20 s"} for name in ("default", "linear", "all rules")}
    assert dropped(fails, "linear", "linear")[:2] == (["linear", "linear"], {})


def test_rules_that_fail_only_together_all_go():
    choices, wrong, _ = dropped({"all rules": {CASE: "not done after 20 s"}}, "linear", "in-order")
    assert choices == [LIBRARY, LIBRARY]
    assert set(wrong) == {("reduce", "linear"), ("reduce", "in-order")}
    assert all(why.startswith("with its other rules, input in-place") for why in wrong.values())


@pytest.mark.parametrize(("ranks", "forced"), [(2, [2]), (3, [2, 3]), (8, [2, 3, 8])])
def test_no_more_ranks_are_started_than_there_are(ranks, forced):
    """Two ranks of a machine with two cores have no room for a third."""
    workloads = [PlacedWorkload("reduce", ranks, "block", size) for size in (64, 4096)]
    assert dropped({}, "linear", "linear", workloads=workloads)[2][1] == ("linear", forced)
