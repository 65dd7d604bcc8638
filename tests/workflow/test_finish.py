"""Batches that fail for good: the report is made with what there is, and says so; the next run tries them again."""

import csv

import pandas as pd
import pytest


def rows(project, name: str) -> list[dict]:
    with (project.folder / "results/small" / name).open() as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("again", ["commodel", "snakemake"])
def test_one_batch_of_three_fails_until_it_does_not(project, barrier, again):
    barrier.refuse("-np 16 ")
    run = project.commodel("run", "small", code=1)
    said = (
        "commodel: 1 of 3 batches did not finish; their points are marked as not measured; run again to try them again"
    )
    assert said in run.stderr.splitlines()
    assert "refused by the barrier" in run.stderr
    assert "reports/small/small.xlsx" in run.stdout
    comparison = pd.read_csv(project.folder / "results/small/comparison.csv")
    assert set(comparison.dropna(subset=["measured"])["ranks"]) == {5, 7, 8}
    lacking = rows(project, "unmeasured.csv")
    assert {row["status"] for row in lacking} == {"unfinished"}
    assert {row["ranks"] for row in lacking} == {"16"}
    assert "refused by the barrier" in lacking[0]["reason"]
    status = project.commodel("status", "small").stdout
    assert "33 of 39 measured, 6 left" in status
    assert "stopped on" in status

    if again == "snakemake":  # what `commodel run` did in two steps
        project.snakemake(code=1)
        before = (project.folder / "reports/small/small.xlsx").stat().st_mtime_ns
        project.snakemake("finish=true")
        assert (project.folder / "reports/small/small.xlsx").stat().st_mtime_ns > before
        assert "2 attempts" in rows(project, "unmeasured.csv")[0]["reason"]

    barrier.lift()
    project.snakemake() if again == "snakemake" else project.commodel("run", "small")
    assert rows(project, "unmeasured.csv") == []
    comparison = pd.read_csv(project.folder / "results/small/comparison.csv")
    assert set(comparison.dropna(subset=["measured"])["ranks"]) == {5, 7, 8, 16}


def test_where_no_batch_is_done_there_is_nothing_to_report(project, barrier):
    barrier.refuse("-np")
    run = project.commodel("run", "small", "-q", code=1)
    assert "refused by the barrier" in run.stderr
    assert "did not finish" not in run.stderr
    assert not (project.folder / "reports").exists()
    assert "no batch has finished" in project.snakemake("finish=true", code=1).stderr


def test_what_was_given_up_is_tried_again_when_asked(project):
    project.commodel("run", "small", "-q")
    before = project.raw_files()
    victim = next(path for path in project.folder.glob("results/small/raw/loggp-64-8n-*/????????????.csv"))
    victim.unlink()
    marker = victim.with_name(f"{victim.stem}.unmeasured.json")
    marker.write_text('{"id": "x", "status": "timeout", "reason": "it hung", "attempt": 1, "date": ""}')
    assert "38 of 39 measured, 1 not (1 timeout)" in project.commodel("status", "small").stdout
    project.commodel("run", "small", "-q")
    assert not victim.exists()
    run = project.commodel("run", "small", "--retry")
    assert "1 cases that were given up are tried again" in run.stderr
    assert not marker.exists()
    after = project.raw_files()
    assert victim.name in after
    assert {name for name in before if after[name] != before[name]} == {victim.name}


def test_what_came_late_is_measured_nowhere_and_tried_again_when_asked(project):
    """A driver finds a pass in which a rank started late in every sample, as a dead one left it."""
    project.commodel("run", "small", "-q")
    before = project.raw_files()
    victim = next(path for path in project.folder.glob("results/small/raw/loggp-64-8n-*/????????????.csv"))
    header, *samples = (line.split(",") for line in victim.read_text().splitlines())
    assert header == ["id", "pass", "sample", "seconds", "skew", "valid", "stop", "of", "check"]
    lines = ["id,sample,seconds,skew,valid,stop"]
    lines += [",".join([case, *others, "0", stop]) for case, _, *others, _, stop, _, _ in samples]
    (victim.parent / ".pass-1").mkdir()
    (victim.parent / ".pass-1" / victim.name).write_text("\n".join(lines) + "\n")
    victim.unlink()
    (victim.parent / "done").unlink()

    project.commodel("run", "small", "-q")
    late = victim.with_suffix(".late.csv")
    assert len(late.read_text().splitlines()) == 1 + len(samples)
    assert "38 of 39 measured, 1 not (1 late)" in project.commodel("status", "small").stdout
    assert [(row["id"], row["status"]) for row in rows(project, "unmeasured.csv")] == [(victim.stem, "late")]
    compared = [row["measurement"] for row in rows(project, "comparison.csv") if row["point"] == victim.stem]
    assert set(compared) == {"not measured: late"}
    (summary,) = (row for row in rows(project, "summary.csv") if row["id"] == victim.stem)
    assert (summary["samples"], summary["invalid"]) == ("0", str(len(samples)))
    report = (project.folder / "reports/small/index.html").stat().st_mtime_ns
    project.commodel("run", "small", "-q")
    assert (project.folder / "reports/small/index.html").stat().st_mtime_ns == report
    assert not victim.exists()

    run = project.commodel("run", "small", "--retry")
    assert "1 cases that were given up are tried again" in run.stderr
    assert not late.exists()
    assert "39 of 39 measured" in project.commodel("status", "small").stdout
    assert rows(project, "unmeasured.csv") == []
    after = project.raw_files()
    assert {name for name in before if after[name] != before[name]} == {victim.name}


def test_what_was_measured_while_nobody_waited_for_it_is_collected(project):
    """As by a Slurm job that goes on when the run that handed it in is killed."""
    project.commodel("run", "small", "-q")
    victim = next(path for path in project.folder.glob("results/small/raw/loggp-64-8n-*/????????????.csv"))
    marker, done = victim.with_name(f"{victim.stem}.unmeasured.json"), victim.with_name("done")
    victim.unlink()
    done.unlink()
    marker.write_text('{"id": "x", "status": "timeout", "reason": "it hung", "attempt": 1, "date": ""}')
    project.commodel("run", "small", "-q")
    assert [row["status"] for row in rows(project, "unmeasured.csv")] == ["timeout"]
    marker.unlink()
    done.unlink()
    project.snakemake("--", done.relative_to(project.folder))
    assert victim.exists()
    project.commodel("run", "small", "-q")
    assert rows(project, "unmeasured.csv") == []


def test_a_batch_that_is_not_done_any_more_is_measured_though_there_is_a_report(project):
    """As after a damaged raw file was moved aside."""
    project.commodel("run", "small", "-q")
    before = project.raw_files()
    victim = next(path for path in project.folder.glob("results/small/raw/loggp-64-8n-*/????????????.csv"))
    victim.unlink()
    victim.with_name("done").unlink()
    project.snakemake()
    after = project.raw_files()
    assert {name for name in after if after[name] != before[name]} == {victim.name}


def test_damaged_raw_files_are_measured_anew_in_the_run_that_finds_them_though_there_is_a_report(project):
    """The table that was made from them is gone, so that they are read again."""
    project.commodel("run", "small", "-q")
    files = {path: path.read_bytes() for path in project.folder.glob("results/small/raw/*/????????????.csv")}
    for batch in ("8n", "16n"):
        for path in [path for path in files if f"-{batch}-" in path.parent.name][:3]:
            path.write_bytes(files[path][:100])
    observations = project.folder / "results/small/observations.csv"
    before = observations.read_bytes()
    observations.unlink()
    run = project.commodel("run", "small")
    assert "6 files moved aside" in run.stderr
    assert "did not finish" not in run.stderr
    assert observations.read_bytes() == before  # what is simulated comes out the same
    assert {path: path.read_bytes() for path in files} == files
