"""Batches that fail for good: the report is made with what there is, and says so; the next run tries them again."""

import shutil
import time
from pathlib import Path

import pandas as pd
import pytest

from tests.once import made_once
from tests.workflow.conftest import Project, ending, raw_paths, samples


@pytest.fixture(scope="module")
def failed_run(tmp_path_factory, simgrid_programs):
    """The folder of a project of whose three batches one failed, and what was printed about it."""

    def run(folder: Path) -> None:
        project = Project(folder)
        project.barrier().refuse("-np 16 ")
        done = project.commodel("run", "small", code=1)
        (folder / "printed").write_text(done.stdout)
        (folder / "complaints").write_text(done.stderr)
        shutil.rmtree(folder / "barrier")

    return made_once(tmp_path_factory, "failed-run", run)


@pytest.fixture
def failed(tmp_path, failed_run):
    yield from ending(Project(tmp_path, failed_run))


def test_what_one_batch_of_three_lacks_is_told_and_the_rest_reported(failed):
    complaints = (failed.folder / "complaints").read_text()
    assert (
        "commodel: 1 of 3 batches did not finish; their points are marked as not measured; run again to try them again"
    ) in complaints.splitlines()
    assert "refused by the barrier" in complaints
    assert "reports/small/small.xlsx" in (failed.folder / "printed").read_text()
    comparison = pd.read_csv(failed.folder / "results/small/comparison.csv")
    assert set(comparison.dropna(subset=["measured"])["ranks"]) == {5, 7, 8}
    lacking = failed.rows("unmeasured.csv")
    assert {row["status"] for row in lacking} == {"unfinished"}
    assert {row["ranks"] for row in lacking} == {"16"}
    assert "refused by the barrier" in lacking[0]["reason"]
    status = failed.verb("status", "small")
    assert "29 of 35 measured, 6 left" in status
    assert "stopped on" in status


@pytest.mark.parametrize("again", ["commodel", pytest.param("snakemake", marks=pytest.mark.slow)])
def test_what_failed_is_tried_again_and_what_is_damaged_measured_anew_by_the_run_that_finds_it(
    failed, again, whole_run
):
    """Though there is a report. The table that was made from the damaged files is gone, so that they are read again."""
    whole = samples(whole_run)
    if again == "snakemake":  # what `commodel run` did in two steps
        barrier = failed.barrier()
        barrier.refuse("-np 16 ")
        failed.snakemake(code=1)
        before = (failed.folder / "reports/small/small.xlsx").stat().st_mtime_ns
        failed.snakemake("finish=true")
        assert (failed.folder / "reports/small/small.xlsx").stat().st_mtime_ns > before
        assert "2 attempts" in failed.rows("unmeasured.csv")[0]["reason"]
        barrier.lift()

    if again == "snakemake":
        failed.snakemake()
    else:
        damaged = [path for path in raw_paths(failed.folder) if "-8n-" in path.parent.name][:3]
        for path in damaged:
            path.write_bytes(whole[path.name][:100])
        (failed.folder / "results/small/observations.csv").unlink()
        run = failed.commodel("run", "small")
        assert f"{len(damaged)} files moved aside" in run.stderr
        assert "did not finish" not in run.stderr
    assert failed.rows("unmeasured.csv") == []
    comparison = pd.read_csv(failed.folder / "results/small/comparison.csv")
    assert set(comparison.dropna(subset=["measured"])["ranks"]) == {5, 7, 8, 16}
    # Two simulated runs give the same, whatever came between.
    assert samples(failed.folder) == whole
    observations = "results/small/observations.csv"
    assert (failed.folder / observations).read_bytes() == (whole_run / observations).read_bytes()


def test_where_no_batch_is_done_there_is_nothing_to_report(project):
    project.barrier().refuse("-np")
    run = project.commodel("run", "small", "-q", code=1)
    assert "refused by the barrier" in run.stderr
    assert "did not finish" not in run.stderr
    assert not (project.folder / "reports").exists()
    assert "no batch has finished" in project.snakemake("finish=true", code=1).stderr


def give_up(raw: Path) -> Path:
    """Makes a case look as if it had been given up. Returns the mark of it."""
    raw.unlink()
    marker = raw.with_name(f"{raw.stem}.unmeasured.json")
    marker.write_text('{"id": "x", "status": "timeout", "reason": "it hung", "attempt": 1, "date": ""}')
    return marker


def come_late(raw: Path) -> int:
    """Makes a driver find a pass in which a rank started late in every sample, as a dead one left it. Returns how many
    samples these are."""
    header, *samples = (line.split(",") for line in raw.read_text().splitlines())
    assert header == ["id", "pass", "sample", "seconds", "skew", "valid", "stop", "of", "check"]
    lines = ["id,sample,seconds,skew,valid,stop"]
    lines += [",".join([case, *others, "0", stop]) for case, _, *others, _, stop, _, _ in samples]
    (raw.parent / ".pass-1").mkdir()
    (raw.parent / ".pass-1" / raw.name).write_text("\n".join(lines) + "\n")
    raw.unlink()
    return len(samples)


def test_what_was_given_up_or_came_late_is_measured_nowhere_and_tried_again_when_asked(finished):
    """And what was measured while nobody waited for it, as by a Slurm job that goes on when the run that handed it in
    is killed, is collected."""
    before = finished.raw_files()
    given_up, late = [path for path in raw_paths(finished.folder) if path.parent == finished.victim().parent][:2]
    marker = give_up(given_up)
    count = come_late(late)
    late.with_name("done").unlink()

    finished.commodel("run", "small", "-q")
    late_samples = late.with_suffix(".late.csv")
    assert len(late_samples.read_text().splitlines()) == 1 + count
    assert "33 of 35 measured, 2 not (1 late, 1 timeout)" in finished.verb("status", "small")
    unmeasured = {(row["id"], row["status"]) for row in finished.rows("unmeasured.csv")}
    assert unmeasured == {(given_up.stem, "timeout"), (late.stem, "late")}
    compared = {row["measurement"] for row in finished.rows("comparison.csv") if row["point"] == late.stem}
    assert compared == {"not measured: late"}
    (summary,) = (row for row in finished.rows("summary.csv") if row["id"] == late.stem)
    assert (summary["samples"], summary["invalid"]) == ("0", str(count))
    report = (finished.folder / "reports/small/index.html").stat().st_mtime_ns
    measured = finished.raw_files()
    finished.commodel("run", "small", "-q")
    assert (finished.folder / "reports/small/index.html").stat().st_mtime_ns == report
    assert finished.raw_files() == measured
    assert not given_up.exists()
    assert not late.exists()

    marker.unlink()
    late.with_name("done").unlink()
    finished.measure("small", given_up.parent.name)
    late.with_name("done").write_text(f"{time.time():.9f}\n")  # as the rule does after it
    assert given_up.exists()
    run = finished.commodel("run", "small", "--retry")
    assert "cases given up before, to be tried again: 1" in run.stderr
    assert not late_samples.exists()
    assert "35 of 35 measured" in finished.verb("status", "small")
    assert finished.rows("unmeasured.csv") == []
    after = finished.raw_files()
    assert {name for name in before if after[name] != before[name]} == {given_up.name, late.name}
