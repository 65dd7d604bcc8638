"""Validation of rules: gains with their intervals, controls, and rules with wrong results."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.records import LIBRARY, PlacedWorkload
from commodel_tune.validation import (
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


def test_a_gain_by_hand():
    """The ratios are 2 and 8 with a geometric mean of 4. The quantile of t with one degree of
    freedom is 12.706."""
    gained = compute_gain([1.0, 1.0], [2.0, 8.0])
    assert gained.ratio == pytest.approx(4)
    assert gained.high == pytest.approx(4 * np.exp(12.706 * np.log(2)), rel=1e-3)
    assert gained.low == pytest.approx(16 / gained.high)
    assert not gained.is_faster


def test_effects_on_both_starts_of_a_pair_cancel():
    """The network becomes ten times slower between pairs."""
    gained = compute_gain([1, 3, 10], [2, 6, 20])
    assert (gained.low, gained.ratio, gained.high) == pytest.approx((2, 2, 2))
    assert gained.is_faster
    assert compute_gain([2, 6, 20], [1, 3, 10]).is_slower


def test_a_rule_may_be_slower_within_the_allowed_limit():
    gained = compute_gain([1.03, 1.03, 1.03], [1, 1, 1])
    assert not gained.is_slower
    assert not gained.is_faster


def test_intervals_cover_the_true_gain_in_95_of_100_cases():
    random = np.random.default_rng(5)
    samples = random.lognormal(np.log(1.2), 0.1, (2000, 4))
    covered = [
        gained.low <= 1.2 <= gained.high
        for gained in (compute_gain([1.0] * 4, row) for row in samples)
    ]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize("dof", [2, 8, 1000])
def test_pooled_variances_give_intervals_that_are_narrower_and_cover_95_percent(dof):
    """Variances of cases are inverse χ² with `dof` degrees of freedom. The pooled intervals of
    three pairs are narrower than Student's, most so if the variances are similar. With 2 degrees of
    freedom they cover 93 %."""
    random = np.random.default_rng(9)
    covered, pooled_widths, student_widths = [], [], []
    for _ in range(30):
        spread = 0.1 * np.sqrt(dof / random.chisquare(dof, 40))
        gains = [
            compute_gain([1.0] * 3, np.exp(random.normal(0.2, scatter, 3))) for scatter in spread
        ]
        pooled = pool_variances(gains)
        covered += [gain.low <= np.exp(0.2) <= gain.high for gain in pooled]
        pooled_widths += [np.log(gain.high / gain.low) for gain in pooled]
        student_widths += [np.log(gain.high / gain.low) for gain in gains]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.025)
    assert np.mean(pooled_widths) < (0.85 if dof == 2 else 0.65) * np.mean(student_widths)


def test_variances_of_a_few_cases_are_not_pooled():
    gains = [compute_gain([1, 1, 1], row) for row in ([1, 2, 3], [1, 1.1, 1.2], [2, 2, 3])]
    assert pool_variances(gains) == gains
    assert join_gains(gains[0], gains[1]).pairs == gains[0].pairs + gains[1].pairs


@given(st.lists(st.integers(1, 1 << 22), min_size=1, max_size=6, unique=True).map(sorted))
def test_the_same_rule_applies_to_an_unmeasured_size(sizes):
    for size, following in zip(sizes, [*sizes[1:], 1 << 60], strict=True):
        case = choose_unmeasured_sizes(sizes)[size]
        assert size <= case < following
        assert case > size or following <= 2 * size or size < 3


def test_unmeasured_sizes_by_hand():
    assert choose_unmeasured_sizes([8, 512, 32768]) == {8: 64, 512: 4096, 32768: 49152}
    assert choose_unmeasured_sizes([0]) == {0: 0}


@given(st.integers(1, 9))
def test_starts_with_and_without_rules_alternate(pairs):
    turns = order_starts(pairs)
    assert [turns[at] != turns[at + 1] for at in range(0, 2 * pairs, 2)] == [True] * pairs
    assert abs(sum(turns[::2]) - sum(turns[1::2])) <= 1


def test_the_mean_of_all_cases_by_hand():
    assert average_gains(
        [compute_gain([1, 1, 1], [2, 2, 2]), compute_gain([1, 1, 1], [8, 8, 8])]
    ) == pytest.approx((4, 4, 4))


def test_one_slow_start_widens_the_mean_of_many_cases_as_that_of_one():
    noisy = compute_gain([1, 1, 4], [1, 1, 1])
    assert average_gains([noisy] * 50) == pytest.approx((noisy.ratio, noisy.low, noisy.high))
    assert noisy.low < 1 < noisy.high


def make_gain(low, high):
    """Return the gain of a workload without a rule, with this interval."""
    return Gain(np.sqrt(low * high), low, high, 1.0, 1.0)


def test_intervals_are_widened_until_intervals_of_controls_contain_1():
    """The interval of one case in twenty may exclude 1 by chance; a second one requires a
    margin."""
    controls = [make_gain(0.9, 1.1)] * 18
    by_chance = compute_control([*controls, make_gain(0.9, 1.1), make_gain(1.5, 1.6)])
    assert (by_chance.workloads, by_chance.excluding_one, by_chance.log_margin) == (20, 1, 0.0)
    changed = compute_control([*controls, make_gain(0.8, 0.9), make_gain(1.5, 1.6)])
    assert (changed.excluding_one, np.exp(changed.log_margin)) == (2, pytest.approx(1 / 0.9))
    assert make_gain(1.05, 1.2).widen(changed.log_margin).low == pytest.approx(1.05 * 0.9)
    assert not make_gain(1.05, 1.2).widen(changed.log_margin).is_faster
    assert make_gain(1.2, 1.3).widen(changed.log_margin).is_faster
    assert average_gains([compute_gain([1, 1, 1], [2, 2, 2])], changed.log_margin) == pytest.approx(
        (2, 1.8, 2 / 0.9)
    )
    assert compute_control([]).log_margin == 0


def test_the_control_hardly_widens_correct_intervals():
    random = np.random.default_rng(5)
    pairs = random.lognormal(0, 0.1, (200, 40, 4))
    wider = [
        compute_control(compute_gain([1.0] * 4, row) for row in cases).log_margin for cases in pairs
    ]
    assert np.median(wider) < 0.02
    drifting = compute_control(compute_gain([1.0] * 4, row * 1.3) for row in pairs[0])
    assert drifting.log_margin > 0.15


WORKLOADS = [PlacedWorkload("reduce", 8, "block", size) for size in (64, 4096)]
CASE = ("in-place", 8, 64)


@dataclass
class FailingTimer:
    """A timer with given failures: `fails` has the failed cases by name of the start."""

    fails: dict = field(default_factory=dict)
    requested: list = field(default_factory=list)

    def find_failures(self, name, operation, sizes, choices, layout):
        assert all(choice.ranks <= 8 for choice in choices)
        self.requested.append(
            (
                name.removeprefix(f"results-{operation}-"),
                sorted({choice.ranks for choice in choices}),
            )
        )
        return self.fails.get(self.requested[-1][0], {})


def dropped(fails, *algorithms, workloads=WORKLOADS):
    place = FailingTimer(fails)
    choices, wrong = drop_wrong_rules(
        place, dict(zip(workloads, algorithms, strict=True)), lambda text: None
    )
    return list(choices.values()), wrong, place.requested


def test_algorithms_with_wrong_results_are_dropped_and_named():
    fails = {"chain": {CASE: "ended with code 1"}}
    choices, wrong, requested = dropped(fails, "chain", "linear")
    assert choices == [LIBRARY, "linear"]
    assert wrong == {("reduce", "chain"): "input in-place, 8 ranks, 64 B: ended with code 1"}
    assert [name for name, _ in requested] == ["default", "chain", "linear", "all rules"]
    assert requested[1][1] == [2, 3, 8]


def test_a_failure_under_the_library_default_too_drops_no_rule():
    fails = {name: {CASE: "not done after 20 s"} for name in ("default", "linear", "all rules")}
    assert dropped(fails, "linear", "linear")[:2] == (["linear", "linear"], {})


def test_rules_that_fail_only_together_are_all_dropped():
    choices, wrong, _ = dropped({"all rules": {CASE: "not done after 20 s"}}, "linear", "in-order")
    assert choices == [LIBRARY, LIBRARY]
    assert set(wrong) == {("reduce", "linear"), ("reduce", "in-order")}
    assert all(why.startswith("with its other rules, input in-place") for why in wrong.values())


@pytest.mark.parametrize(("ranks", "forced"), [(2, [2]), (3, [2, 3]), (8, [2, 3, 8])])
def test_no_more_ranks_are_started_than_there_are(ranks, forced):
    """Algorithms are checked at 2, 3 and 8 ranks, but at no more ranks than the workloads have."""
    workloads = [PlacedWorkload("reduce", ranks, "block", size) for size in (64, 4096)]
    assert dropped({}, "linear", "linear", workloads=workloads)[2][1] == ("linear", forced)
