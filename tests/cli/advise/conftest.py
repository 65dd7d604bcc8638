"""What advice rests on: a set of parameters, and a platform that was measured."""

from dataclasses import replace

import pandas as pd
import pytest

from commodel.files.atomic import write_text
from commodel.files.parameter_sets import write_parameters
from commodel.models.parameter_sets import set_given
from tests.cli.advise.asking import LOGGP

PLATFORM = "title: eight nodes\nlauncher: slurm\nnodes: 8\ncores: 4\n"


@pytest.fixture
def params(tmp_path):
    path = tmp_path / "loggp.yaml"
    write_parameters(path, set_given("loggp", LOGGP))
    return path


@pytest.fixture
def platform(tmp_path, monkeypatch):
    """A folder where an experiment has fitted two families on a simulated platform, and compared them: Hockney is off
    by three times as much."""
    monkeypatch.chdir(tmp_path)
    write_text(tmp_path / "params/platforms/made-up.yaml", PLATFORM)
    fitted = tmp_path / "results/study/fitted/made-up"
    for name, values in (("loggp", LOGGP), ("hockney", ("alpha=30us", "beta=80ns", "gamma=1ns"))):
        write_parameters(fitted / f"{name}.yaml", replace(set_given(name, values), platform="made-up", simulated=True))
    rows = []
    for ranks in (4, 8):
        for choice, measured in (("ring", 2e-4), ("recursive-doubling", 1e-4)):
            for family, off in (("loggp", 1.1), ("hockney", 1.331)):
                rows.append(
                    {"point": f"{ranks} {choice}", "platform": "made-up", "operation": "allreduce", "algorithm": choice}
                    | {"choice": choice, "layout": "block:1", "ranks": ranks, "leaves": 0, "bytes": 8}
                    | {"group": f"{ranks}"}
                    | {"measured": measured, "measured_low": measured, "measured_high": measured, "family": family}
                    | {"predicted": measured * off, "mu": off, "status": "ok", "held_out": True, "simulated": True}
                )
    pd.DataFrame(rows).to_csv(tmp_path / "results/study/comparison.csv", index=False)
    return "made-up"
