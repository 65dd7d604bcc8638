"""The commands of README and docs that need a Slurm, literally, with the experiment and the
platform `cluster` of the project; only the number of samples is smaller."""

import shutil

import pytest
import yaml

from commodel.platforms.tools import ROOT
from tests.docs_project import reduce_experiment
from tests.documented import of

# Its commands are those of other tests, on a larger campaign: 4 minutes.
pytestmark = [pytest.mark.lab, pytest.mark.slow]
COMMANDS = {
    tuple(command.words): command
    for program in ("commodel", "snakemake")
    for command in of(program)
    if "slurm" in command.words and command.words[1] != "init"
}


def test_commands_that_want_a_slurm_work(project):
    """The first command measures; the others only make the report again. Two models suffice, with
    fewer probes."""
    shutil.copytree(ROOT / "params", project.folder / "params")
    path = project.folder / "params/experiments/cluster.yaml"
    experiment = yaml.safe_load(reduce_experiment(path.read_text(encoding="utf-8")))
    experiment["models"] = experiment["models"][:2]
    path.write_text(yaml.safe_dump(experiment), encoding="utf-8")
    assert len(COMMANDS) >= 2
    for command in COMMANDS.values():
        assert (
            command.words[2:4] == ["cluster", "--profile"] or "experiment=cluster" in command.words
        ), command.text
        code, said = project.run(*command.words)
        assert code == 0, f"{command.place}: {said}"
        assert (project.folder / "reports/cluster/cluster.xlsx").exists()
        shutil.rmtree(project.folder / "reports")
    assert project.slurm.jobs() == []
