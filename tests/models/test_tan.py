"""TAN beyond the contract: overheads that stop growing, and phases of several steps."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.files.sets import read_parameters
from commodel.fit.probes import as_parameters
from commodel.models.families import family
from commodel.models.probes import Site
from commodel.platforms.tools import ROOT
from commodel.price.predict import predict
from tests.models.synthetic import observed, truth
from tests.patterns.catalogue import point


@pytest.mark.parametrize("growth", [lambda n: 1e-5 * np.log(n), lambda n: 3e-5 * (1 - np.exp(-n / 10))])
def test_no_fan_in_is_cheaper_than_a_smaller_one(growth):
    machine = truth("tan")
    times = {**machine.times, "fan": lambda case: 2e-5 + growth(case["n"])}
    fitted = family("tan").fit(observed(replace(machine, times=times, site=Site(64, 1)), "tan", noise=0.01))
    points = [point("reduce", topology=f"flat:{n}", bytes=1024) for n in (1, 8, 63, 256, 4096)]
    prices = [found.seconds for found in predict(as_parameters(family("tan"), fitted), points)]
    assert prices[0] > 0
    assert prices == sorted(prices)


def test_a_phase_of_several_steps_sets_the_pace_of_a_stream():
    """A binomial gather takes its messages step by step, a reduction over the same tree in one."""
    parameters = read_parameters(ROOT / "params/published/tan/cab-mrnet.yaml")
    points = [point("gather", "binomial", ranks=64, bytes=1024), point("reduce", topology="binomial:6", bytes=1024)]
    gather, reduction = predict(parameters, points, pipelined=True)
    wanted = 9.8e-5 + 4.93e-5 + 7 * 7.83e-7 + 49 * 1.57e-7
    assert [gather.seconds, reduction.seconds] == pytest.approx([wanted, wanted])


def test_more_messages_than_were_probed_are_an_extrapolation():
    machine = truth("tan")
    parameters = as_parameters(family("tan"), family("tan").fit(observed(machine, "tan")))
    known = int(parameters.settings["fan_in"])
    points = [point("reduce", topology=f"flat:{n}", bytes=1024) for n in (known, known + 1)]
    assert [found.status.partition(":")[0] for found in predict(parameters, points)] == ["ok", "extrapolated"]
