"""Local work by its size: what was measured of long vectors is what they cost, and what is longer is doubted."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from commodel.files.parameter_sets import write_parameters
from commodel.fits.probe_fits import fitted_set
from commodel.models.families import family
from commodel.models.parameter_sets import read_set
from commodel.models.pricing.values import Values
from commodel.patterns.schedule import Schedule, Work
from commodel.predictions.model import Model
from commodel.predictions.predictions import predict
from tests.models.synthetic import observed, truth
from tests.patterns.catalogue import point

MIB = 1 << 20
CACHE = 4 * MIB


def beyond_cache(near, far):
    return lambda case: near * min(case["bytes"], CACHE) + far * max(case["bytes"] - CACHE, 0)


def copied(case):
    """Into a new buffer ten times as long."""
    return beyond_cache(2e-11, 6e-11)(case) * (10 if case["path"] == "anew" else 1)


@cache
def evidence(name, longest=64 * MIB):
    machine = truth(name)
    site = replace(machine.site, vectors={"reduce": longest, "copy": longest} if longest else {})
    times = {**machine.times, "work": beyond_cache(1e-10, 4e-10)}
    if "memcopy" in times:
        times["memcopy"] = copied
    return observed(replace(machine, site=site, times=times), name)


@cache
def parameters(name, longest=64 * MIB):
    return fitted_set(family(name), evidence(name, longest))


def alone(kind, size):
    """What a rank takes for work on so many bytes."""
    work = getattr(Work, kind)([0], [1], [size])
    with_work, without = (Schedule.of(2, 0, [0], [1], [8], work=work) for work in (work, None))
    model = Model.of_set(parameters("shares"))
    return (model.cost(with_work) - model.cost(without))[0]


@pytest.mark.parametrize("size", [4096, 65536, CACHE, 16 * MIB, 48 * MIB, 64 * MIB])
def test_shares_prices_work_by_its_size(size):
    case = {"bytes": size, "path": "ctc"}
    assert alone("reduce", size) == pytest.approx(beyond_cache(1e-10, 4e-10)(case))
    assert alone("copy", size) == pytest.approx(copied(case))


def test_new_buffers_are_measured_and_are_in_no_price():
    known = parameters("shares")
    assert known.values[f"anew.{64 * MIB}"].value == pytest.approx(copied({"bytes": 64 * MIB, "path": "anew"}))
    dearer = {
        key: np.array([[value.value * (9 if key.startswith("anew") else 1)]]) for key, value in known.values.items()
    }
    pattern = Schedule.of(2, 0, [0], [1], [8], work=Work.copy([0], [1], [64 * MIB]))
    entry = family("shares")
    prices = [
        Model.of(entry, values).cost(pattern)[0]
        for values in (Values.of(known), Values(dearer, known.forms, known.settings))
    ]
    assert prices[0] == prices[1] > 0


def test_a_copy_of_the_cluster_model_is_one_of_the_caches():
    """Its three paths are of one size each; longer vectors are copied on one of them only."""
    few, many = (family("cluster").fit(evidence("cluster", longest)).values for longest in (0, 64 * MIB))
    assert many["M_ctc.b"][0] == few["M_ctc.b"][0]


def test_a_set_says_how_long_vectors_were_and_keeps_it(tmp_path):
    known = parameters("shares")
    assert known.vectors == {"reduce": 64 * MIB, "copy": 64 * MIB}
    assert parameters("loggp").vectors == {"reduce": 64 * MIB}
    write_parameters(tmp_path / "set.yaml", known)
    assert read_set(tmp_path / "set.yaml").vectors == known.vectors


@pytest.mark.parametrize(
    ("name", "longest", "said"),
    [
        ("shares", 64 * MIB, "ok"),
        ("shares", 0, "extrapolated: 96 KiB copied at once, measured up to 64 KiB"),
        ("loggp", 64 * MIB, "ok"),
        ("loggp", 0, "extrapolated: 96 KiB copied at once, measured up to 64 KiB"),
    ],
)
def test_what_is_longer_than_what_was_measured_says_so(name, longest, said):
    """Of Bruck's messages each is half a vector, all of which it copies."""
    (found,) = predict(parameters(name, longest), [point("alltoall", "bruck", ranks=8, bytes=8192)])
    assert found.status == said


def test_its_interval_widens_as_that_of_a_longer_message():
    known = replace(parameters("loggp", 0), left_out={"error": 0.2, "cases": 5}, draws={})
    (found,) = predict(known, [point("alltoall", "bruck", ranks=8, bytes=8192)])
    assert np.log(found.high / found.seconds) == pytest.approx(1.96 * np.log(1.2) * np.sqrt(np.log2(96 / 64)))
