"""A simulated platform that is made from a parameter set: patterns on it take as long as the set says."""

import pytest

from commodel.errors import UserError
from commodel.files.columns import COMPARISON
from commodel.files.tables import read_table
from commodel.interchange.simgrid import network, write
from commodel.models.byhand import set_given
from commodel.parameters import Estimate, ParameterSet
from commodel.plan.config import load_platform
from commodel.price.points import predict
from tests.patterns.catalogue import point
from tests.workflow.conftest import Project


def exact(family, forms=None, **values):
    return ParameterSet(family, "mine", "", {name: Estimate(v, "", v, v) for name, v in values.items()}, forms or {})


SETS = {
    "loggp": exact("loggp", L=20e-6, o_s=1.5e-6, o_r=1e-6, g=4e-6, G=0.5e-9),
    "hockney": exact(
        "hockney",
        {"alpha": "piecewise", "beta": "piecewise"},
        **{"alpha.a": 1e-5, "alpha.x1": 4096.0, "alpha.a1": 3e-5, "beta.a": 1e-9, "beta.x1": 4096.0, "beta.a1": 5e-10},
    ),
}
EXPERIMENT = """
title: exported
platform: exported
families: [pram]
library: false
measure: {precision: 5%, min_samples: 2, max_samples: 2, seconds: 1, warmup: 1}
matrix:
  - axes: {operation: bcast, algorithm: [linear, binomial], ranks: [2, 8, 16], bytes: [8, 4KiB, 64KiB]}
  - axes: {operation: allgather, algorithm: ring, ranks: 8, bytes: [8, 64KiB]}
"""


@pytest.mark.parametrize("name", sorted(SETS))
def test_patterns_on_the_platform_take_what_the_set_says(tmp_path, simgrid_programs, name):
    project = Project(tmp_path)
    write(SETS[name], 16, project.folder / "params" / "platforms" / "exported.yaml")
    project.experiment("exported", EXPERIMENT)
    measured = read_table(project.compare("exported") / "comparison.csv", COMPARISON)
    assert len(measured) == 20
    for row in measured.itertuples():
        wanted = point(row.operation, row.algorithm, ranks=row.ranks, bytes=row.bytes)
        assert row.measured == pytest.approx(predict(SETS[name], [wanted])[0].seconds, rel=0.005)


def test_the_platform_is_one_that_experiments_take(tmp_path):
    path = tmp_path / "exported.yaml"
    write(SETS["loggp"], 16, path)
    platform = load_platform(path)
    assert (platform.nodes, platform.cores, platform.simulated) == (16, 1, True)
    assert platform.simgrid_file == tmp_path / "exported.xml"
    assert 'radical="0-15"' in platform.simgrid_file.read_text()


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        (set_given("logp", ["L=1us", "o=1us", "g=1us"]), "found parameters of family 'logp'"),
        (
            set_given("loggp", ["L=1us", "o_s=1us", "o_r=1us", "g=2us", "G=1ns"]),
            "found L of 1e-06 s, wanted at least 2e-06",
        ),
        (exact("loggp", L=1e-5), "no value of o_s"),
        (exact("hockney", {"alpha": "table"}, **{"alpha.8": 1e-5}), "constant or piecewise"),
    ],
)
def test_what_cannot_be_simulated(parameters, complaint):
    with pytest.raises(UserError) as error:
        network(parameters)
    assert complaint in error.value.message
