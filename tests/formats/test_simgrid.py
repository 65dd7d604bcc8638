"""A simulated platform made from a parameter set: patterns take as long on it as predicted with the
set."""

import pytest

import commodel
from commodel.files.tables import COMPARISON, read_table
from commodel.models.parameter_sets import make_given_set, read_set
from commodel.parameters import Estimate, ParameterSet
from commodel.plan.config import load_platform
from commodel.predictions.predictions import predict
from commodel_formats.simgrid import LOGGP, make_network, write_platform
from tests.patterns.catalogue import point
from tests.refusals import catch_error_message
from tests.workflow.conftest import Project


def exact(model, forms=None, **values):
    return ParameterSet(
        model, "mine", "", {name: Estimate(v, "", v, v) for name, v in values.items()}, forms or {}
    )


SETS = {
    "loggp": exact("loggp", L=20e-6, o_s=1.5e-6, o_r=1e-6, g=4e-6, G=0.5e-9),
    "hockney": exact(
        "hockney",
        {"alpha": "piecewise", "beta": "piecewise"},
        **{
            "alpha.a": 1e-5,
            "alpha.x1": 4096.0,
            "alpha.a1": 3e-5,
            "beta.a": 1e-9,
            "beta.x1": 4096.0,
            "beta.a1": 5e-10,
        },
    ),
}
EXPERIMENT = """
title: exported
platform: exported
models: [pram]
library: false
measure: {precision: 5%, min_samples: 2, max_samples: 2, seconds: 1, warmup: 1}
matrix:
  - axes: {operation: bcast, algorithm: [linear, binomial], ranks: [2, 8, 16], bytes: [8, 4KiB, 64KiB]}
  - axes: {operation: allgather, algorithm: ring, ranks: 8, bytes: [8, 64KiB]}
"""
CONTENDED = """  - axes: {operation: gather, algorithm: linear, ranks: [8, 16], bytes: [8, 64KiB]}
  - axes: {operation: bcast, algorithm: "chain:1000", ranks: [2, 8], bytes: [8, 64KiB]}
  - axes: {operation: barrier, algorithm: dissemination, ranks: 16}
"""
PROBES = """
title: exported
platform: exported
models: [loggp]
probes: [prtt, work]
library: false
measure: {precision: 5%, min_samples: 2, max_samples: 2, seconds: 1, warmup: 1}
matrix:
  - axes: {operation: bcast, algorithm: linear, ranks: 2, bytes: 8}
"""
CIRCLES = [  # L, o_s, o_r, g in ns, G in ns/B
    (2500, 1500, 1500, 1000, 6),
    (1000, 100, 100, 500, 2),
    pytest.param((5000, 300, 300, 4000, 1), marks=pytest.mark.slow),
    pytest.param((2000, 500, 800, 300, 0.1), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("name", sorted(SETS))
def test_simulated_times_on_an_exported_platform_equal_the_predictions(
    tmp_path, simgrid_programs, name
):
    project = Project(tmp_path)
    write_platform(SETS[name], 16, project.folder / "params" / "platforms" / "exported.yaml")
    matrix = EXPERIMENT + (CONTENDED if name == "loggp" else "")
    project.experiment("exported", matrix)
    measured = read_table(project.compare("exported") / "comparison.csv", COMPARISON)
    assert len(measured) == (29 if name == "loggp" else 20)
    for row in measured.itertuples():
        wanted = point(row.operation, row.algorithm, ranks=row.ranks, bytes=row.bytes)
        assert row.measured == pytest.approx(predict(SETS[name], [wanted])[0].seconds, rel=0.01)


@pytest.mark.parametrize("machine", CIRCLES)
def test_a_fit_on_the_platform_gives_the_values_again(tmp_path, simgrid_programs, machine):
    """After export, probes on the simulated platform and a fit, values agree within 1 % and 5 ns (G
    within 1 %)."""
    project = Project(tmp_path)
    texts = [f"{name}={value}ns" for name, value in zip(LOGGP, machine, strict=True)]
    write_platform(
        make_given_set("loggp", texts), 2, project.folder / "params" / "platforms" / "exported.yaml"
    )
    project.experiment("exported", PROBES)
    fitted = read_set(project.compare("exported") / "fitted" / "exported" / "loggp.yaml")
    for name, value in zip(LOGGP, machine, strict=True):
        slack = 5e-9 if name != "G" else 0
        assert fitted.numbers[name] == pytest.approx(value * 1e-9, rel=0.01, abs=slack), name


@pytest.mark.parametrize("G", ["0ns", "0.001ns", "6ns"])
@pytest.mark.parametrize(("L", "g"), [("0ns", "0ns"), ("1s", "1s"), ("20us", "0.1ns")])
def test_every_port_is_one_that_a_platform_may_have(tmp_path, L, g, G):
    path = tmp_path / "exported.yaml"
    write_platform(
        make_given_set("loggp", [f"L={L}", "o_s=1us", "o_r=1us", f"g={g}", f"G={G}"]), 2, path
    )
    factors = load_platform(path).simgrid.config["smpi/bw-factor"]
    assert all(0 < float(piece.partition(":")[2]) <= 1 for piece in factors.split(";"))


def test_a_gap_above_the_latency_that_overheads_hide_is_carried_in_part(tmp_path):
    values = ["L=1us", "o_s=4us", "o_r=5us", "g=3us", "G=1ns"]
    note = write_platform(make_given_set("loggp", values), 2, tmp_path / "exported.yaml")
    assert note == "g is reduced to L, 1 µs: bursts may be up to 50% too fast"
    assert (
        write_platform(
            make_given_set("loggp", ["L=2.999us", *values[1:]]), 2, tmp_path / "exported.yaml"
        )
        == ""
    )


def test_the_platform_is_one_that_experiments_take(tmp_path):
    path = tmp_path / "exported.yaml"
    write_platform(SETS["loggp"], 16, path)
    platform = load_platform(path)
    assert (platform.nodes, platform.cores, platform.simulated) == (16, 1, True)
    assert platform.simgrid_file == tmp_path / "exported.xml"
    assert 'radical="0-15"' in platform.simgrid_file.read_text()


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        (make_given_set("logp", ["L=1us", "o=1us", "g=1us"]), "found parameters of model 'logp'"),
        (
            make_given_set("loggp", ["L=1us", "o_s=1us", "o_r=1us", "g=2us", "G=1ns"]),
            "found g of 2 µs above L of 1 µs, wanted at most L",
        ),
        (exact("loggp", L=1e-5), "no value of o_s"),
        (exact("hockney", {"alpha": "table"}, **{"alpha.8": 1e-5}), "constant or piecewise"),
    ],
)
def test_a_parameter_set_that_cannot_be_simulated_is_refused(parameters, complaint):
    assert complaint in catch_error_message(make_network, parameters)


def test_the_function_writes_a_description_and_a_platform_file(tmp_path):
    parameters = make_given_set("hockney", ["alpha=10us", "beta=1ns/B"])
    exported = commodel.export("simgrid", parameters, tmp_path / "model.yaml", nodes=4)
    assert [path.suffix for path in exported.files] == [".yaml", ".xml"]
