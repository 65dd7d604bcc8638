"""Whole campaigns on a real Slurm of four nodes: the profile, the jobs, and the placement of every
rank.

Kernels whose processes use different numbers of cores under srun: each is bound to its cores,
whatever binding Slurm would choose, and the product verifies."""

import csv
import json
import re
import subprocess

import pandas as pd
import pytest

from commodel.plan.config import load_platform
from commodel.plan.surveys import is_survey
from commodel.platforms.build import build_toolchain, get_program_folder
from commodel.platforms.slurm import find_node_levels
from commodel.platforms.tools import ROOT
from tests.labs.slurm_lab import PLATFORM

pytestmark = pytest.mark.lab

MEASURE = (
    "measure: {sync: barrier, precision: 50%, min_samples: 6, max_samples: 10, seconds: 0.2, "
    "passes: 1, warmup: 1}"
)
CAMPAIGN = f"""
platform: lab
models: [hockney]
probe_bytes: [1, 1KiB, 64KiB]
{MEASURE}
matrix:
  - axes:
      operation: bcast
      algorithm: [linear, binomial]
      bytes: {{from: 1, to: 64KiB, factor: 16}}
    zips:
      placement: {{ranks: [2, 2, 4], ranks_per_node: [2, 1, 1]}}
"""
TYPED = f"""
platform: lab
models: [hloggp]
library: false
probe_bytes: [1, 64]
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


def test_init_describes_this_slurm(project):
    code, said = project.run("commodel", "init", "described", "--slurm")
    assert code == 0, said
    platform = load_platform(project.folder / "described/params/platforms/lab.yaml")
    assert (platform.nodes, platform.cores) == (4, 2)
    assert platform.types == {"fat": 2, "thin": 2}
    assert platform.slurm_section.features == {"fat": "fat", "thin": "thin"}
    assert platform.slurm_section.mpi in ("pmi2", "pmix")
    profile = (project.folder / "described/profiles/slurm/config.yaml").read_text()
    assert "slurm_partition: lab " in profile
    assert "slurm-patient-no-account: true" in profile


def test_a_campaign_from_the_plan_to_the_workbook(project):
    project.write(CAMPAIGN)
    code, said = project.run("snakemake", "--profile", "slurm", "--config", "experiment=mine")
    assert code == 0, said
    assert (project.folder / "reports/mine/mine.xlsx").exists()
    compared = pd.read_csv(project.folder / "results/mine/comparison.csv")
    assert len(set(compared.point)) >= 40
    jobs = {}
    for batch in project.plan.batches:
        provenance = json.loads((project.raw(batch) / "provenance.json").read_text())
        jobs[provenance["slurm_job"]] = batch
        program = "nodepairs" if is_survey(batch) else "player"
        hosts = {
            tuple(json.loads(path.read_text())["hosts"])
            for path in project.raw(batch).glob(f"{program}-*.json")
        }
        widths = {len(set(seats)) for seats in hosts}
        assert max(widths) == batch.nodes
        # some probes are of two ranks
        assert widths <= ({batch.nodes} if batch.points else {1, 2, batch.nodes})
        assert provenance["nodes"] == ["n0", "n1", "n2", "n3"][: batch.nodes]
    assert len(jobs) == len(project.plan.batches) == 5  # one job an allocation
    assert is_survey(project.plan.batches[0])
    assert project.slurm.jobs() == []
    # Plain Snakemake and commodel run agree: the one finds nothing to do after the other.
    finished = {batch.name: project.measured(batch) for batch in project.plan.batches}
    code, said = project.run("commodel", "run", "mine", "--profile", "slurm")
    assert code == 0, said
    assert "reports/mine/mine.xlsx" in said
    assert {batch.name: project.measured(batch) for batch in project.plan.batches} == finished


def test_nodes_by_type_and_ranks_in_any_order(project):
    project.write(TYPED, TYPES)
    project.measure()
    names, features = (
        project.slurm("sinfo", "-h", "-N", "-o", "%N %f").split()[at::2] for at in (0, 1)
    )
    kind = dict(zip(names, features, strict=True))
    pairs = {}
    for batch in project.plan.batches:
        for case in batch.cases:
            if case.pair and "same" not in case.pair and len(case.where) == 2:
                on = f"-on{'+'.join(map(str, case.where))}.json"
                for path in project.raw(batch).glob(f"*{on}"):
                    pairs[case.pair] = {
                        kind[host] for host in json.loads(path.read_text())["hosts"]
                    }
    # probe `mixture` goes in both directions; thin.thin is on the first nodes
    mixed = {"thin", "fat"}
    assert pairs == {"fat.fat": {"fat"}, "thin.fat": mixed, "fat.thin": mixed}
    seats = [
        json.loads(path.read_text())["hosts"]
        for path in (project.folder / "results").rglob("player-4r-*.json")
    ]
    assert ["n2", "n3", "n0", "n1"] in seats  # the thin ones come first in this platform


EXPERIMENT = """
platform: lab
models: [pram]
probes: [work]
library: false
probe_bytes: [1, 1KiB]
measure: {sync: barrier, precision: 50%, min_samples: 6, max_samples: 10, seconds: 0.2, passes: 1, warmup: 1}
matrix:
  - axes: {operation: "summa:partition=params/p.csv", algorithm: paper, layout: "processes:params/l.csv", bytes: 8KiB}
  - axes: {operation: "wave2d:partition=params/p.csv", algorithm: paper, layout: "processes:params/l.csv", bytes: 8}
"""
PROCESSES = "rank,node,cores,device\n0,0,2,cpu\n1,1,1,cpu\n2,1,1,cpu\n"
PARTS = "rank,x,y,width,height\n0,0,0,4,8\n1,4,0,4,4\n2,4,4,4,4\n"


@pytest.fixture
def binding(monkeypatch):
    """Slurm binds each process to one processor of its node."""
    monkeypatch.setenv("LAB_TASKS", "task/affinity")


@pytest.mark.own_slurm
def test_processes_under_srun_keep_the_cores_of_their_layout(binding, project):
    assert project.slurm("srun", "-N1", "-n1", "nproc") == "1"
    project.write(EXPERIMENT)
    (project.folder / "params" / "l.csv").write_text(PROCESSES)
    (project.folder / "params" / "p.csv").write_text(PARTS)
    project.measure()
    results = project.folder / "results" / "mine"
    for program in ("summa", "wave2d"):
        (meta,) = (
            json.loads(path.read_text()) for path in results.glob(f"raw/*/{program}-3r-*.json")
        )
        first, second, third = meta["cores"]
        assert (first, {second, third}) == ("0-1", {"0", "1"})
        assert meta["hosts"][0] != meta["hosts"][1] == meta["hosts"][2]
        assert re.fullmatch("rank 0: .*, threads 2; ranks 1-2: .*, threads 1", meta["computing"])
    with (results / "summary.csv").open(newline="") as stream:
        points = [row for row in csv.DictReader(stream) if row["kind"] == "point"]
    assert len(points) == 2
    assert all(float(row["computation"]) > 0 for row in points)


HYBRID = "rank,node,cores,device\n0,0,1,gpu\n1,0,1,cpu\n2,1,1,gpu\n"


@pytest.fixture
def gpus(monkeypatch, request):
    """Nodes of Slurm have GPUs, which are no cards: a node of type fat has one, or as many as the
    parameter, any other has one. Programs compute on pocl's devices."""
    of_fat = getattr(request, "param", 1)
    build_toolchain(ROOT, "mpi")
    devices = get_program_folder(ROOT, "mpi") / "devices"
    listed = subprocess.run([devices], capture_output=True, text=True, check=True).stdout
    if not re.search("^opencl 0: .*, CLBlast$", listed, re.MULTILINE):
        pytest.skip("Debian's pocl-opencl-icd and libclblast1 are not installed")
    monkeypatch.setenv("LAB_GPUS", str(of_fat))
    monkeypatch.setenv("LAB_THIN_GPUS", "1")
    monkeypatch.setenv("POCL_DEVICES", " ".join(["basic"] * of_fat))
    monkeypatch.setenv("COMMODEL_ACCELERATOR", "opencl")


@pytest.mark.own_slurm
def test_processes_that_drive_gpus_get_them_from_slurm(gpus, project):
    assert "CUDA_VISIBLE_DEVICES" not in project.slurm("srun", "-N1", "-n1", "env")
    assert "CUDA_VISIBLE_DEVICES=0" in project.slurm("srun", "-N1", "--gres=gpu:1", "env")
    project.write(EXPERIMENT, PLATFORM.replace("{mpi: pmi2}", "{mpi: pmi2, gpus: 1}"))
    (project.folder / "params" / "l.csv").write_text(HYBRID)
    (project.folder / "params" / "p.csv").write_text(PARTS)
    project.measure()
    metas = (project.folder / "results/mine").glob("raw/*/summa-3r-*.json")
    (meta,) = (json.loads(path.read_text()) for path in metas)
    assert re.fullmatch("ranks 0, 2: opencl, .*; rank 1: .*, threads 1", meta["computing"])
    jobs = project.slurm("scontrol", "--oneliner", "show", "job").splitlines()
    assert any("gres:gpu:1" in job for job in jobs)
    assert any("gres:gpu:1" not in job for job in jobs)  # probes need none


TWO_TYPES_OF_GPU_NODES = """
launcher: slurm
nodes: 2
cores: 2
types: {fat: 1, thin: 1}
slurm: {mpi: pmi2, features: {fat: fat, thin: thin}, gpus: {fat: 2, thin: 1}}
"""


@pytest.mark.own_slurm
@pytest.mark.parametrize("gpus", [2], indirect=True)
def test_a_job_has_all_gpus_of_nodes_with_different_numbers(gpus, project):
    """It can only request one of each node, and gets the others since it is exclusive."""
    project.write(f"{EXPERIMENT}survey: false\n", TWO_TYPES_OF_GPU_NODES)
    layout = "rank,node,cores,device\n0,0,1,gpu\n1,1,1,gpu\n2,0,1,gpu\n"
    (project.folder / "params" / "l.csv").write_text(layout)
    (project.folder / "params" / "p.csv").write_text(PARTS)
    project.measure()
    metas = (project.folder / "results/mine").glob("raw/*/summa-3r-*.json")
    (meta,) = (json.loads(path.read_text()) for path in metas)
    assert re.fullmatch("ranks 0-2: opencl, .*", meta["computing"])
    jobs = project.slurm("scontrol", "--oneliner", "--details", "show", "job").splitlines()
    (job,) = (job for job in jobs if "gres:gpu:1" in job)
    assert "JOB_GRES=gpu:3" in job


def test_a_slurm_that_knows_no_switches_gives_no_levels(slurm):
    assert not find_node_levels(str(slurm.folder / "bin" / "srun"), ("n0", "n1")).groups
