"""The summary of a plan: remaining work, warnings about limits, notes on points, and one line for
all probes."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.plan.plan_tables import make_batch_rows, summarize_plan
from commodel.plan.planning import write_plan
from tests.plan.planning import MATRIX, SIMULATED
from tests.results.drivers import EXPERIMENT, leave, make_campaign

MORE = EXPERIMENT.replace("bytes: [1, 2, 3, 4, 5]", "bytes: [1, 2, 3, 4, 5, 6]")


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Return a campaign that is measured completely, in whose folder the test runs."""
    monkeypatch.chdir(tmp_path)
    campaign = make_campaign(tmp_path, EXPERIMENT)
    for index, batch in enumerate(campaign.plan.batches):
        leave(campaign, index, samples=len(batch.ids), done=True)
    write_plan(campaign.plan, "e", tmp_path)
    return campaign


def run_verb(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_plan_without_new_points_says_that_a_run_measures_nothing(measured):
    answer, *_ = run_verb("plan", "e").splitlines()
    assert (
        answer
        == "e: 30 points and 5 probe cases in 3 batches; all are done already: a run measures nothing."
    )


def test_new_points_of_batches_that_are_done_are_counted(measured):
    """Points of one more size, with 8 and with 16 ranks: two algorithms and the MPI default."""
    Path("params/experiments/e.yaml").write_text(MORE)
    answer, *others = run_verb("plan", "e").splitlines()
    assert answer.startswith("e: 6 new points in 2 batches, about ")
    assert answer.endswith("; in all 36 points and 5 probe cases in 3 batches.")
    assert "measures nothing" not in "".join(others)
    assert [line.split()[4] for line in others if line.startswith("loggp-64-")] == ["0", "3", "3"]


def test_a_run_announces_and_starts_batches_with_new_points(measured, monkeypatch):
    Path("params/experiments/e.yaml").write_text(MORE)
    to_start = []

    def run_with_display(campaign, command, log, display, is_enough=None):
        to_start.append(
            [
                batch.name
                for batch in campaign.plan.batches
                if not campaign.done_file(batch).exists()
            ]
        )
        return 7

    monkeypatch.setattr("commodel.api.campaigns.run_with_display", run_with_display)
    result = CliRunner().invoke(main, ["run", "e"])
    assert "e: 6 new points in 2 batches, about " in result.stderr
    assert "measures nothing" not in result.stderr
    assert to_start[0] == [batch.name for batch in measured.plan.batches[1:]]


def test_new_points_under_slurm_need_a_profile_that_submits_jobs(measured, monkeypatch):
    for name in ("SLURM_JOB_ID", "SNAKEMAKE_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    platform = "launcher: slurm\nnodes: 16\ncores: 1\nslurm: {mpi: pmi2}\n"
    Path("params/platforms/real.yaml").write_text(platform)
    Path("params/experiments/e.yaml").write_text(MORE.replace("loggp-64", "real"))
    result = CliRunner().invoke(main, ["run", "e"])
    assert result.exit_code == 2
    assert "wanted: commodel run e --profile slurm" in result.stderr


def test_a_run_has_one_line_for_all_probes_unless_it_is_verbose(measured):
    """Each probe has a line only with --verbose."""
    plan = measured.plan
    short, verbose = summarize_plan(plan), summarize_plan(plan, verbose=True)
    assert [line for line in short if "probe" in line and "--verbose" in line] == [
        "2 probes for 1 model (--verbose lists them)"
    ]
    assert not [line for line in short if line.startswith("probe ")]
    assert [line for line in verbose if line.startswith("probe ")] == [
        "probe pingpong: for hockney",
        "probe work: for hockney",
    ]


def test_a_warning_states_the_share_that_will_end_as_budget(planned):
    plan = planned(MATRIX, "batch: {budget: 10 min}")
    batch = next(batch for batch in plan.batches if batch.points)
    long = replace(batch, seconds=174_475.0, most=500_000.0, budget=28_800.0)
    assert not [line for line in summarize_plan(plan) if line.startswith("WARNING")]
    (warning,) = (
        line
        for line in summarize_plan(replace(plan, batches=(long,)))
        if line.startswith("WARNING")
    )
    assert warning.startswith(
        f"WARNING: {batch.name} is estimated to take 2 d, but the time limit is 8 h: "
    )
    assert "about 83% of the measurements will end as 'budget'" in warning
    (row,) = make_batch_rows(replace(plan, batches=(long,)))
    assert (row["takes about"], row["time limit"]) == ("2 d", "8 h")


def test_a_warning_names_points_that_are_too_large_to_simulate(planned):
    """1,024 ranks send a million messages at once, by the algorithm and by SimGrid's default."""
    platform = SIMULATED.replace("cores: 1", "cores: 64")
    matrix = (
        "  - axes: {operation: alltoall, algorithm: linear, ranks: [64, 1024], layout: "
        "'block:64', bytes: 1KiB}"
    )
    (warning,) = (
        line for line in summarize_plan(planned(matrix, "", platform)) if line.startswith("WARNING")
    )
    assert re.match(
        r"WARNING: 2 points are estimated to take up to \d+ h \d+ min to simulate, ", warning
    )
    assert (
        "but the limit of a point is 10 min on big: they end as 'timeout', that is, not measured"
        in warning
    )
    small = planned(matrix.replace("[64, 1024]", "64"), "", platform)
    assert not [line for line in summarize_plan(small) if line.startswith("WARNING")]


def test_a_note_states_that_points_of_0_bytes_move_no_data(planned):
    """A barrier has no size, so it is not counted."""
    matrix = """
  - axes: {operation: allgather, algorithm: ring, ranks: [4, 8], bytes: [0, 64]}
  - axes: {operation: barrier, algorithm: dissemination, ranks: 8}"""
    note = (
        "4 points of allgather with 0 bytes: no data move, so the times are the overhead of "
        "messages or of the library"
    )
    assert note in summarize_plan(planned(matrix))
    assert not [line for line in summarize_plan(planned(MATRIX)) if "0 bytes" in line]
