"""Whole campaigns on a real Slurm of four nodes: the profile, the jobs, and every rank where it belongs."""

import json

import pandas as pd
import pytest

pytestmark = pytest.mark.lab

MEASURE = (
    "measure: {sync: barrier, precision: 50%, min_samples: 6, max_samples: 10, seconds: 0.2, passes: 1, warmup: 1}"
)
CAMPAIGN = f"""
platform: lab
families: [hockney]
probe_bytes: [1, 1KiB, 64KiB]
{MEASURE}
matrix:
  - axes:
      operation: bcast
      algorithm: [linear, binomial]
      bytes: {{from: 1, to: 64KiB, factor: 4}}
    zips:
      placement: {{ranks: [2, 2, 4], ranks_per_node: [2, 1, 1]}}
"""
TYPED = f"""
platform: lab
families: [hloggp]
library: false
probe_bytes: [1, 1KiB]
{MEASURE}
matrix:
  - axes:
      operation: bcast
      algorithm: linear
      ranks: 4
      bytes: 8
      layout: ["random:2@1", "block-cyclic:2x1", "kinds:fat=1core,thin=1core"]
"""
TYPES = """
launcher: slurm
nodes: 4
cores: 2
types: {thin: 2, fat: 2}
slurm: {features: {fat: fat, thin: thin}}
"""


def test_a_campaign_from_the_plan_to_the_workbook(project):
    project.write(CAMPAIGN)
    code, said = project.run("snakemake", "--profile", "slurm", "--config", "experiment=mine")
    assert code == 0, said
    assert (project.folder / "reports/mine/mine.xlsx").exists()
    compared = pd.read_csv(project.folder / "results/mine/comparison.csv")
    assert len(set(compared.point)) >= 60
    jobs = {}
    for batch in project.plan.batches:
        provenance = json.loads((project.raw(batch) / "provenance.json").read_text())
        jobs[provenance["slurm_job"]] = batch
        hosts = {tuple(json.loads(path.read_text())["hosts"]) for path in project.raw(batch).glob("player-*.json")}
        widths = {len(set(seats)) for seats in hosts}
        assert max(widths) == batch.nodes
        assert widths <= ({batch.nodes} if batch.points else {1, 2, batch.nodes})  # some probes are of two ranks
    assert len(jobs) == len(project.plan.batches) == 4  # one job an allocation
    assert project.slurm.jobs() == []
    # Plain Snakemake and commodel run agree: the one finds nothing to do after the other.
    finished = {batch.name: project.measured(batch) for batch in project.plan.batches}
    code, said = project.run("commodel", "run", "mine", "--profile", "slurm")
    assert code == 0, said
    assert "reports/mine/mine.xlsx" in said
    assert {batch.name: project.measured(batch) for batch in project.plan.batches} == finished


def test_nodes_by_type_and_ranks_in_any_order(project):
    project.write(TYPED, TYPES)
    code, said = project.run("commodel", "run", "mine", "--profile", "slurm")
    assert code == 0, said
    names, features = (project.slurm("sinfo", "-h", "-N", "-o", "%N %f").split()[at::2] for at in (0, 1))
    kind = dict(zip(names, features, strict=True))
    pairs = {}
    for batch in project.plan.batches:
        for case in batch.cases:
            if case.pair and "same" not in case.pair and len(case.where) == 2:
                on = f"-on{'+'.join(map(str, case.where))}.json"
                for path in project.raw(batch).glob(f"*{on}"):
                    pairs[case.pair] = {kind[host] for host in json.loads(path.read_text())["hosts"]}
    mixed = {"thin", "fat"}  # probe `mixture` goes in both directions; thin.thin is on the first nodes
    assert pairs == {"fat.fat": {"fat"}, "thin.fat": mixed, "fat.thin": mixed}
    seats = [json.loads(path.read_text())["hosts"] for path in (project.folder / "results").rglob("player-4r-*.json")]
    assert ["n2", "n3", "n0", "n1"] in seats  # the thin ones come first in this platform
