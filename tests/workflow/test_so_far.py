"""Campaigns that still measure: their page, their first answers, and an early end."""

import re
from contextlib import chdir
from dataclasses import replace

import pytest

import commodel
from commodel.files.safe_paths import SafePath
from commodel.plan.planning import load_plan, make_plan
from commodel.results.campaign import Campaign, list_interim_parts, open_lock, order_batches
from commodel.results.interim_answers import read_so_far
from tests.cli.running import refused
from tests.workflow.conftest import ROOT, SMALL, Project, raw_paths, samples

REFRESH = '<meta http-equiv="refresh" content="60">'
# batches of 2, 4, 8 and 16 nodes besides that of the probes
SEVERAL = SMALL.replace("ranks: [8, 16]", "ranks: [2, 4, 8, 16]").replace(
    "probe_bytes", "batch: {budget: 1 min, smaller: false}\nprobe_bytes"
)


@pytest.fixture(scope="module")
def begun(tmp_path_factory, simgrid_programs):
    """A project of which all but the largest batch is measured."""
    project = Project(tmp_path_factory.mktemp("begun"))
    project.experiment("small", SEVERAL)
    project.verb("plan", "small", "--write", "--no-survey")
    plan = load_plan(project.folder / "results/small/plan.json")
    last = max(plan.batches, key=lambda batch: (bool(batch.points), batch.nodes))
    for batch in plan.batches:
        if batch != last:
            project.measure("small", batch.name)
            (project.folder / "results/small/raw" / batch.name / "done").write_text("1\n")
    return project


def test_the_page_so_far_is_marked_and_the_results_stay_as_they_are(begun):
    with chdir(begun.folder):
        before = {path.name for path in (begun.folder / "results/small").iterdir()}
        files = commodel.report("results/small", so_far=True).files
        assert [str(path) for path in files] == ["reports/small/index.html"]
        page = files[0].read_text()
        assert REFRESH in page
        share = re.search(r"incomplete, (\d+) %: the experiment is still being measured", page)
        assert 20 < int(share[1]) < 100
        assert f"(incomplete, {share[1]} %)</title>" in page
        assert {path.name for path in (begun.folder / "results/small").iterdir()} == {
            *before,
            "so-far",
        }
        answers = read_so_far(begun.folder / "results/small")
        assert answers.percent == int(share[1])
        assert any("loggp-64 (simulated): " in line for line in answers.lines)
        assert any(
            re.match(r"bcast over \d+ ranks, .*: (linear|binomial), .* \(.* to .*\), ", line)
            for line in answers.lines
        )
        assert answers.lines[-1].startswith("expected regret of the advice: ")
        assert 0 <= answers.regret < 1
        assert answers.workloads >= 8
        # Another version of the experiment does not trust them.
        plan = load_plan(begun.folder / "results/small/plan.json")
        assert answers.digest == plan.digest


def test_without_new_samples_nothing_is_made_again(begun):
    with chdir(begun.folder):
        path = commodel.report("results/small", so_far=True).files[0]
        before = path.stat().st_mtime_ns
        begun.verb("report", "--in", "results/small", "--so-far")
        assert path.stat().st_mtime_ns == before


def test_status_shows_the_first_answers_of_a_running_campaign(begun):
    with chdir(begun.folder):
        commodel.report("results/small", so_far=True)
        # a campaign without a process has ended
        assert "first answers" not in begun.verb("status", "small")
        with open_lock(SafePath.at(begun.folder / "results/small"), "a run"):
            assert "first answers (incomplete, " in begun.verb("status", "small")


def test_a_page_of_nothing_is_refused(tmp_path):
    project = Project(tmp_path)
    project.verb("plan", "small", "--write", "--no-survey")
    with chdir(tmp_path):
        assert "found nothing measured yet" in refused("report --in results/small --so-far")
        message = refused("report --in results/small --so-far --samples")
        assert "found --so-far with --samples, wanted the page only" in message


def test_a_long_campaign_reports_after_the_probes_and_at_three_quarters(begun):
    with chdir(begun.folder):
        plan = load_plan(begun.folder / "results/small/plan.json")
        campaign = Campaign(plan, begun.folder / "results/small")
    assert list_interim_parts(campaign) == []  # it takes seconds
    parts = list_interim_parts(campaign, "true")
    assert len(parts) >= 2
    assert all(batch.cases for batch in parts[0])
    assert [len(part) for part in parts] == sorted(len(part) for part in parts)
    assert len(parts[-1]) < len(plan.batches)
    assert list_interim_parts(campaign, False) == []


def test_jobs_that_may_wait_in_a_queue_report_after_the_probes_however_short_they_are():
    plan = make_plan("cluster", ROOT, survey=False)
    batches = tuple(replace(batch, seconds=1.0) for batch in plan.batches)
    short = Campaign(replace(plan, batches=batches), SafePath.at(ROOT / "none"))
    probes = [batch for batch in batches if batch.cases]
    assert list_interim_parts(short) == [probes]
    assert len(list_interim_parts(short, True)) > 1
    batches = tuple(replace(batch, seconds=300.0) for batch in batches)
    long = Campaign(replace(plan, batches=batches), SafePath.at(ROOT / "none"))
    assert len(list_interim_parts(long)) > 1


def test_probes_of_all_platforms_begin_before_points():
    plan = make_plan("demo", ROOT, survey=False)
    ordered = order_batches(plan.batches)
    kinds = [bool(batch.cases) for batch in ordered]
    assert kinds == sorted(kinds, reverse=True)
    assert sum(kinds) == 2
    points = [batch for batch in plan.batches if batch.points]
    assert ordered[2:] == points


def test_batches_begin_in_the_order_of_the_plan(tmp_path, begun):
    """Without priorities, Snakemake begins with the batch that has most points. Most samples are
    there already."""
    project = Project(tmp_path, begun.folder)
    for done in (tmp_path / "results/small/raw").glob("*/done"):
        done.unlink()
    project.snakemake("survey=false", "--cores", "1", "--until", "measure")
    plan = load_plan(tmp_path / "results/small/plan.json")
    ends = [
        float((tmp_path / "results/small/raw" / batch.name / "done").read_text())
        for batch in plan.batches
    ]
    assert len(ends) == 5
    assert ends == sorted(ends)


def test_the_order_of_batches_changes_no_sample(begun, tmp_path):
    project = Project(tmp_path)
    project.experiment("small", SEVERAL)
    project.verb("plan", "small", "--write", "--no-survey")
    before = samples(begun.folder)
    measured = {path.parent.name for path in raw_paths(begun.folder)}
    for batch in reversed(load_plan(tmp_path / "results/small/plan.json").batches):
        if batch.name in measured:
            project.measure("small", batch.name)
    assert samples(tmp_path) == before


@pytest.mark.slow
def test_a_run_shows_answers_and_its_last_page_is_complete(tmp_path, simgrid_programs):
    project = Project(tmp_path)
    project.experiment("small", SEVERAL)
    project.snakemake("survey=false", "so_far=true")
    page = (tmp_path / "reports/small/index.html").read_text()
    assert REFRESH not in page
    assert "incomplete, " not in page
    assert (tmp_path / "results/small/so-far/part-0").exists()
    with chdir(tmp_path):
        files = commodel.report("results/small", so_far=True).files
    assert REFRESH not in (tmp_path / files[0]).read_text()
    again = project.snakemake("survey=false", "--dry-run")
    assert "Nothing to be done" in again.stdout + again.stderr


@pytest.mark.slow
def test_a_run_until_a_regret_ends_before_all_is_measured_and_the_next_one_goes_on(
    tmp_path, simgrid_programs
):
    project = Project(tmp_path)
    project.experiment("small", SEVERAL)
    printed = project.commodel("run", "small", "--no-survey", "--until", "90%", "--cores", "1")
    assert re.search(
        r"the expected regret of the advice is \S+ %, below 90 %: measuring ends", printed.stderr
    )
    assert "first answers (incomplete, " in printed.stderr
    folder = tmp_path / "results/small"
    plan = load_plan(folder / "plan.json")
    assert not all((folder / "raw" / batch.name / "done").exists() for batch in plan.batches)
    assert (tmp_path / "reports/small/small.xlsx").exists()
    project.commodel("run", "small", "--no-survey", "--until", "0%", "--cores", "1")
    again = project.commodel("run", "small", "--no-survey", "--until", "90%", "--cores", "1")
    assert "measuring ends" not in again.stderr
    assert all((folder / "raw" / batch.name / "done").exists() for batch in plan.batches)
    assert not (folder / "so-far").exists()


def test_a_limit_that_is_no_share_is_one_line(begun):
    with chdir(begun.folder):
        assert "until: found '5', wanted" in refused("run small --until 5")
