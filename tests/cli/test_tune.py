"""commodel tune on a machine whose every time is known: what it measures, and what it chooses."""

import re
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest

from commodel.advice import tuning
from commodel.advice.proof import WORTH, prove, worth_a_proof
from commodel.advice.sequential_sampling import REST, Arm, Arms, believe
from commodel.advice.tuning import chosen, search
from commodel.api.library_rules import OPEN, dialect
from commodel.errors import UserError
from commodel.records import LIBRARY, Choice, Timed
from tests.cli.knownmpi import JOBS, OWN, SIZES, WAYS, arms, cost, machine


def test_it_finds_the_fastest_and_proves_it(tmp_path):
    place = machine(tmp_path)
    searched = search(place, arms(), 1e9, lambda text: None)
    choices = chosen(searched, WORTH)
    ways = [OWN[job[0]] if choices[job] == LIBRARY else choices[job] for job in JOBS]
    best = [min(cost(job[0], way, job[3]) for way in WAYS[job[0]]) for job in JOBS]
    assert mean(cost(job[0], way, job[3]) / least for job, way, least in zip(JOBS, ways, best, strict=True)) < 1.05
    assert mean(cost(job[0], OWN[job[0]], job[3]) / least for job, least in zip(JOBS, best, strict=True)) > 1.3
    assert len(searched.belief.seen) < len(searched.arms.arms)
    assert not searched.ignored
    trial = prove(place, "trial", choices, 3, lambda text: None)
    assert {row.size for row in trial.rows}.isdisjoint(SIZES)
    for row in trial.rows:
        way = OWN[row.job[0]] if row.algorithm == LIBRARY else row.algorithm
        times = [cost(row.job[0], name, row.size) for name in (OWN[row.job[0]], way)]
        assert row.gain.times == pytest.approx(times[0] / times[1])
    stay = worth_a_proof(trial)
    assert all(stay[row.job] == (row.algorithm if row.gain.times > 1 else LIBRARY) for row in trial.rows)


def test_what_the_library_does_by_default_is_measured_without_any_rules(tmp_path):
    """MPICH's device does an operation that has no rule: here 100 times as fast as any rule, which no start with rules
    for other sizes would show."""
    place = replace(machine(tmp_path), device={"alltoall": 100})
    searched = search(place, arms((LIBRARY, REST)), 1e9, lambda text: None)
    assert {choice for job, choice in chosen(searched, WORTH).items() if job[0] == "alltoall"} == {LIBRARY}
    assert any(choice != LIBRARY for job, choice in chosen(searched, WORTH).items() if job[0] == "bcast")
    belief = searched.belief
    for number, (seconds, _) in belief.medians().items():
        (operation, *_, size), algorithm = belief.arms.arms[number].job, belief.arms.arms[number].algorithm
        way = OWN[operation] if algorithm in (LIBRARY, REST) else algorithm
        faster = place.device.get(operation, 1) if algorithm == LIBRARY else 1
        assert seconds == pytest.approx(cost(operation, way, size) / faster)
    assert {ruled for name, ruled in place.asked if name.startswith("round")} == {True, False}


def test_rules_that_change_nothing_are_found_out(tmp_path):
    """Though starts differ by what they often do."""
    place = replace(machine(tmp_path, deaf=("alltoall",)), unsteady=1.12)
    searched = search(place, arms(), 1e9, lambda text: None)
    assert searched.ignored == ["alltoall"]
    assert {algorithm for job, algorithm in chosen(searched, WORTH).items() if job[0] == "alltoall"} == {LIBRARY}


def test_two_algorithms_that_are_as_fast_as_each_other_do_not_mean_that_rules_change_nothing(tmp_path, monkeypatch):
    for name in ("first", "again"):
        (tmp_path / name).mkdir()
    known, usual = arms(), cost
    checked = search(machine(tmp_path / "first"), known, 0.0, lambda text: None).belief.seen
    pair = {(arm.job[0], arm.algorithm, arm.job[3]) for arm in (known.arms[number] for number in checked)}
    monkeypatch.setattr("tests.cli.knownmpi.cost", lambda *way: 1e-4 if way in pair else usual(*way))
    searched = search(machine(tmp_path / "again"), known, 1e9, lambda text: None)
    assert len(searched.belief.seen) > len(checked)
    assert not searched.ignored


def test_a_budget_ends_it(tmp_path):
    """But for the two starts that show whether rules are followed."""
    place = machine(tmp_path)
    search(place, arms(), 0.0, lambda text: None)
    assert [name for name, _ in place.asked] == ["round-0", "round-1"]


def test_what_was_timed_is_not_timed_again(tmp_path):
    first, second = machine(tmp_path), machine(tmp_path)
    search(first, arms(), 1e9, lambda text: None)
    search(second, arms(), 1e9, lambda text: None)
    assert len(first.asked) > 2
    assert not second.asked


def test_a_rule_for_barriers_is_measured_where_it_is_worth_a_start(tmp_path):
    """Both ways gain as much, but each point of the barrier takes a start of its own."""
    ways = [Arm((name, 8, "block", 0), way, 1e-3) for name in ("barrier", "bcast") for way in ("linear", "binomial")]
    place = machine(tmp_path)
    known = believe(Arms.of(ways), {})
    costs = tuning._costs(place.measure, known, 1.0)
    assert costs[:2] == pytest.approx(costs[2:] + 1)
    assert known.next_points(1, costs) == [2]


def test_another_choice_under_the_same_name_is_timed_anew(tmp_path):
    place = machine(tmp_path)
    times = [
        place.time("round-0", [JOBS[0]], [Choice("bcast", 8, 64, way)]).seconds[JOBS[0]]
        for way in ("linear", "binomial-near", "binomial-near")
    ]
    assert times == [cost("bcast", way, 64) for way in ("linear", "binomial-near", "binomial-near")]
    assert len(place.asked) == 2


def test_what_the_user_has_set_himself_is_not_overruled_in_silence(tmp_path, monkeypatch):
    monkeypatch.setenv("OMPI_MCA_coll_tuned_priority", "30")
    with pytest.raises(UserError, match="OMPI_MCA_coll_tuned_priority is set in the environment"):
        machine(tmp_path).time("round-0", [JOBS[0]], [Choice("bcast", 8, 64, "linear")])


@pytest.mark.parametrize(("version", "spread"), [("4.1.4", False), ("5.0.11", True), ("10.0.1", True)])
def test_a_rule_changes_what_open_mpi_does_without_one_where_han_comes_first(monkeypatch, version, spread):
    monkeypatch.setattr(
        "commodel.api.library_rules.library_of", lambda command: f"Open MPI v{version}, package: Debian"
    )
    assert dialect(Path("library")).spread == spread


def test_nothing_is_said_of_more_ranks():
    text = OPEN.text([Choice("bcast", 8, 64, "linear")])
    assert re.search(r"^9 # ranks and more\n1 # message sizes\n0 0 0 0 # library", text, re.MULTILINE)


def test_a_rule_for_barriers_has_a_start_of_its_own(tmp_path):
    """Else it would line up ranks in another way before everything else."""
    place, barrier = machine(tmp_path), ("barrier", 8, "block", 0)
    asked = []
    object.__setattr__(place, "_start", lambda name, jobs, rows: asked.append((name, jobs, rows)) or Timed({}, 1.0))
    rules = [Choice("barrier", 8, 0, "linear"), Choice("bcast", 8, 64, "linear")]
    assert place.time("a", [JOBS[0], barrier], rules).took == 2
    place.time("b", [JOBS[0], barrier])
    place.time("c", [JOBS[0]], rules)
    assert asked == [
        ("a", [JOBS[0]], rules[1:]),
        ("a-barrier", [barrier], rules[:1]),
        ("b", [JOBS[0], barrier], []),
        ("c", [JOBS[0]], rules[1:]),
    ]


def test_what_has_no_valid_sample_took_no_time_it_is_not_known(tmp_path):
    """On a busy machine ranks may start late in every sample: no rule rests on such a case, and it is not slow."""
    late = replace(machine(tmp_path), late=(JOBS[0],))
    searched = search(late, arms(), 1e9, lambda text: None)
    assert not {searched.arms.arms[arm].job for arm in searched.belief.seen} & {JOBS[0]}
    assert len(searched.belief.seen) > len(JOBS)
    sizes = {row.size for row in prove(machine(tmp_path), "trial", chosen(searched, WORTH), 3, lambda text: None).rows}
    late = replace(machine(tmp_path), late=tuple(("bcast", 8, "block", size) for size in sizes))
    proof = prove(late, "proof", chosen(searched, WORTH), 3, lambda text: None)
    assert {row.job[0] for row in proof.rows} == {"alltoall"}


def test_before_a_search_ends_two_algorithms_of_each_operation_were_timed_barriers_too():
    """Though a rule for barriers needs a start of its own, and one of 49 jobs is worth little."""
    barrier = [Arm(("barrier", 8, "block", 0), name, price) for name, price in (("linear", 1e-4), ("bruck", 1e-5))]
    known = Arms.of([*arms().arms, *barrier])
    first = tuning._checks(tuning._telling(known))
    timed = {(known.arms[arm].job[0], known.arms[arm].algorithm) for start in first for arm in start}
    assert {name for name, _ in timed} == {"bcast", "alltoall", "barrier"}
    assert {way for name, way in timed if name == "barrier"} == {"linear", "bruck"}


def test_a_rule_that_is_not_expected_to_gain_much_is_not_tried(tmp_path):
    """Of the library's own choice nobody expects to be slower than by what starts differ."""
    searched = search(machine(tmp_path), arms(), 1e9, lambda text: None)
    named = {bar: {job for job, way in chosen(searched, bar).items() if way != LIBRARY} for bar in (1.0, WORTH, 1e3)}
    assert named[1e3] == set() < named[WORTH] <= named[1.0]
    assert all(chosen(searched, WORTH)[job] != OWN[job[0]] for job in named[WORTH])
