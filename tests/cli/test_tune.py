"""commodel tune on a machine whose every time is known: the library heeds its rules, or does not; and on this one."""

import re
from dataclasses import dataclass, field, replace
from math import log
from statistics import mean

import pytest

from commodel.advice import tuning
from commodel.advice.active import believe
from commodel.advice.arms import REST, Arm, Arms
from commodel.advice.proof import gain
from commodel.advice.trial import Row, Stage, kept, on_trial, prove
from commodel.advice.tuning import chosen, search
from commodel.cli import _gains
from commodel.cli._dialects import OPEN
from commodel.errors import UserError
from commodel.files.paths import SafePath
from commodel.measure.ruled import Place
from commodel.records import LIBRARY, Choice, Measure, Timed
from commodel.stats import NOISE

SIZES = (64, 2048, 65536)
WAYS = {"bcast": ("linear", "binomial-near", "scatter-allgather"), "alltoall": ("linear", "bruck", "pairwise")}
JOBS = [(name, 8, "block", size) for name in WAYS for size in SIZES]
OWN = {"bcast": "linear", "alltoall": "pairwise"}  # what the library does by itself


def cost(operation, algorithm, size):
    """Of one algorithm the time grows from less, of another it grows less."""
    place = WAYS[operation].index(algorithm)
    return (1 + 2 * place) * 1e-4 + size * 1e-8 / (1 + place) ** 2


@dataclass(frozen=True)
class Machine(Place):
    """Notes what it was asked; `deaf`: operations whose rules change nothing; `beyond`: where a rule ends and the
    library is to choose by itself again, it goes on with the rule; `device`: how many times as fast an operation is
    where there is no rule for it; `turn`: how many times as fast all is in starts with rules, by chance."""

    deaf: tuple = ()
    late: tuple = ()
    beyond: bool = False
    device: dict = field(default_factory=dict)
    turn: float = 1.0
    asked: list = field(default_factory=list)

    def _measure(self, raw, jobs, settings):
        self.asked.append((raw.parent.name, bool(settings)))
        text = (self.folder / "starts" / raw.parent.name / self.dialect.file).open().read()
        rules = self.told[text] if settings else {}
        in_time = [job for job in jobs if job not in self.late]
        return {job: (cost(job[0], self._way(job, rules), job[3]) / self._faster(job, rules), NOISE) for job in in_time}

    def _faster(self, job, rules):
        ruled = job[0] in {row.operation for row in rules}
        return (self.turn if rules else 1) * (1 if ruled else self.device.get(job[0], 1))

    def _way(self, job, rules):
        below = [row for row in rules if row.operation == job[0] and row.bytes <= job[3]]
        ruled = [row for row in below if not (self.beyond and row.algorithm == LIBRARY)]
        nearest = max(ruled, key=lambda row: row.bytes, default=None)
        own = nearest is None or nearest.algorithm == LIBRARY or job[0] in self.deaf
        return OWN[job[0]] if own else nearest.algorithm

    def _start(self, name, jobs, choices):
        self.told[self.dialect.text(choices) if choices else ""] = choices
        return super()._start(name, jobs, choices)

    told = {}  # noqa: RUF012 - what each text of rules means


def machine(folder, deaf=()):
    measure = Measure("barrier", 0.1, 5, 10, 0.1, 1, 1, 60.0)
    return Machine("m", None, None, OPEN, measure, SafePath.at(folder), lambda text: None, deaf)


def arms(own=(LIBRARY,)):
    """Prices that are off by a factor of each algorithm."""
    off = dict(zip([(name, way) for name, ways in WAYS.items() for way in ways], [1, 1.6, 0.7, 1.2, 1, 2], strict=True))
    ways = [Arm(job, way, off[job[0], way] * cost(job[0], way, job[3])) for job in JOBS for way in WAYS[job[0]]]
    left = [Arm(job, name, min(arm.price for arm in ways if arm.job == job)) for job in JOBS for name in own]
    return Arms.of(ways + left)


def test_it_finds_the_fastest_and_proves_it(tmp_path):
    place = machine(tmp_path)
    searched = search(place, arms(), 1e9, lambda text: None)
    choices = chosen(searched)
    ways = [OWN[job[0]] if choices[job] == LIBRARY else choices[job] for job in JOBS]
    best = [min(cost(job[0], way, job[3]) for way in WAYS[job[0]]) for job in JOBS]
    assert mean(cost(job[0], way, job[3]) / least for job, way, least in zip(JOBS, ways, best, strict=True)) < 1.05
    assert mean(cost(job[0], OWN[job[0]], job[3]) / least for job, least in zip(JOBS, best, strict=True)) > 1.3
    assert len(searched.belief.measured) < len(searched.arms.arms)
    assert not searched.ignored
    trial = prove(place, "trial", choices, 3, lambda text: None)
    assert {row.size for row in trial.rows}.isdisjoint(SIZES)
    for row in trial.rows:
        way = OWN[row.job[0]] if row.algorithm == LIBRARY else row.algorithm
        times = [cost(row.job[0], name, row.size) for name in (OWN[row.job[0]], way)]
        assert row.gain.times == pytest.approx(times[0] / times[1])
    stay = kept(trial)
    assert all(stay[row.job] == (row.algorithm if row.gain.times > 1 else LIBRARY) for row in trial.rows)


def test_what_the_library_does_by_default_is_measured_without_any_rules(tmp_path):
    """MPICH's device does an operation that has no rule: here 100 times as fast as any rule, which no start with rules
    for other sizes would show."""
    place = replace(machine(tmp_path), device={"alltoall": 100})
    searched = search(place, arms((LIBRARY, REST)), 1e9, lambda text: None)
    assert {choice for job, choice in chosen(searched).items() if job[0] == "alltoall"} == {LIBRARY}
    assert any(choice != LIBRARY for job, choice in chosen(searched).items() if job[0] == "bcast")
    belief = searched.belief
    for number, seconds in belief.measured.items():
        (operation, *_, size), algorithm = belief.arms.arms[number].job, belief.arms.arms[number].algorithm
        way = OWN[operation] if algorithm in (LIBRARY, REST) else algorithm
        faster = place.device.get(operation, 1) if algorithm == LIBRARY else 1
        assert seconds == pytest.approx(cost(operation, way, size) / faster)
    assert {ruled for name, ruled in place.asked if name.startswith("round")} == {True, False}


def test_rules_that_change_nothing_are_found_out(tmp_path):
    searched = search(machine(tmp_path, deaf=("alltoall",)), arms(), 1e9, lambda text: None)
    assert searched.ignored == ["alltoall"]
    assert {algorithm for job, algorithm in chosen(searched).items() if job[0] == "alltoall"} == {LIBRARY}


def test_two_algorithms_that_are_as_fast_as_each_other_do_not_mean_that_rules_change_nothing(tmp_path, monkeypatch):
    for name in ("first", "again"):
        (tmp_path / name).mkdir()
    known, usual = arms(), cost
    checked = search(machine(tmp_path / "first"), known, 0.0, lambda text: None).belief.measured
    pair = {(arm.job[0], arm.algorithm, arm.job[3]) for arm in (known.arms[number] for number in checked)}
    monkeypatch.setattr(f"{__name__}.cost", lambda *way: 1e-4 if way in pair else usual(*way))
    searched = search(machine(tmp_path / "again"), known, 1e9, lambda text: None)
    assert len(searched.belief.measured) > len(checked)
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


def test_where_rules_slow_down_what_they_are_not_for_none_stays(tmp_path):
    """As if its component were another one then."""
    alltoall = JOBS[len(SIZES) :]
    choices = dict.fromkeys(alltoall, LIBRARY) | {alltoall[0]: "linear"}
    place = replace(machine(tmp_path), beyond=True)
    trial = prove(place, "trial", choices, 3, lambda text: None)
    assert trial.rows[0].gain.times > 1
    assert [row.harms for row in trial.rows] == [False, False, True]
    assert set(kept(trial).values()) == {LIBRARY}
    rows = prove(machine(tmp_path / "well"), "trial", choices, 3, lambda text: None)
    assert kept(rows)[alltoall[0]] == "linear"


def test_gains_are_held_against_cases_without_a_rule(tmp_path):
    """All is 1.2 times as fast whenever there are rules, by chance: a rule for what the library does anyway seems to
    gain as much."""
    choices = dict.fromkeys(JOBS, LIBRARY) | {JOBS[0]: OWN["bcast"], JOBS[2]: "scatter-allgather"}
    quiet, turning = (
        prove(replace(machine(tmp_path / str(turn)), turn=turn), "trial", choices, 3, lambda text: None)
        for turn in (1.0, 1.2)
    )
    assert (quiet.control.cases, quiet.control.differ, quiet.control.wider) == (4, 0, 0)
    assert (turning.control.cases, turning.control.differ, turning.control.wider) == (4, 4, pytest.approx(log(1.2)))
    rows = {row.job: row for row in turning.rows}
    assert rows[JOBS[0]].gain.times == pytest.approx(1.2)
    real = {row.job: row.gain.times for row in quiet.rows}[JOBS[2]]
    assert rows[JOBS[2]].gain.low == pytest.approx(real)
    assert [job for job, way in kept(turning).items() if way != LIBRARY] == [JOBS[2]]
    assert _gains._control("trial", quiet) == [
        "In the trial 0 of 4 cases that rules leave as they were took other times, no more than by chance."
    ]
    assert (
        "4 of 4 cases that rules leave as they were took other times: the machine changed meanwhile. So all intervals "
    )
    assert "reach 20.0 % further" in _gains._control("trial", turning)[0]


def test_where_a_rule_changes_all_of_its_operation_it_has_to_pay_for_all(tmp_path):
    """And what it leaves to the library is no control."""
    choices = dict.fromkeys(JOBS, LIBRARY) | {JOBS[2]: "scatter-allgather"}
    place = replace(machine(tmp_path), device={"bcast": 1.04})
    trial = prove(place, "trial", choices, 3, lambda text: None, spread=True)
    assert (trial.control.cases, trial.control.differ) == (3, 0)
    assert kept(trial)[JOBS[2]] == "scatter-allgather"
    noisy = [gain([2, 1, 4], [1, 1, 1]), gain([1, 1, 1], [1, 1, 1]), gain([1, 1, 1], [1.2, 1.2, 1.2])]
    rows = [Row(job, 1, choices[job], seen) for job, seen in zip(JOBS, noisy, strict=False)]
    assert [row.gain.harms for row in rows] == [False] * 3
    assert kept(Stage(rows))[JOBS[2]] == "scatter-allgather"
    assert kept(Stage(rows, spread=True))[JOBS[2]] == LIBRARY


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


def test_in_trial_and_proof_each_operation_has_a_start_of_its_own(tmp_path):
    """Else connections are as the operation before has left them, and a rule for that one seems to slow this one."""
    place = machine(tmp_path)
    prove(place, "proof", dict.fromkeys(JOBS, LIBRARY) | {JOBS[0]: "binomial-near"}, 3, lambda text: None)
    assert {name for name, _ in place.asked} == {f"proof-{number}-{name}" for number in range(6) for name in OWN}
    assert on_trial(dict.fromkeys(JOBS, LIBRARY) | {JOBS[0]: "linear"}) == dict.fromkeys(JOBS[:3], LIBRARY) | {
        JOBS[0]: "linear"
    }


def test_what_has_no_valid_sample_took_no_time_it_is_not_known(tmp_path):
    """On a busy machine ranks may start late in every sample: no rule rests on such a case, and it is not slow."""
    late = replace(machine(tmp_path), late=(JOBS[0],))
    searched = search(late, arms(), 1e9, lambda text: None)
    assert not {searched.arms.arms[arm].job for arm in searched.belief.measured} & {JOBS[0]}
    assert len(searched.belief.measured) > len(JOBS)
    sizes = {row.size for row in prove(machine(tmp_path), "trial", chosen(searched), 3, lambda text: None).rows}
    late = replace(machine(tmp_path), late=tuple(("bcast", 8, "block", size) for size in sizes))
    proof = prove(late, "proof", chosen(searched), 3, lambda text: None)
    assert {row.job[0] for row in proof.rows} == {"alltoall"}
