"""If a platform file names no levels, a run detects them, plans its probes by them, and other runs
use them."""

from contextlib import chdir

import pytest
import yaml

from commodel.api import campaigns
from commodel.files.safe_paths import SafePath
from commodel.plan.planning import load_plan
from commodel.plan.surveys import is_survey
from commodel.results.raw_samples import CRASH, write_marker
from tests.workflow.conftest import Messages

NETWORK = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<cluster id="all" prefix="node-" suffix="" radical="0-7" speed="1Gf" core="2" bw="1GBps" lat="2us"
 loopback_bw="4GBps" loopback_lat="0.3us" sharing_policy="SPLITDUPLEX"
 topology="FAT_TREE" topo_parameters="2;4,2;1,1;1,1"/>
</platform>
"""
PLATFORM = "title: two leaves\nlauncher: simgrid\nnodes: 8\ncores: 2\nsimgrid: {file: leaves.xml}\n"
EXPERIMENT = """
title: two leaves
platform: leaves
models: [shares]
library: false
measure: {precision: 5%, min_samples: 2, max_samples: 2, seconds: 1, warmup: 1}
probe_bytes: [1, 1024, 65536]
matrix:
  - axes: {operation: alltoall, algorithm: [linear, pairwise], ranks: 8, bytes: [8, 64KiB]}
"""
LEVELS = {"leaf": (0, 0, 0, 0, 1, 1, 1, 1)}


def test_levels_are_learned_in_the_run_and_used_by_the_next(project):
    folder = project.folder
    (folder / "params/platforms/leaves.xml").write_text(NETWORK)
    (folder / "params/platforms/leaves.yaml").write_text(PLATFORM)
    for name in ("small", "second"):
        project.experiment(name, EXPERIMENT)
    project.snakemake("--until", "collect")
    (path,) = (folder / "networks").iterdir()
    assert yaml.safe_load(path.read_text())["levels"] == {
        name: list(column) for name, column in LEVELS.items()
    }
    plan = load_plan(folder / "results/small/plan.json")
    assert plan.platforms["leaves"].levels == LEVELS
    assert [is_survey(batch) for batch in plan.batches] == [True, False, False]
    probes = {case.probe for batch in plan.batches for case in batch.cases}
    assert {"nodepairs", "capacity"} <= probes
    measured = {row["name"] for row in project.rows("observations.csv") if row["kind"] == "probe"}
    assert {"nodepairs", "capacity"} <= measured

    second = project.verb("plan", "second", "--format", "json")
    assert second
    project.verb("plan", "second", "--write")
    plan = load_plan(folder / "results/second/plan.json")
    assert plan.platforms["leaves"].levels == LEVELS
    assert not any(map(is_survey, plan.batches))
    project.verb("plan", "second", "--write", "--no-survey")
    assert not load_plan(folder / "results/second/plan.json").platforms["leaves"].levels


def test_after_a_failed_survey_the_workflow_runs_again_without_it(project, monkeypatch):
    commands = {}

    def run(campaign, command, name, *_):
        """Fail as long as the workflow surveys."""
        commands[name] = command
        return int("survey=False" not in command)

    monkeypatch.setattr(campaigns, "run_with_display", run)
    folder = project.folder
    (folder / "params/platforms/leaves.xml").write_text(NETWORK)
    (folder / "params/platforms/leaves.yaml").write_text(PLATFORM)
    project.experiment("small", EXPERIMENT)
    said = Messages()
    with chdir(folder):
        _, code = campaigns.run_campaign(campaigns.CampaignRequest("small"), False, said)
    assert code == 0
    assert list(commands) == ["run", "unsurveyed"]
    assert said == [
        "commodel: the survey of leaves failed: the levels of platform files are used instead"
    ]


@pytest.mark.slow
def test_a_run_completes_without_levels_if_the_survey_fails(project):
    """Every pair of nodes is marked as crashed. The lab of Slurm says the same of real nodes."""
    folder = project.folder
    (folder / "params/platforms/leaves.xml").write_text(NETWORK)
    (folder / "params/platforms/leaves.yaml").write_text(PLATFORM)
    project.experiment("first", EXPERIMENT.replace("[shares]", "[pram]").replace("[8, 64KiB]", "8"))
    project.verb("plan", "first", "--write")
    survey = load_plan(folder / "results/first/plan.json").batches[0]
    for case in survey.cases:
        write_marker(
            SafePath.of_argument(folder / "results/first/raw" / survey.name, folder),
            case.id,
            CRASH,
            "crashed",
            1,
        )
    ended = project.commodel("run", "first")
    assert (
        "the survey of leaves failed: the levels of platform files are used instead" in ended.stderr
    )
    assert not (folder / "networks").exists()
    assert not load_plan(folder / "results/first/plan.json").platforms["leaves"].levels
    assert (folder / "reports/first/first.xlsx").exists()
