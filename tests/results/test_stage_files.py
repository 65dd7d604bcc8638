"""Stages that make a file for each model: only models whose inputs have changed are done again."""

import re

import pytest

from commodel.errors import JOB_VARIABLE
from commodel.files.parameter_sets import read_parameters
from commodel.results import stage_files
from tests.results.received import FOLDER

FAMILIES = ("hockney", "logp", "loggp")
FIT = [
    "fit",
    "probes",
    f"{FOLDER}/plan.json",
    "--in",
    f"{FOLDER}/observations.csv",
    "--platform",
    "two-cores",
]
FIT += ["--out", f"{FOLDER}/fitted/two-cores"]
PREDICT = ["predict", "plan", f"{FOLDER}/plan.json", "--out", f"{FOLDER}/predictions"]
for family in FAMILIES:
    FIT += ["--model", family]
    PREDICT += ["--params", f"{FOLDER}/fitted/two-cores/{family}.yaml"]


@pytest.fixture
def here(original, tmp_path):
    return original.copy(tmp_path / "root")


def run(here, words, code=0):
    """Run a stage and return the models that it kept, and what it said on the error output."""
    done = here.run(*words)
    assert done.exit_code == code, (done.output, done.exception)
    kept = re.findall(r"(\w+): its inputs have not changed", done.stderr + done.stdout)
    return list(dict.fromkeys(kept)), done.stderr


def test_only_models_with_changed_inputs_or_files_are_done_again(here):
    sets, tables = (here.results / "fitted/two-cores", here.results / "predictions")
    assert run(here, FIT)[0] == []
    assert run(here, PREDICT)[0] == []
    assert {read_parameters(sets / f"{family}.yaml").model for family in FAMILIES} == set(FAMILIES)
    made = {path: path.read_bytes() for path in (*sets.iterdir(), *tables.iterdir())}
    for stage in (FIT, PREDICT):
        assert run(here, stage)[0] == [*FAMILIES]
    (sets / "logp.yaml").unlink()
    (tables / "loggp.csv").write_text("edited\n")
    (sets / ".inputs.json").write_text(
        (sets / ".inputs.json").read_text().replace("hockney.yaml", "x")
    )
    assert run(here, FIT)[0] == ["loggp"]
    assert run(here, PREDICT)[0] == ["hockney", "logp"]
    changed = (here.results / "observations.csv").read_text().replace("e-06", "e-05")
    (here.results / "observations.csv").write_text(changed)
    assert run(here, FIT)[0] == []
    assert run(here, PREDICT)[0] == ["logp", "loggp"]  # without values before and after
    assert all(
        path.read_bytes() != content for path, content in made.items() if path.stem == "hockney"
    )


def test_changed_code_of_a_model_does_it_again(here, monkeypatch):
    run(here, FIT)
    listed = stage_files.list_fit_code
    monkeypatch.setattr(
        "commodel.api.stages.list_fit_code", lambda model: listed(model)[model == "logp" :]
    )
    assert run(here, FIT)[0] == ["hockney", "loggp"]


def test_the_error_of_one_model_is_a_line_and_no_other_model_is_lost(here):
    """Snakemake removes what a failed job leaves under the names of its outputs, or restores what
    was there."""
    run(here, FIT)
    before = (here.results / "predictions/hockney.csv").read_bytes()
    good = (here.results / "fitted/two-cores/logp.yaml").read_text()
    (here.results / "fitted/two-cores/logp.yaml").write_text("model: logp\nvalues: 5\n")
    kept, said = run(here, PREDICT, code=2)
    assert kept == []
    (line,) = said.splitlines()
    assert line.startswith("commodel: results/e/fitted/two-cores/logp.yaml:")
    assert not (here.results / "predictions/loggp.csv").exists()
    assert (here.results / "predictions/hockney.csv").read_bytes() == before
    (here.results / "fitted/two-cores/logp.yaml").write_text(good)
    assert run(here, PREDICT)[0] == ["hockney", "loggp"]
    assert {path.name for path in (here.results / "predictions").iterdir()} == {
        *(f"{family}.csv" for family in FAMILIES),
        "recommended.csv",  # of the comparison
        ".inputs.json",
    }


def test_a_job_keeps_a_log_for_each_model(here, monkeypatch):
    logs = here.results / "logs"
    logs.mkdir()
    monkeypatch.chdir(here.root)
    monkeypatch.setenv(JOB_VARIABLE, f"{FOLDER}/logs/fits.two-cores.log")
    _, said = run(here, FIT)
    assert {path.name for path in logs.iterdir()} == {
        f"fit.two-cores.{family}.log" for family in FAMILIES
    }
    lines = said.splitlines()
    assert lines
    for family in FAMILIES:
        own = (logs / f"fit.two-cores.{family}.log").read_text().splitlines()
        assert own == [line for line in lines if f"no fit of {family} " in line]
