"""Which rules of commodel tune stay: a machine whose every time is known, with rules and without."""

from dataclasses import replace
from math import exp, log

import pytest

from commodel.advice.proof import BESIDE, Row, Stage, gain, on_trial, prove, proven, worth_a_proof
from commodel.cli import tune
from commodel.records import LIBRARY
from tests.cli.knownmpi import JOBS, OWN, SIZES, machine


def test_where_rules_slow_down_twice_what_they_are_not_for_none_stays(tmp_path):
    """As if its component were another one then. Of many cases one seems slower once by chance."""
    alltoall = JOBS[len(SIZES) :]
    choices = dict.fromkeys(alltoall, LIBRARY) | {alltoall[0]: "linear"}
    place = replace(machine(tmp_path), beyond=True)
    trial = prove(place, "trial", choices, 3, lambda text: None)
    assert trial.rows[0].gain.times > 1
    assert [row.harms for row in trial.rows] == [False, False, True]
    well = prove(machine(tmp_path / "well"), "trial", choices, 3, lambda text: None)
    assert worth_a_proof(well)[alltoall[0]] == "linear"
    assert set(proven(trial, trial).values()) == {LIBRARY}
    for proof, before in ((trial, well), (well, trial)):
        assert proven(proof, before)[alltoall[0]] == "linear"


def test_gains_are_held_against_cases_without_a_rule(tmp_path):
    """All is 1.2 times as fast whenever there are rules, by chance: a rule for what the library does anyway seems to
    gain as much."""
    choices = dict.fromkeys(JOBS, LIBRARY) | {JOBS[0]: OWN["bcast"], JOBS[2]: "scatter-allgather"}
    quiet, turning = (
        prove(replace(machine(tmp_path / str(turn)), turn=turn), "trial", choices, 3, lambda text: None)
        for turn in (1.0, 1.2)
    )
    assert (quiet.control.cases, quiet.control.differ, quiet.control.wider) == (4, 0, 0)
    assert (turning.control.cases, turning.control.differ) == (4, 4)
    assert turning.control.wider == pytest.approx(log(1.2), rel=2e-3)
    rows = {row.job: row for row in turning.rows}
    assert rows[JOBS[0]].gain.times == pytest.approx(1.2)
    real = {row.job: row.gain.times for row in quiet.rows}[JOBS[2]]
    assert rows[JOBS[2]].gain.low == pytest.approx(real, rel=1e-3)
    for stay in (worth_a_proof(turning), proven(turning, quiet)):
        assert [job for job, way in stay.items() if way != LIBRARY] == [JOBS[2]]
    assert tune._control("trial", quiet) == [
        "In the trial 0 of 4 cases that rules leave as they were took other times, no more than by chance."
    ]
    assert (
        "4 of 4 cases that rules leave as they were took other times: the machine changed meanwhile. So all intervals "
    )
    assert "reach 20 % further" in tune._control("trial", turning)[0]


def test_where_a_rule_changes_all_of_its_operation_it_has_to_pay_for_all(tmp_path):
    """And what it leaves to the library is no control."""
    choices = dict.fromkeys(JOBS, LIBRARY) | {JOBS[2]: "scatter-allgather"}
    place = replace(machine(tmp_path), device={"bcast": 1.04})
    trial = prove(place, "trial", choices, 3, lambda text: None, spread=True)
    assert (trial.control.cases, trial.control.differ) == (3, 0)
    assert worth_a_proof(trial)[JOBS[2]] == "scatter-allgather"
    noisy = [gain([2, 1, 4], [1, 1, 1]), gain([1, 1, 1], [1, 1, 1]), gain([1, 1, 1], [1.2, 1.2, 1.2])]
    rows = [Row(job, 1, choices[job], seen) for job, seen in zip(JOBS, noisy, strict=False)]
    assert [row.gain.harms for row in rows] == [False] * 3
    assert worth_a_proof(Stage(rows))[JOBS[2]] == "scatter-allgather"
    assert worth_a_proof(Stage(rows, spread=True))[JOBS[2]] == LIBRARY


def test_in_trial_and_proof_each_operation_with_rules_has_starts_of_its_own(tmp_path):
    """Else connections are as the operation before has left them, and a rule for that one seems to slow this one. Where
    there is no rule nothing is different: these share a start."""
    place = machine(tmp_path)
    prove(place, "proof", dict.fromkeys(JOBS, LIBRARY) | {JOBS[0]: "binomial-near"}, 3, lambda text: None)
    assert {name for name, _ in place.asked} == {
        f"proof-{number}{end}" for number in range(6) for end in ("", "-bcast")
    }


def test_in_a_trial_there_is_what_rules_cannot_change():
    choices = dict.fromkeys(JOBS, LIBRARY) | {JOBS[0]: "linear"}
    assert on_trial(choices) == dict.fromkeys(JOBS[:3], LIBRARY) | {JOBS[0]: "linear"}
    many = {("reduce", 8, "block", size): LIBRARY for size in range(30)}
    beside = on_trial(choices | many, spread=True)
    assert [beside[job] for job in JOBS[:3]] == ["linear", LIBRARY, LIBRARY]
    assert {job[0] for job in beside} == {"bcast", "alltoall", "reduce"}
    assert 6 < len(beside) - 3 <= BESIDE


def stage_of(*pairs):
    """Rules for the first jobs, each with the logarithms of its gains."""
    gains = [gain([1.0] * len(logs), [exp(log) for log in logs]) for logs in pairs]
    return Stage([Row(job, 64, "linear", seen) for job, seen in zip(JOBS, gains, strict=False)])


def test_what_gains_little_in_the_trial_is_not_proven():
    trial = stage_of([0.1, 0.2], [0.04, 0.03], [-0.1, 0.3])
    assert [worth_a_proof(trial)[job] for job in JOBS[:3]] == ["linear", LIBRARY, "linear"]


def test_a_rule_is_proven_by_trial_and_proof_together_but_has_to_be_faster_in_both():
    """The first is faster in all pairs; the second by chance in the trial; of the third nobody knows."""
    trial = stage_of([0.2, 0.25], [0.9, 0.95], [0.5, -0.3])
    proof = stage_of([0.21, 0.2, 0.25], [-0.01, 0.0, -0.02], [0.6, -0.3, 0.1])
    assert [job for job, way in proven(proof, trial).items() if way != LIBRARY] == [JOBS[0]]
    alone = gain([1.0] * 3, [exp(log) for log in (0.21, 0.2, 0.25)])
    assert proof.rows[0].gain.times == pytest.approx(alone.times)
