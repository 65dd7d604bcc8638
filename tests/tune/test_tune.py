"""commodel tune on a simulated MPI library: the points that it measures, its choices, and the rules
that it keeps."""

import re
from dataclasses import replace
from math import exp, log
from pathlib import Path
from statistics import mean

import pytest

import commodel
from commodel.advice.sequential_sampling import DEFAULT_WITH_RULES, Arm, Arms, compute_belief
from commodel.errors import UserError
from commodel.interchange.rules import Assumptions
from commodel.records import LIBRARY, Choice, PlacedWorkload, StartTimings
from commodel_tune import search
from commodel_tune.dialects import OPEN_MPI_DIALECT, find_dialect
from commodel_tune.results import Outcome, Tuning, describe_control
from commodel_tune.search import choose_algorithms, search_choices
from commodel_tune.tuning import TuningRequest
from commodel_tune.validation import (
    MAX_CONTROLS,
    MIN_GAIN_TO_VALIDATE,
    Stage,
    WorkloadGain,
    compute_gain,
    confirm_rules,
    measure_gains,
    select_for_screening,
    select_for_validation,
)
from tests.cli.running import run
from tests.tune.simulated_mpi import ALGORITHMS, CASES, DEFAULTS, SIZES, arms, cost, machine


def test_tune_search_chooses_algorithms_within_five_percent_of_the_fastest(tmp_path):
    place = machine(tmp_path)
    searched = search_choices(place, arms(), 1e9, lambda text: None)
    choices = choose_algorithms(searched, MIN_GAIN_TO_VALIDATE)
    chosen = [
        DEFAULTS[case.operation] if choices[case] == LIBRARY else choices[case] for case in CASES
    ]
    best = [
        min(cost(case.operation, name, case.bytes) for name in ALGORITHMS[case.operation])
        for case in CASES
    ]
    assert (
        mean(
            cost(case.operation, name, case.bytes) / least
            for case, name, least in zip(CASES, chosen, best, strict=True)
        )
        < 1.05
    )
    assert (
        mean(
            cost(case.operation, DEFAULTS[case.operation], case.bytes) / least
            for case, least in zip(CASES, best, strict=True)
        )
        > 1.3
    )
    assert len(searched.belief.measured_arms) < len(searched.arms.arms)
    assert not searched.ignored
    screening = measure_gains(place, "screening", choices, 3, lambda text: None)
    assert {row.size for row in screening.rows}.isdisjoint(SIZES)
    for row in screening.rows:
        default = DEFAULTS[row.workload.operation]
        algorithm = default if row.algorithm == LIBRARY else row.algorithm
        times = [cost(row.workload.operation, name, row.size) for name in (default, algorithm)]
        assert row.gain.ratio == pytest.approx(times[0] / times[1])
    kept_rules = select_for_validation(screening)
    assert all(
        kept_rules[row.workload] == (row.algorithm if row.gain.ratio > 1 else LIBRARY)
        for row in screening.rows
    )


def test_the_library_default_is_measured_without_rules(tmp_path):
    """Without a rule, MPICH's device may perform an operation, here 100 times as fast as with any
    rule. Starts with rules for other sizes do not show this."""
    place = replace(machine(tmp_path), device={"alltoall": 100})
    searched = search_choices(place, arms((LIBRARY, DEFAULT_WITH_RULES)), 1e9, lambda text: None)
    assert {
        choice
        for case, choice in choose_algorithms(searched, MIN_GAIN_TO_VALIDATE).items()
        if case.operation == "alltoall"
    } == {LIBRARY}
    assert any(
        choice != LIBRARY
        for case, choice in choose_algorithms(searched, MIN_GAIN_TO_VALIDATE).items()
        if case.operation == "bcast"
    )
    belief = searched.belief
    for number, (seconds, _) in belief.medians().items():
        (operation, *_, size), algorithm = (
            belief.arms.arms[number].workload,
            belief.arms.arms[number].algorithm,
        )
        timed = DEFAULTS[operation] if algorithm in (LIBRARY, DEFAULT_WITH_RULES) else algorithm
        faster = place.device.get(operation, 1) if algorithm == LIBRARY else 1
        assert seconds == pytest.approx(cost(operation, timed, size) / faster)
    assert {ruled for name, ruled in place.requested if name.startswith("round")} == {True, False}


def test_a_search_detects_rules_that_the_library_ignores(tmp_path):
    """Starts differ by a usual variation of 12 %."""
    place = replace(machine(tmp_path, ignored_operations=("alltoall",)), unsteady=1.12)
    searched = search_choices(place, arms(), 1e9, lambda text: None)
    assert searched.ignored == ["alltoall"]
    assert {
        algorithm
        for case, algorithm in choose_algorithms(searched, MIN_GAIN_TO_VALIDATE).items()
        if case.operation == "alltoall"
    } == {LIBRARY}


def test_two_equally_fast_algorithms_do_not_count_as_ignored_rules(tmp_path, monkeypatch):
    for name in ("first", "again"):
        (tmp_path / name).mkdir()
    alternatives, true_cost = arms(), cost
    checked = search_choices(
        machine(tmp_path / "first"), alternatives, 0.0, lambda text: None
    ).belief.measured_arms
    pair = {
        (arm.workload.operation, arm.algorithm, arm.workload.bytes)
        for arm in (alternatives.arms[number] for number in checked)
    }
    monkeypatch.setattr(
        "tests.tune.simulated_mpi.cost", lambda *arm: 1e-4 if arm in pair else true_cost(*arm)
    )
    searched = search_choices(machine(tmp_path / "again"), alternatives, 1e9, lambda text: None)
    assert len(searched.belief.measured_arms) > len(checked)
    assert not searched.ignored


def test_a_search_without_time_left_does_only_the_two_check_starts(tmp_path):
    """The two starts check whether the library follows rules."""
    place = machine(tmp_path)
    search_choices(place, arms(), 0.0, lambda text: None)
    assert [name for name, _ in place.requested] == ["round-0", "round-1"]


def test_a_second_search_reuses_the_measured_starts(tmp_path):
    first, second = machine(tmp_path), machine(tmp_path)
    search_choices(first, arms(), 1e9, lambda text: None)
    search_choices(second, arms(), 1e9, lambda text: None)
    assert len(first.requested) > 2
    assert not second.requested


def test_a_barrier_costs_a_start_more_than_other_operations(tmp_path):
    """Both operations gain the same, but each point of the barrier needs a separate start."""
    alternatives = [
        Arm(PlacedWorkload(operation, 8, "block", 0), name, 1e-3)
        for operation in ("barrier", "bcast")
        for name in ("linear", "binomial")
    ]
    place = machine(tmp_path)
    belief = compute_belief(Arms.of(alternatives), {})
    costs = search._estimate_costs(place.measure, belief, 1.0)
    assert costs[:2] == pytest.approx(costs[2:] + 1)
    assert belief.next_points(1, costs) == [2]


def test_a_start_with_other_rules_is_measured_again(tmp_path):
    place = machine(tmp_path)
    times = [
        place.time("round-0", [CASES[0]], [Choice("bcast", 8, 64, name)]).seconds[CASES[0]]
        for name in ("linear", "binomial-near", "binomial-near")
    ]
    assert times == [
        cost("bcast", name, 64) for name in ("linear", "binomial-near", "binomial-near")
    ]
    assert len(place.requested) == 2


def test_a_selection_in_the_users_environment_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("OMPI_MCA_coll_tuned_priority", "30")
    with pytest.raises(UserError, match="OMPI_MCA_coll_tuned_priority is set in the environment"):
        machine(tmp_path).time("round-0", [CASES[0]], [Choice("bcast", 8, 64, "linear")])


@pytest.mark.parametrize(
    ("version", "changes_defaults"), [("4.1.4", False), ("5.0.11", True), ("10.0.1", True)]
)
def test_rules_change_the_defaults_of_open_mpi_versions_with_han(
    monkeypatch, version, changes_defaults
):
    monkeypatch.setattr(
        "commodel_tune.dialects.find_library_version",
        lambda command: f"Open MPI v{version}, package: Debian",
    )
    assert find_dialect(Path("library")).changes_defaults == changes_defaults


def test_the_library_version_is_read_with_the_environment_of_the_launcher(tmp_path):
    program = tmp_path / "library"
    program.write_text('#!/bin/sh\n[ "$STARTED" ] && echo \'{"mpi": "Open MPI v4.1.4"}\'\n')
    program.chmod(0o755)
    assert find_dialect(program, ["env", "STARTED=1"]).library == OPEN_MPI_DIALECT.library
    with pytest.raises(UserError, match="found the MPI library ''"):
        find_dialect(program)


def test_rules_select_the_library_default_above_the_largest_rank_count():
    text = OPEN_MPI_DIALECT.text([Choice("bcast", 8, 64, "linear")])
    assert re.search(
        r"^9 # ranks and more\n1 # message sizes\n0 0 0 0 # library", text, re.MULTILINE
    )


def test_barriers_with_a_rule_are_measured_in_a_separate_start(tmp_path):
    """A barrier before every sample would otherwise change how all other operations start."""
    place, barrier = machine(tmp_path), PlacedWorkload("barrier", 8, "block", 0)
    requested = []
    object.__setattr__(
        place,
        "_start",
        lambda name, cases, rows: requested.append((name, cases, rows)) or StartTimings({}, 1.0),
    )
    rules = [Choice("barrier", 8, 0, "linear"), Choice("bcast", 8, 64, "linear")]
    assert place.time("a", [CASES[0], barrier], rules).took == 2
    place.time("b", [CASES[0], barrier])
    place.time("c", [CASES[0]], rules)
    assert requested == [
        ("a", [CASES[0]], rules[1:]),
        ("a-barrier", [barrier], rules[:1]),
        ("b", [CASES[0], barrier], []),
        ("c", [CASES[0]], rules[1:]),
    ]


def test_workloads_without_a_valid_sample_get_no_rule(tmp_path):
    """On a busy machine, ranks may start late in every sample. Such a case has no time, and does
    not count as slow."""
    late = replace(machine(tmp_path), late=(CASES[0],))
    searched = search_choices(late, arms(), 1e9, lambda text: None)
    assert not {searched.arms.arms[arm].workload for arm in searched.belief.measured_arms} & {
        CASES[0]
    }
    assert len(searched.belief.measured_arms) > len(CASES)
    sizes = {
        row.size
        for row in measure_gains(
            machine(tmp_path),
            "screening",
            choose_algorithms(searched, MIN_GAIN_TO_VALIDATE),
            3,
            lambda text: None,
        ).rows
    }
    late = replace(
        machine(tmp_path), late=tuple(PlacedWorkload("bcast", 8, "block", size) for size in sizes)
    )
    validation = measure_gains(
        late, "validation", choose_algorithms(searched, MIN_GAIN_TO_VALIDATE), 3, lambda text: None
    )
    assert {row.workload.operation for row in validation.rows} == {"alltoall"}


def test_the_check_starts_time_two_algorithms_of_each_operation():
    """Barriers are included, although they need a separate start and are one of 49 cases."""
    barrier = [
        Arm(PlacedWorkload("barrier", 8, "block", 0), name, prediction)
        for name, prediction in (("linear", 1e-4), ("bruck", 1e-5))
    ]
    alternatives = Arms.of([*arms().arms, *barrier])
    first = [
        list(algorithms)
        for algorithms in zip(*search._choose_check_pairs(alternatives).values(), strict=True)
    ]
    timed = {
        (alternatives.arms[arm].workload.operation, alternatives.arms[arm].algorithm)
        for start in first
        for arm in start
    }
    assert {name for name, _ in timed} == {"bcast", "alltoall", "barrier"}
    assert {algorithm for name, algorithm in timed if name == "barrier"} == {"linear", "bruck"}


def test_rules_with_a_small_expected_gain_are_not_chosen(tmp_path):
    """A gain below the variation between starts does not count."""
    searched = search_choices(machine(tmp_path), arms(), 1e9, lambda text: None)
    cases_with_rules = {
        threshold: {
            case for case, name in choose_algorithms(searched, threshold).items() if name != LIBRARY
        }
        for threshold in (1.0, MIN_GAIN_TO_VALIDATE, 1e3)
    }
    assert (
        cases_with_rules[1e3]
        == set()
        < cases_with_rules[MIN_GAIN_TO_VALIDATE]
        <= cases_with_rules[1.0]
    )
    assert all(
        choose_algorithms(searched, MIN_GAIN_TO_VALIDATE)[case] != DEFAULTS[case.operation]
        for case in cases_with_rules[MIN_GAIN_TO_VALIDATE]
    )


def test_all_rules_are_dropped_if_other_sizes_slow_down_in_both_stages(tmp_path):
    """With rules, the library may use another component. One slow case in a single stage may be
    chance."""
    alltoall = CASES[len(SIZES) :]
    choices = dict.fromkeys(alltoall, LIBRARY) | {alltoall[0]: "linear"}
    place = replace(machine(tmp_path), ignores_default_rules=True)
    screening = measure_gains(place, "screening", choices, 3, lambda text: None)
    assert screening.rows[0].gain.ratio > 1
    assert [row.is_slower for row in screening.rows] == [False, False, True]
    unaffected = measure_gains(
        machine(tmp_path / "unaffected"), "screening", choices, 3, lambda text: None
    )
    assert select_for_validation(unaffected)[alltoall[0]] == "linear"
    assert set(confirm_rules(screening, screening).values()) == {LIBRARY}
    for validation, before in ((screening, unaffected), (unaffected, screening)):
        assert confirm_rules(validation, before)[alltoall[0]] == "linear"


def test_gain_intervals_are_widened_by_the_changes_of_control_cases(tmp_path):
    """By chance, everything is 1.2 times as fast in starts with rules. A rule that selects the
    library default seems to gain as much."""
    choices = dict.fromkeys(CASES, LIBRARY) | {
        CASES[0]: DEFAULTS["bcast"],
        CASES[2]: "scatter-allgather",
    }
    quiet, faster = (
        measure_gains(
            replace(machine(tmp_path / str(speedup)), speedup_with_rules=speedup),
            "screening",
            choices,
            3,
            lambda text: None,
        )
        for speedup in (1.0, 1.2)
    )
    assert (quiet.control.workloads, quiet.control.excluding_one, quiet.control.log_margin) == (
        4,
        0,
        0,
    )
    assert (faster.control.workloads, faster.control.excluding_one) == (4, 4)
    assert faster.control.log_margin == pytest.approx(log(1.2), rel=2e-3)
    rows = {row.workload: row for row in faster.rows}
    assert rows[CASES[0]].gain.ratio == pytest.approx(1.2)
    true_gain = {row.workload: row.gain.ratio for row in quiet.rows}[CASES[2]]
    assert rows[CASES[2]].gain.low == pytest.approx(true_gain, rel=1e-3)
    for kept_rules in (select_for_validation(faster), confirm_rules(faster, quiet)):
        assert [case for case, name in kept_rules.items() if name != LIBRARY] == [CASES[2]]
    assert describe_control("screening", quiet) == [
        "In the screening, times of 0 of 4 workloads without a rule changed, no more than by chance."
    ]
    sentence = describe_control("screening", faster)[0]
    assert (
        "In the screening, times of 4 of 4 workloads without a rule changed: the machine's speed changed."
        in sentence
    )
    assert "All intervals are widened by 20 %" in sentence


def test_a_rule_that_changes_all_sizes_must_gain_over_all_sizes(tmp_path):
    """Workloads of that operation without a rule are then no controls."""
    choices = dict.fromkeys(CASES, LIBRARY) | {CASES[2]: "scatter-allgather"}
    place = replace(machine(tmp_path), device={"bcast": 1.04})
    screening = measure_gains(
        place, "screening", choices, 3, lambda text: None, changes_defaults=True
    )
    assert (screening.control.workloads, screening.control.excluding_one) == (3, 0)
    assert select_for_validation(screening)[CASES[2]] == "scatter-allgather"
    noisy = [
        compute_gain([2, 1, 4], [1, 1, 1]),
        compute_gain([1, 1, 1], [1, 1, 1]),
        compute_gain([1, 1, 1], [1.2, 1.2, 1.2]),
    ]
    rows = [
        WorkloadGain(case, 1, choices[case], seen) for case, seen in zip(CASES, noisy, strict=False)
    ]
    assert [row.gain.is_slower for row in rows] == [False] * 3
    assert select_for_validation(Stage(rows))[CASES[2]] == "scatter-allgather"
    assert select_for_validation(Stage(rows, changes_defaults=True))[CASES[2]] == LIBRARY


def test_screening_and_validation_measure_each_operation_with_rules_separately(tmp_path):
    """The operation before may leave connections in another state, so that its rule seems to slow
    down the next operation. Operations without rules share a start."""
    place = machine(tmp_path)
    measure_gains(
        place,
        "validation",
        dict.fromkeys(CASES, LIBRARY) | {CASES[0]: "binomial-near"},
        3,
        lambda text: None,
    )
    assert {name for name, _ in place.requested} == {
        f"validation-{number}{end}" for number in range(6) for end in ("", "-bcast")
    }


def test_the_screening_includes_controls_without_rules():
    choices = dict.fromkeys(CASES, LIBRARY) | {CASES[0]: "linear"}
    assert select_for_screening(choices) == dict.fromkeys(CASES[:3], LIBRARY) | {CASES[0]: "linear"}
    many = {PlacedWorkload("reduce", 8, "block", size): LIBRARY for size in range(30)}
    timed = select_for_screening(choices | many, changes_defaults=True)
    assert [timed[case] for case in CASES[:3]] == ["linear", LIBRARY, LIBRARY]
    assert {case.operation for case in timed} == {"bcast", "alltoall", "reduce"}
    assert 6 < len(timed) - 3 <= MAX_CONTROLS


def make_stage(*pairs):
    """Return a stage with one rule for each of the first cases, from the logarithms of its
    gains."""
    gains = [compute_gain([1.0] * len(logs), [exp(log) for log in logs]) for logs in pairs]
    return Stage(
        [WorkloadGain(case, 64, "linear", gain) for case, gain in zip(CASES, gains, strict=False)]
    )


def test_rules_that_gain_little_in_the_screening_are_not_validated():
    screening = make_stage([0.1, 0.2], [0.04, 0.03], [-0.1, 0.3])
    assert [select_for_validation(screening)[case] for case in CASES[:3]] == [
        "linear",
        LIBRARY,
        "linear",
    ]


def test_a_rule_is_kept_if_faster_in_both_stages_and_over_all_pairs():
    """The first rule is faster in all pairs, the second only in the screening, by chance. The third
    is undecided."""
    screening = make_stage([0.2, 0.25], [0.9, 0.95], [0.5, -0.3])
    validation = make_stage([0.21, 0.2, 0.25], [-0.01, 0.0, -0.02], [0.6, -0.3, 0.1])
    assert [
        case for case, name in confirm_rules(validation, screening).items() if name != LIBRARY
    ] == [CASES[0]]
    gain = compute_gain([1.0] * 3, [exp(log) for log in (0.21, 0.2, 0.25)])
    assert validation.rows[0].gain.ratio == pytest.approx(gain.ratio)


def test_printed_rules_equal_the_output_of_the_verb(tmp_path, monkeypatch):
    place = machine(tmp_path)
    searched = search_choices(place, arms(), 1e9, lambda text: None)
    choices = choose_algorithms(searched, MIN_GAIN_TO_VALIDATE)
    stages = [
        measure_gains(place, name, choices, 3, lambda text: None)
        for name in ("screening", "validation")
    ]
    result = Tuning.of(Outcome(place, searched, *stages, confirm_rules(*reversed(stages)), {}, {}))
    requests = []

    def tune_library(request, progress):
        requests.append(request)
        return result

    monkeypatch.setattr("commodel_tune.tuning.tune_library", tune_library)
    verb = "tune --platform here --ranks 8 --operation bcast --bytes 8 --minutes 2 --same-types"
    printed = run(f"{verb} --verbose").stdout.rstrip("\n")
    assert str(result) == printed
    assert printed.startswith("Geometric mean of the gains of all ")
    assert result.to_json() == run(f"{verb} --format json").stdout.rstrip("\n")
    assert result.frame["gain"].gt(0).all()
    assumptions = Assumptions(same_types=True)
    assert (
        commodel.tune("here", 8, 8, operations="bcast", minutes=2.0, assumptions=assumptions)
        is result
    )
    assert {replace(request, operations=("bcast",), params=()) for request in requests} == {
        TuningRequest("here", "8", "8", ("bcast",), minutes=2.0, assumptions=assumptions)
    }
    with pytest.raises(UserError, match="tune: found 'minuts'; did you mean 'minutes'"):
        commodel.tune("here", 8, minuts=2)
