"""Failed starts: the case that is marked as failed, and the cases that are still measured."""

import math
from types import SimpleNamespace

import pytest

from commodel.errors import UserError
from commodel.measure import batch as subject
from commodel.measure.batch import (
    STOPPED_BY_BUDGET,
    STOPPED_BY_TIMEOUT,
    CaseLimit,
    SweepState,
    Watch,
    _is_external_failure,
    measure_start,
)
from commodel.measure.program_starts import Start
from commodel.results.raw_samples import list_finished
from tests.waiting import until


@pytest.mark.parametrize(
    ("last_line", "external"),
    [
        ("player.c:80: MPI_Waitall failed", False),
        # a rank died
        ("slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-21T12:00:00 ***", False),
        (
            "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-21T12:00:00 DUE TO TIME LIMIT ***",
            True,
        ),
        (
            "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-21T12:00:00 DUE TO PREEMPTION ***",
            True,
        ),
        ("srun: error: Node failure on n1", True),
        ("error: no-such-file: cannot open", True),
    ],
)
def test_failures_of_nodes_or_allocations_are_not_attributed_to_the_case(
    tmp_path, last_line, external
):
    (tmp_path / "log").write_text(f"case 1/2 a median 1 us\n{last_line}\n")
    assert _is_external_failure(tmp_path / "log", 1, "b") == external
    assert _is_external_failure(tmp_path / "log", 1, "")
    assert _is_external_failure(tmp_path / "log", 2, "b")


LIMIT = CaseLimit(1.0, 1.0)


@pytest.fixture
def context(tmp_path):
    """Return two passes in a folder, whose programs are not started."""
    context_of_passes = SimpleNamespace(
        folder=tmp_path,
        passes=2,
        argv=list,
        environment={},
        launcher=SimpleNamespace(end=None, settings=lambda user: {}),
    )
    context_of_passes.hosts_of = lambda start: []
    context_of_passes.pass_folder = lambda number: tmp_path / f".pass-{number + 1}"
    context_of_passes.log = lambda start: tmp_path / "log"
    for path in map(context_of_passes.pass_folder, range(2)):
        path.mkdir()
    return context_of_passes


@pytest.fixture
def sweep_cases(context, monkeypatch):
    """sweep_cases(cases, number, dies): measure the cases in a pass. At each start the program
    fails in the case `dies(remaining)`, after it measured the cases before. Return the starts."""

    def run(cases, number, dies):
        left = []

        def start(argv, log, watch, settings):
            remaining = left[-1].ids
            failing_case = dies(remaining)
            for case in remaining[: remaining.index(failing_case)]:
                (context.pass_folder(number) / f"{case}.csv").touch()
            (context.pass_folder(number) / ".now").write_text(failing_case)
            log.write_text("player.c:80: it died\n")
            return 1, ""

        monkeypatch.setattr(subject, "run_launcher", start)
        monkeypatch.setattr(
            subject, "prepare_start", lambda context, start, number: left.append(start) or ()
        )
        every = Start("player", 2, "block:2", (), tuple({"id": case} for case in cases))
        this = SweepState(
            context,
            SimpleNamespace(number=1, record_nodes=tuple, write_heartbeat=tuple),
            LIMIT,
            math.inf,
        )
        assert measure_start(this, every, number)
        return left

    return run


@pytest.mark.parametrize(("number", "given_up"), [(0, set("abcde")), (1, set("abc"))])
def test_three_failures_in_a_row_cost_no_samples_of_earlier_passes(
    context, sweep_cases, number, given_up
):
    """Every case makes the program fail. The untried cases d and e have samples of pass 1 and are
    not given up."""
    for case in "de" if number else "":
        (context.pass_folder(0) / f"{case}.csv").touch()
    left = sweep_cases("abcde", number, lambda left: left[0])
    assert list_finished(context.folder)[1] == given_up
    assert len(left) == 3


def test_failures_alternating_with_successful_cases_do_not_stop_the_sweep(context, sweep_cases):
    left = sweep_cases("abcdefghij", 0, lambda left: left[1])
    assert list_finished(context.folder)[1] == set("bdfhj")
    assert list_finished(context.pass_folder(0))[0] == set("acegi")
    assert len(left) == 5


def test_a_case_that_timed_out_is_marked_even_if_completed_during_termination(context, monkeypatch):
    """Open MPI resumes a stopped rank to end it. The rank may still finish the case and begin the
    next one."""
    folder, starts = context.pass_folder(0), []

    def start(argv, log, watch, settings):
        log.write_text("")
        starts.append(argv)
        (folder / "a.csv").touch()
        if len(starts) > 1:
            (folder / "c.csv").touch()
            return 0, ""
        (folder / ".now").write_text("b")
        watch.limit = CaseLimit(0.0, 0.0)
        watch()  # sees that b has begun
        until(lambda: watch() == STOPPED_BY_TIMEOUT)
        (folder / "b.csv").touch()
        (folder / ".now").write_text("c")
        return 143, STOPPED_BY_TIMEOUT

    monkeypatch.setattr(subject, "run_launcher", start)
    monkeypatch.setattr(subject, "prepare_start", lambda context, start, number: ())
    every = Start("player", 2, "block:2", (), tuple({"id": case} for case in "abc"))
    assert measure_start(
        SweepState(
            context,
            SimpleNamespace(number=1, record_nodes=tuple, write_heartbeat=tuple),
            LIMIT,
            math.inf,
        ),
        every,
        0,
    )
    assert list_finished(context.folder)[1] == {"b"}
    assert list_finished(folder)[0] == {"a", "c"}


def test_when_the_time_is_over_nothing_is_started_again_and_no_case_is_blamed(context, monkeypatch):
    starts = []

    def start(argv, log, watch, settings):
        starts.append(argv)
        (context.pass_folder(0) / "a.csv").touch()
        (context.pass_folder(0) / ".now").write_text("b")
        log.write_text("")
        return 143, STOPPED_BY_BUDGET

    monkeypatch.setattr(subject, "run_launcher", start)
    monkeypatch.setattr(subject, "prepare_start", lambda context, start, number: ())
    every = Start("player", 2, "block:2", (), tuple({"id": case} for case in "abc"))
    this = SweepState(
        context,
        SimpleNamespace(number=1, record_nodes=tuple, write_heartbeat=tuple),
        LIMIT,
        math.inf,
    )
    assert measure_start(this, every, 0) is False
    assert len(starts) == 1
    assert not list_finished(context.folder)[1]


REFUSAL = "srun: error: Unable to create step for job 2: Memory required by task is not available\n"


@pytest.mark.parametrize("patience", [60.0, 0.0])
def test_a_start_that_slurm_refuses_is_repeated_for_a_while(context, monkeypatch, patience):
    """After an outage Slurm counts the memory of the previous step as allocated for some time."""
    folder, starts = context.pass_folder(0), []

    def start(argv, log, watch, settings):
        starts.append(argv)
        log.write_text(REFUSAL if len(starts) < 7 else "")
        if len(starts) == 7:
            (folder / "a.csv").touch()
        return int(len(starts) < 7), ""

    monkeypatch.setattr(subject, "run_launcher", start)
    monkeypatch.setattr(subject, "prepare_start", lambda context, start, number: ())
    monkeypatch.setattr(subject, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(subject, "MAX_REFUSAL_SECONDS", patience)
    every = Start("player", 2, "block:2", (), ({"id": "a"},))
    this = SweepState(
        context,
        SimpleNamespace(number=1, record_nodes=tuple, write_heartbeat=tuple),
        LIMIT,
        math.inf,
    )
    if patience:
        assert measure_start(this, every, 0)
        assert len(starts) == 7
    else:
        with pytest.raises(UserError, match="Memory required by task is not available"):
            measure_start(this, every, 0)


@pytest.mark.parametrize(
    ("before", "limit"),
    [((), 600.0), ((1.0,), 60.0), ((5.0, 1.0), 100.0), ((1.0, 5.0), 100.0), ((40.0,), 600.0)],
)
def test_a_simulated_case_is_given_up_after_twenty_times_the_slowest_one_before(
    context, monkeypatch, before, limit
):
    """It has at least a minute, and at most the ten minutes of a case before which none was
    measured."""
    now, folder = [0.0], context.pass_folder(0)
    monkeypatch.setattr(subject, "time", SimpleNamespace(monotonic=lambda: now[0]))
    case_limit = CaseLimit(600.0, 60.0)
    watch = Watch(folder, case_limit, math.inf, tuple)
    for number, seconds in enumerate([*before, limit]):
        (folder / ".now").write_text(f"case {number}")
        assert watch() == ""
        now[0] += seconds
        assert watch() == ""
    now[0] += 0.1
    assert watch() == STOPPED_BY_TIMEOUT
    assert case_limit.text.startswith(f"{limit:.3g} s")
    if before:
        assert case_limit.text.endswith(
            f"; no case of this batch before it took more than {max(before):.2g} s"
        )
