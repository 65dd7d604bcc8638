"""The complete workflow as a user runs it: run, view, edit, run again.

Verbs read from a results folder what it records. If state.json is damaged, drivers continue to
measure and report that earlier attempts are lost."""

import json
import re
import shutil

import openpyxl
import pandas as pd
import pytest

from commodel.files.parameter_sets import read_parameters
from commodel.files.results_folder import Results
from commodel.plan.planning import load_plan
from commodel.results.attempts import DAMAGED_OUTCOME
from tests.results.damages import DAMAGES
from tests.workflow.conftest import SMALL, raw_paths


def test_the_whole_way_on_a_platform_that_is_loggp(whole_run):
    """Measured and LogGP-predicted broadcasts agree within 1 %; the fit recovers the platform's
    values within 2 %."""
    printed = (whole_run / "printed").read_text()
    assert "loggp-64 (simulated)" in printed
    assert "reports/small/index.html" in printed
    assert len(raw_paths(whole_run)) == 10 + 6 + 19
    results = Results.of(whole_run / "results/small")
    jobs = ("collect", "fit.loggp-64.loggp", "predict.loggp", "compare")
    jobs += tuple(f"measure.{batch.name}" for batch in load_plan(results.plan).batches)
    assert [path.stat().st_size for path in map(results.job_log, jobs)] == [0] * len(jobs)
    assert "reports/small/index.html" in results.job_log("report").open().read()
    comparison = pd.read_csv(whole_run / "results/small/comparison.csv")
    # loggp, recommended, MPI default
    assert comparison["model"].value_counts(dropna=False).to_list() == [10, 10, 6]
    own = comparison[comparison["algorithm"] == "library"]
    assert own["model"].isna().all()
    assert own["measured"].min() >= 10e-6  # not even the library beats the wire
    assert set(own["ranks"]) == {8, 16, 5}  # also what a tree of 4 leaves does without inner nodes
    loggp = comparison[
        (comparison["model"] == "loggp") & (comparison["bytes"] == 8) & (comparison["ranks"] == 16)
    ]
    assert len(loggp) == 2
    assert loggp["mu"].max() < 1.01

    fitted = read_parameters(whole_run / "results/small/fitted/loggp-64/loggp.yaml")
    truth = {"L": 10e-6, "o_s": 1.5e-6, "o_r": 1.5e-6, "G": 1e-10}
    for name, value in truth.items():
        assert fitted.values[name].value == pytest.approx(value, rel=0.02), name
        width = max(1e-3 * value, 2e-9)  # 16 bytes of header and the simulator's 1 ns
        assert fitted.values[name].low - width <= value <= fitted.values[name].high + width, name
    assert fitted.simulated

    book = openpyxl.load_workbook(whole_run / "reports/small/small.xlsx", read_only=True)
    assert {
        "What to use",
        "Comparison",
        "Errors",
        "Models",
        "Fits",
        "Raw summary",
        "Provenance",
    } <= set(book.sheetnames)
    page = (whole_run / "reports/small/index.html").read_text(encoding="utf-8")
    assert "SIMULATED" in page


def test_a_killed_batch_measures_only_missing_cases(project):
    project.verb("plan", "small", "--write")
    plan = json.loads((project.folder / "results/small/plan.json").read_text())
    batch = next(batch for batch in plan["batches"] if batch["points"] and batch["nodes"] == 16)
    project.measure("small", batch["name"])
    files = sorted(project.raw_files())
    assert len(files) == 4 + 2
    raw = project.folder / "results/small/raw" / batch["name"]
    (raw / files[0]).unlink()
    (raw / f".{files[1]}.tmp").write_text("half a line")  # what a kill leaves behind
    before = project.raw_files()
    assert "0 of 1 done" in project.measure("small", batch["name"])
    assert {name: when for name, when in project.raw_files().items() if name in before} == before
    assert sorted(project.raw_files()) == files


def test_a_damaged_raw_file_is_named(finished):
    victim = finished.victim()
    victim.write_text(victim.read_text().replace("precision", "precision,7") + "nonsense\n")
    run = finished.commodel(
        "collect",
        "--in",
        "results/small/plan.json",
        "--out",
        "results/small/observations.csv",
        code=2,
    )
    assert run.stderr.count("\n") == 1
    assert victim.name in run.stderr


def test_a_dry_run_and_the_slurm_profile_need_no_cluster_and_no_plan(project):
    run = project.commodel("run", "small", "--dry-run", "--profile", "slurm")
    assert re.search(r"^measure +\d", run.stdout + run.stderr, re.MULTILINE)
    assert not (project.folder / "results").exists()


def list_files(folder):
    """Return the modification time and the content of all files below a folder."""
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_dry_run_shows_the_work_of_an_edited_experiment_and_writes_nothing(finished):
    finished.experiment("small", SMALL.replace("bytes: [8, 1KiB]", "bytes: [8, 1KiB, 2KiB]"))
    before = list_files(finished.folder / "results"), list_files(finished.folder / "reports")
    shown = finished.snakemake("--dry-run").stdout
    assert re.search(r"^measure +2$", shown, re.MULTILINE), shown  # with 8 and with 16 ranks
    assert (
        list_files(finished.folder / "results"),
        list_files(finished.folder / "reports"),
    ) == before


def test_plain_snakemake_measures_the_new_points_of_batches_that_are_done(finished):
    """Two algorithms and the MPI default at one more size, on 8 and on 16 ranks. All other samples
    are kept."""
    before = finished.raw_files()
    finished.experiment("small", SMALL.replace("bytes: [8, 1KiB]", "bytes: [8, 1KiB, 2KiB]"))
    finished.snakemake("--until", "collect")
    after = finished.raw_files()
    assert len(after) == len(before) + 6
    assert {name: time for name, time in after.items() if name in before} == before
    plan = load_plan(finished.folder / "results/small/plan.json")
    assert {2048, 1024, 8} == {point.bytes for point in plan.points}


def test_fitted_sets_and_predictions_that_were_deleted_are_made_again(finished):
    results = finished.folder / "results/small"
    before = {path.name: path.read_bytes() for path in (results / "fitted/loggp-64").iterdir()}
    predicted = (results / "predictions/loggp.csv").read_bytes()
    shutil.rmtree(results / "fitted")
    (results / "predictions/loggp.csv").unlink()
    finished.snakemake("--until", "predict")
    after = {path.name: path.read_bytes() for path in (results / "fitted/loggp-64").iterdir()}
    assert after == before
    assert (results / "predictions/loggp.csv").read_bytes() == predicted


def test_unknown_settings_of_the_workflow_are_refused(project):
    refused = project.snakemake("experimnt=small", code=1)
    assert (
        "found the unknown setting 'experimnt' of the workflow; did you mean 'experiment'?"
        in refused.stderr
    )
    assert not (project.folder / "results").exists()


def test_a_platform_edited_after_planning_is_noticed(project):
    project.verb("plan", "small", "--write")
    plan = json.loads((project.folder / "results/small/plan.json").read_text())
    path = project.folder / "params/platforms/loggp-64.yaml"
    path.write_text(path.read_text().replace("0:1.5e-6:0", "0:2.5e-6:0"))
    name = plan["batches"][0]["name"]
    run = project.commodel(
        "measure", "--in", "results/small/plan.json", "--batch", name, "--out", "x", code=2
    )
    assert "plan again" in run.stderr


def test_a_results_folder_is_enough(finished):
    results, reports = finished.folder / "results/small", finished.folder / "reports/small"
    written = [results / "observations.csv", reports / "small.xlsx", reports / "index.html"]
    before = written[0].read_bytes()
    for path in written:
        path.unlink()
    for verb in ("collect", "report"):
        finished.verb(verb, "--in", "results/small")
    assert written[0].read_bytes() == before
    assert all(path.stat().st_size for path in written)


KINDS = ("truncated", "not UTF-8")  # tests/results reads every kind


def test_no_damage_stops_a_driver(project):
    project.verb("plan", "small", "--write")
    plan = json.loads((project.folder / "results/small/plan.json").read_text())
    batch = next(batch for batch in plan["batches"] if batch["points"] and batch["nodes"] == 16)
    project.measure("small", batch["name"])
    raw = project.folder / "results/small/raw" / batch["name"]
    state = raw / "state.json"
    (first,) = json.loads(state.read_text())["attempts"]
    assert len(first["commit"].removesuffix("-dirty")) == 40
    assert first["nodes"] == []  # simulated ones belong to nobody
    victim = sorted(project.raw_files())[0]
    for damage in KINDS:
        state.write_bytes(DAMAGES[damage])
        (raw / victim).unlink()
        status = project.verb("status", "small")
        assert "5 of 35 measured, 30 left" in status
        assert DAMAGED_OUTCOME in " ".join(status.split())
        project.measure("small", batch["name"])
        assert len(project.raw_files()) == 6
        lost, own = json.loads(state.read_text())["attempts"]
        assert (lost["outcome"], own["outcome"]) == (DAMAGED_OUTCOME, "done")
    project.measure("small", batch["name"])  # nothing is missing
    assert len(json.loads(state.read_text())["attempts"]) == 2
