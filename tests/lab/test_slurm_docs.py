"""The commands of README and docs that want a Slurm, word for word, with the experiment and the platform `cluster` that
come with commodel; but for the number of samples."""

import shutil

import pytest

from commodel.platforms.tools import ROOT
from tests.docs_project import smaller
from tests.documented import of

pytestmark = pytest.mark.lab
COMMANDS = [command for program in ("commodel", "snakemake") for command in of(program) if "slurm" in command.words]


def test_commands_that_want_a_slurm_work(project):
    """The first measures; to the others nothing is left but to report."""
    shutil.copytree(ROOT / "params", project.folder / "params")
    path = project.folder / "params/experiments/cluster.yaml"
    path.write_text(smaller(path.read_text(encoding="utf-8")), encoding="utf-8")
    assert len(COMMANDS) >= 3
    for command in COMMANDS:
        assert command.words[2:4] == ["cluster", "--profile"] or "experiment=cluster" in command.words, command.text
        code, said = project.run(*command.words)
        assert code == 0, f"{command.place}: {said}"
        assert (project.folder / "reports/cluster/cluster.xlsx").exists()
        shutil.rmtree(project.folder / "reports")
    assert project.slurm.jobs() == []
