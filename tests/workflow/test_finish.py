"""Batches that fail permanently, and a model whose fit ends with an error of the program: the report
is made from what exists and states the gaps; the next run tries these batches and the fit again."""

import os
import shutil
import time
from contextlib import chdir
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

from commodel.api import campaigns
from commodel.plan.planning import load_plan
from tests.once import made_once
from tests.workflow.conftest import SMALL, Messages, Project, ending, raw_paths, samples

BREAK = """
from dataclasses import replace

from commodel.models.families import loggops


def fail(observed):
    raise ArithmeticError("broken on purpose")


loggops.FAMILY = replace(loggops.FAMILY, fit=fail)
"""
REASON = (
    "error of the program: ArithmeticError: broken on purpose; log: "
    "results/small/logs/fit.loggp-64.loggops.log"
)


@pytest.fixture(scope="module")
def failed_run(tmp_path_factory, whole_run):
    """Return a project in which one of three batches failed, one case was given up, one case came
    late in every sample, and one of two models could not be fitted; `printed` and `complaints` have
    the output."""

    def run(folder: Path) -> None:
        project = Project(folder, whole_run)
        project.experiment("small", SMALL.replace("[loggp]", "[loggp, loggops]"))
        (folder / "broken").mkdir()
        # Python runs it at its start
        (folder / "broken" / "sitecustomize.py").write_text(BREAK)
        paths = [str(folder / "broken"), os.environ.get("PYTHONPATH", "")]
        project.environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        shutil.rmtree(folder / "reports")
        for path in (folder / "results/small").iterdir():  # all but samples and plan
            if path.name in ("fitted", "predictions"):
                shutil.rmtree(path)
            elif path.suffix == ".csv":
                path.unlink()
        (failing,) = (folder / "results/small/raw").glob("loggp-64-upto16n-*")
        shutil.rmtree(failing)
        given_up, late = cases(project)
        mark_given_up(given_up)
        count = make_late(late)
        late.with_name("done").unlink()
        project.barrier().refuse("-np 16 ")
        done = project.commodel("run", "small", code=1)
        assert len(late_samples(late).read_text().splitlines()) == 1 + count
        (folder / "printed").write_text(done.stdout)
        (folder / "complaints").write_text(done.stderr)
        shutil.rmtree(folder / "barrier")

    return made_once(tmp_path_factory, "failed-run", run)


@pytest.fixture
def failed(tmp_path, failed_run):
    yield from ending(Project(tmp_path, failed_run))


def cases(project: Project) -> list[Path]:
    """Return the raw file paths of the case that is given up and of the case that comes late."""
    plan = load_plan(project.folder / "results/small/plan.json")
    (batch,) = (batch for batch in plan.batches if "-upto8n-" in batch.name)
    return [
        project.folder / "results/small/raw" / batch.name / f"{point.id}.csv"
        for point in batch.points[:2]
    ]


def mark_given_up(raw: Path) -> None:
    """Replace the samples of a case by the mark of a timeout."""
    raw.unlink()
    mark(raw).write_text(
        '{"id": "x", "status": "timeout", "reason": "it hung", "attempt": 1, "date": ""}'
    )


def mark(raw: Path) -> Path:
    return raw.with_name(f"{raw.stem}.unmeasured.json")


def make_late(raw: Path) -> int:
    """Replace the samples of a case by a pass in which a rank started late in every sample; return
    their number."""
    header, *samples = (line.split(",") for line in raw.read_text().splitlines())
    assert header == ["id", "pass", "sample", "seconds", "skew", "valid", "stop", "of", "check"]
    lines = ["id,sample,seconds,skew,valid,stop"]
    lines += [",".join([case, *others, "0", stop]) for case, _, *others, _, stop, _, _ in samples]
    (raw.parent / ".pass-1").mkdir()
    (raw.parent / ".pass-1" / raw.name).write_text("\n".join(lines) + "\n")
    raw.unlink()
    return len(samples)


def late_samples(raw: Path) -> Path:
    return raw.with_suffix(".late.csv")


def test_an_unfinished_batch_is_stated_and_the_others_are_reported(failed):
    complaints = (failed.folder / "complaints").read_text()
    assert (
        "commodel: 1 of 3 batches did not finish; their points are marked as not measured; run again to try them again"
    ) in complaints.splitlines()
    (refused,) = (line for line in complaints.splitlines() if "refused by the barrier" in line)
    (log,) = (failed.folder / "results/small/logs").glob("measure.loggp-64-upto16n-*.log")
    assert log.read_text() == f"{refused}\n"
    assert "reports/small/small.xlsx" in (failed.folder / "printed").read_text()
    comparison = pd.read_csv(failed.folder / "results/small/comparison.csv")
    assert set(comparison.dropna(subset=["measured"])["ranks"]) == {5, 7, 8}
    lacking = [row for row in failed.rows("unmeasured.csv") if row["status"] == "unfinished"]
    assert {row["ranks"] for row in lacking} == {"16"}
    assert "refused by the barrier" in lacking[0]["reason"]
    status = failed.verb("status", "small")
    assert "27 of 35 measured, 2 not (1 late, 1 timeout), 6 left" in status
    assert "stopped on" in status


def test_a_model_that_cannot_be_fitted_does_not_stop_the_others(failed):
    results, reports = failed.folder / "results/small", failed.folder / "reports/small"
    complaints = (failed.folder / "complaints").read_text().splitlines()
    printed = (failed.folder / "printed").read_text()
    assert f"commodel: no fit of loggops on platform 'loggp-64': {REASON}" in complaints
    assert "Prediction to use: recommended, mean error" in printed
    assert f". loggp-64: No fit of loggops: {REASON}." in printed
    log = (results / "logs/fit.loggp-64.loggops.log").read_text()
    assert '  Traceback (most recent call last):\n    File "' in log
    assert "in fail\n" in log
    comparison = pd.read_csv(results / "comparison.csv")
    assert comparison.loc[comparison["model"] == "loggp", "seconds"].notna().all()
    assert set(comparison.loc[comparison["model"] == "loggops", "validity"]) == {
        f"no fit: {REASON}"
    }
    assert REASON in (reports / "index.html").read_text()
    book = openpyxl.load_workbook(reports / "small.xlsx", read_only=True)
    parameters = [
        row for row in book["Models"].iter_rows(values_only=True) if "loggops" in row and "G" in row
    ]
    assert REASON in parameters[0]


@pytest.mark.parametrize("retry", [True, False])
def test_only_a_retry_fits_a_model_again_that_an_error_of_the_program_stopped(
    failed, monkeypatch, retry
):
    """The workflow makes what is missing; here it makes nothing."""
    monkeypatch.setattr(campaigns, "run_with_display", lambda *_: 0)
    with chdir(failed.folder):
        campaigns.run_campaign(campaigns.CampaignRequest("small"), retry, Messages())
    results = failed.folder / "results/small"
    made = {
        path.name
        for place in ("fitted/loggp-64", "predictions")
        for path in (results / place).glob("logg*")
    }
    of_failed = {"loggops.yaml", "loggops.csv"}
    assert made == {"loggp.yaml", "loggp.csv"} | (set() if retry else of_failed)
    assert (results / "comparison.csv").exists() == (not retry)


def test_timed_out_and_late_cases_are_not_measured_in_any_table(failed):
    given_up, late = cases(failed)
    unmeasured = {
        (row["id"], row["status"])
        for row in failed.rows("unmeasured.csv")
        if row["status"] != "unfinished"
    }
    assert unmeasured == {(given_up.stem, "timeout"), (late.stem, "late")}
    compared = {
        row["measurement"] for row in failed.rows("comparison.csv") if row["point"] == late.stem
    }
    assert compared == {"not measured: late"}
    (summary,) = (row for row in failed.rows("summary.csv") if row["id"] == late.stem)
    count = len(late_samples(late).read_text().splitlines()) - 1
    assert (summary["samples"], summary["invalid"]) == ("0", str(count))
    assert not given_up.exists()
    assert not late.exists()


def test_a_retry_run_measures_failed_cases_and_damaged_files_again(failed, whole_run):
    """The existing report does not prevent this. With --retry, cases that timed out or came late
    are measured again, and models that failed are fitted again. Samples of a job that outlived a
    killed run, as under Slurm, are collected. The run after that does nothing."""
    whole = samples(whole_run)
    given_up, late = cases(failed)
    mark(given_up).unlink()
    late.with_name("done").unlink()
    failed.measure("small", given_up.parent.name)
    late.with_name("done").write_text(f"{time.time():.9f}\n")  # as the rule does after it
    assert given_up.exists()
    assert late_samples(late).exists()
    before = failed.raw_files()
    damaged = [path for path in raw_paths(failed.folder) if "-probes-" in path.parent.name][:3]
    for path in damaged:
        path.write_bytes(whole[path.name][:100])
    run = failed.commodel("run", "small", "--retry")
    assert "cases given up before, to be measured again: 1" in run.stderr
    assert f"{len(damaged)} files moved aside" in run.stderr
    assert "did not finish" not in run.stderr
    assert "No fit" not in run.stdout
    assert not late_samples(late).exists()
    after = failed.raw_files()
    assert {name for name in before if after[name] != before[name]} == {
        path.name for path in damaged
    }
    assert "35 of 35 measured" in failed.verb("status", "small")
    check_complete(failed, whole_run)

    report = (failed.folder / "reports/small/index.html").stat().st_mtime_ns
    failed.commodel("run", "small", "-q")
    assert (failed.folder / "reports/small/index.html").stat().st_mtime_ns == report
    assert failed.raw_files() == after


@pytest.mark.slow
def test_plain_snakemake_tries_again_in_two_steps(failed, whole_run):
    given_up, late = cases(failed)
    for path in (mark(given_up), late_samples(late), late.with_name("done")):
        path.unlink()
    barrier = failed.barrier()
    barrier.refuse("-np 16 ")
    said = failed.snakemake(code=1)
    assert (said.stdout + said.stderr).count("refused by the barrier") == 1
    before = (failed.folder / "reports/small/small.xlsx").stat().st_mtime_ns
    failed.snakemake("finish=true")
    assert (failed.folder / "reports/small/small.xlsx").stat().st_mtime_ns > before
    assert "2 attempts" in failed.rows("unmeasured.csv")[0]["reason"]
    barrier.lift()
    failed.snakemake()
    check_complete(failed, whole_run)


def check_complete(project: Project, whole_run: Path) -> None:
    """Check that nothing is missing and that samples equal those of the complete run, since
    simulation is deterministic."""
    assert project.rows("unmeasured.csv") == []
    comparison = pd.read_csv(project.folder / "results/small/comparison.csv")
    assert set(comparison.dropna(subset=["measured"])["ranks"]) == {5, 7, 8, 16}
    assert samples(project.folder) == samples(whole_run)
    observations = "results/small/observations.csv"
    assert (project.folder / observations).read_bytes() == (whole_run / observations).read_bytes()


def test_where_no_batch_is_done_there_is_nothing_to_report(project):
    project.barrier().refuse("-np")
    run = project.commodel("run", "small", "-q", code=1)
    assert "refused by the barrier" in run.stderr
    assert "did not finish" not in run.stderr
    assert not (project.folder / "reports").exists()
    assert "no batch has finished" in project.snakemake("finish=true", code=1).stderr
