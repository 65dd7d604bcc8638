"""Rules that give wrong results are dropped before any is timed: a place where it is known what fails."""

from dataclasses import dataclass, field

import pytest

from commodel.advice.proof import drop_wrong
from commodel.records import LIBRARY

JOBS = [("reduce", 8, "block", size) for size in (64, 4096)]
CASE = ("in-place", 8, 64)


@dataclass
class Known:
    """Where `fails` has, by what is tried, the cases that fail and why."""

    fails: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)

    def find_failures(self, name, operation, sizes, choices, layout):
        assert all(choice.ranks <= 8 for choice in choices)
        self.asked.append((name.removeprefix(f"results-{operation}-"), sorted({choice.ranks for choice in choices})))
        return self.fails.get(self.asked[-1][0], {})


def dropped(fails, *algorithms, jobs=JOBS):
    place = Known(fails)
    choices, wrong = drop_wrong(place, dict(zip(jobs, algorithms, strict=True)), lambda text: None)
    return list(choices.values()), wrong, place.asked


def test_what_is_right_stays_and_what_fails_is_dropped_and_named():
    fails = {"chain": {CASE: "ended with code 1"}}
    choices, wrong, asked = dropped(fails, "chain", "linear")
    assert choices == [LIBRARY, "linear"]
    assert wrong == {("reduce", "chain"): "input in-place, 8 ranks, 64 B: ended with code 1"}
    assert [name for name, _ in asked] == ["default", "chain", "linear", "all rules"]
    assert asked[1][1] == [2, 3, 8]


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
    jobs = [("reduce", ranks, "block", size) for size in (64, 4096)]
    assert dropped({}, "linear", "linear", jobs=jobs)[2][1] == ("linear", forced)
