"""Campaigns on a real Slurm inside the image of container.def, compared with the same campaigns
without it."""

import json
from dataclasses import replace

import pandas as pd
import pytest

from tests.labs.apptainer_lab import make_platform_file
from tests.labs.slurm_lab import make_project
from tests.labs.test_slurm_campaign import CAMPAIGN

pytestmark = pytest.mark.lab

SLURM = "launcher: slurm\nnodes: 4\nslurm: {mpi: pmi2}"
MATRIX = CAMPAIGN.partition("matrix:\n")[2]
BOTH = CAMPAIGN + MATRIX.replace("- axes:", "- platform: boxed\n    axes:", 1)


@pytest.fixture
def project(slurm, apptainer, tmp_path, monkeypatch):
    # plans are made in this process
    monkeypatch.setenv("COMMODEL_TRUSTED", apptainer["COMMODEL_TRUSTED"])
    path = f"{apptainer['PATH'].split(':')[0]}:{slurm.environment['PATH']}"
    return make_project(
        replace(slurm, environment=slurm.environment | apptainer | {"PATH": path}), tmp_path
    )


def boxed(project, text: str) -> None:
    (project.folder / "params/platforms/boxed.yaml").write_text(text)


def test_a_campaign_in_the_image_beside_the_native_one(project, image):
    project.write(BOTH)
    boxed(project, make_platform_file(image, launcher=SLURM, native="lab"))
    process = project.start("snakemake", "--profile", "slurm", "--config", "experiment=mine")
    said, _ = process.communicate(timeout=900)
    assert process.returncode == 0, said
    assert (project.folder / "reports/mine/mine.xlsx").exists()
    compared = pd.read_csv(project.folder / "results/mine/comparison.csv")
    points = compared.groupby("platform").point.nunique()
    assert points["boxed"] == points["lab"] >= 40
    for batch in project.plan.batches:
        provenance = json.loads((project.raw(batch) / "provenance.json").read_text())
        assert bool(provenance["container"]) == (batch.platform == "boxed")
        assert provenance["slurm_job"]
        hosts = [
            json.loads(path.read_text())["hosts"]
            for path in project.raw(batch).glob("player-*.json")
        ]
        widths = {len(set(seats)) for seats in hosts} or {batch.nodes}
        assert max(widths) == batch.nodes
        # some probes are of two ranks
        assert widths <= ({batch.nodes} if batch.points else {1, 2, batch.nodes})
    assert {batch.nodes for batch in project.plan.batches if batch.platform == "boxed"} >= {1, 2, 4}


def test_ranks_that_srun_does_not_speak_to_are_explained(project, image):
    project.write(CAMPAIGN.replace("platform: lab", "platform: boxed"))
    boxed(project, make_platform_file(image, launcher=SLURM.replace("pmi2", "none")))
    batch = next(batch for batch in project.plan.batches if batch.nodes == 2)
    job = project.submit(batch)
    assert project.slurm.ended(job) == "FAILED"
    assert "processes is rank 0 of 1" in project.log(job).splitlines()[-1]
