"""A real Apptainer with the image of container.def: the image's content, both container models, and
faulty images."""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from commodel import __version__
from commodel.platforms.build import build_toolchain
from commodel.platforms.toolchains import compute_native_digest
from commodel.platforms.tools import ROOT, find_tool
from tests.labs.apptainer_lab import NO_MPI, OPEN_MPI, OTHER_SOURCES, make_platform_file

pytestmark = pytest.mark.lab

LOCAL = "launcher: local\nnodes: 1\ncores: 2\n"
# Barriers, since on a busy machine windows may leave no sample.
EXPERIMENT = """
platform: native
models: [hockney]
measure: {sync: barrier, precision: 50%, min_samples: 6, max_samples: 10, seconds: 0.5, passes: 1, warmup: 1}
probe_bytes: [1, 1KiB, 64KiB]
matrix:
  - axes: {operation: bcast, algorithm: [linear, "chain:4KiB"], ranks: 2, bytes: [8, 1KiB, 64KiB]}
  - platform: boxed
    axes: {operation: bcast, algorithm: [linear, "chain:4KiB"], ranks: 2, bytes: [8, 1KiB, 64KiB]}
"""
KEPT = """
platform: boxed
models: [hockney]
library: false
measure: {{sync: barrier, precision: 50%, min_samples: 6, max_samples: 10, seconds: 0.5, passes: 1, warmup: 1}}
probe_bytes: [1, 1KiB]
matrix:
  - axes: {{operation: "summa:n=8:grid=1x2", algorithm: paper, bytes: 512, layout: "processes:{}.csv"}}
"""


class Project:
    def __init__(self, folder: Path, environment: dict[str, str]):
        self.folder, self.environment = folder, os.environ | environment

    def write(self, boxed: str) -> None:
        texts = {
            "platforms/native": LOCAL,
            "platforms/boxed": boxed,
            "experiments/mine": EXPERIMENT,
        }
        for name, text in texts.items():
            path = self.folder / "params" / f"{name}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def run(self, *command: object, code: int = 0) -> str:
        run = subprocess.run(
            list(map(str, command)),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert run.returncode == code, run.stdout + run.stderr
        return run.stdout + run.stderr

    def commodel(self, *arguments: object, code: int = 0) -> str:
        return self.run(sys.executable, "-m", "commodel", *arguments, code=code)

    def raw_json(self, name: str) -> list[dict]:
        return [
            json.loads(path.read_text())
            for path in self.folder.glob(f"results/mine/raw/{name}.json")
        ]


@pytest.fixture
def project(apptainer, tmp_path):
    build_toolchain(ROOT, "mpi")
    return Project(tmp_path, apptainer)


def test_the_image_tests_itself(project, image):
    assert "reports/image/image.xlsx" in project.run("apptainer", "test", image)


def test_the_image_runs_commodel_and_has_version_and_commit_labels(project, image):
    assert (
        project.run("apptainer", "--silent", "run", image, "--version")
        == f"commodel, version {__version__}\n"
    )
    description = json.loads(project.run("apptainer", "inspect", "--json", "--labels", image))
    labels = description["data"]["attributes"]["labels"]
    commit = project.run(
        "git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=40", "--exclude", "*"
    )
    assert labels["org.opencontainers.image.version"] == __version__
    assert labels["org.opencontainers.image.revision"] == commit.strip()
    assert labels["commodel.native"] == compute_native_digest()


def test_the_image_contains_only_tracked_and_generated_files(project, image):
    listed = project.run(
        "apptainer", "--silent", "exec", image, "find", "/opt/commodel", "-maxdepth", "1"
    )
    tracked = project.run("git", "-C", ROOT, "ls-files").splitlines()
    own = {".venv", "build", "COMMIT"}
    assert {Path(line).name for line in listed.splitlines()[1:]} == {
        path.split("/")[0] for path in tracked
    } | own


def test_native_and_container_beside_each_other(project, image):
    project.write(make_platform_file(image, native="native"))
    project.commodel("run", "mine", "-q")
    compared = pd.read_csv(project.folder / "results/mine/comparison.csv")
    assert set(compared.platform) == {"native", "boxed"}
    assert (project.folder / "reports/mine/mine.xlsx").exists()
    digest = "sha256:" + hashlib.sha256(image.read_bytes()).hexdigest()
    for provenance in project.raw_json("boxed-*/provenance"):
        assert (provenance["container"]["digest"], provenance["container"]["model"]) == (
            digest,
            "hybrid",
        )
        assert provenance["container"]["commit"].startswith(provenance["commit"])
    metas = [meta for meta in project.raw_json("boxed-*/*") if "compiler" in meta]
    assert metas
    assert all(meta["compiler"].startswith("/opt/commodel/.venv/bin/mpicc") for meta in metas)


def test_processes_keep_their_cores_in_the_image(project, image):
    """Each process computes with one thread on each of its cores. More threads than cores are
    refused in one line."""
    project.write(make_platform_file(image))
    for name, kept in {"one": [2], "two": [1, 1], "more": [1, 4096]}.items():
        rows = "".join(f"{rank},0,{cores},cpu\n" for rank, cores in enumerate(kept))
        (project.folder / f"{name}.csv").write_text(f"rank,node,cores,device\n{rows}")
    for name in ("two", "more"):
        (project.folder / f"params/experiments/{name}.yaml").write_text(KEPT.format(name))
    project.commodel("run", "two", "-q")
    (meta,) = (
        json.loads(path.read_text())
        for path in project.folder.glob("results/two/raw/*/summa-*.json")
    )
    assert len(set(meta["cores"])) == 2
    requested = ("--layout", "processes:one.csv", "--sizes", "4096:4096", "--seconds", 0.1)
    assert "node/2" in project.commodel(
        "measure", "speeds", "wave", "--platform", "boxed", *requested, "-o", "speeds.yaml"
    )
    printed = project.commodel("plan", "more", code=2)
    assert "more.csv:3: found 4097 cores in use on node 0, wanted at most its 2" in printed


def test_the_mpi_of_the_host_takes_the_place_of_the_image_s(project, image):
    mpi = Path(find_tool("mpiexec")).resolve().parents[1]
    project.write(make_platform_file(image, model="bind", mpi=str(mpi)))
    project.commodel("run", "mine", "-q", "--only", "boxed")
    assert {
        (provenance["container"]["model"], provenance["container"]["mpi"])
        for provenance in project.raw_json("boxed-*/provenance")
    } == {("bind", str(mpi))}


@pytest.mark.parametrize(
    ("name", "definition", "complaint"),
    [
        (
            "no-mpi",
            NO_MPI,
            "the programs in image no-mpi.sif do not start: .*libmpi.so.*cannot open shared object file",
        ),
        (
            "open-mpi",
            OPEN_MPI,
            "image open-mpi.sif has Open MPI .* is of MPICH: every rank would run as rank 0",
        ),
        (
            "other",
            OTHER_SOURCES,
            r"image other.sif was built from other C sources .* build it again: make container",
        ),
    ],
)
def test_a_faulty_image_is_explained_in_one_line(
    name, definition, complaint, project, faulty_image
):
    project.write(make_platform_file(faulty_image(name, definition)))
    project.commodel("plan", "mine", "--only", "boxed", "--write")
    batch = next(path.stem for path in project.folder.glob("results/mine/batches/boxed-*.txt"))
    printed = project.commodel(
        *("measure", "-q", "--in", "results/mine/plan.json", "--batch", batch, "--out", "raw"),
        code=2,
    )
    assert len(printed.splitlines()) == 1
    assert re.search(f"boxed.yaml:5: container: {complaint}", printed), printed


def test_a_folder_that_holds_no_mpi_cannot_replace_one(project, image, tmp_path):
    (tmp_path / "empty").mkdir()
    project.write(make_platform_file(image, model="bind", mpi=str(tmp_path / "empty")))
    printed = project.commodel("run", "mine", "-q", "--only", "boxed", code=1)
    assert "nothing of" in printed
    assert "model bind needs an MPI whose library has the same name" in printed
