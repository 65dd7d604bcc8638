"""The bandwidth of a node's memory: fits to probe `memory` of synthetic nodes, and its effect on
predictions."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.files.parameter_sets import read_parameters, write_parameters
from commodel.fits.probe_fits import fit_set
from commodel.models.families import find_family
from commodel.models.fitting.observed import CaseSamples, Observed
from commodel.models.parameter_sets import read_published
from commodel.models.probes import Site, find_probe
from commodel.predictions.predictions import predict
from commodel.reports.sections import memory
from tests.models.synthetic import Truth, observed
from tests.patterns.catalogue import point

MIB = 1 << 20
CORE, SOCKET, CACHED = 10e9, 30e9, 50e9  # bytes copied per second: by a core, by a socket
CACHE = 2 * MIB  # bytes that a core copies between caches
SITE = Site(4, 16)
TIMES = {
    "pingpong": lambda case: 2 * (1e-6 + case["bytes"] / CORE),
    "work": lambda case: case["bytes"] / CORE,
}


def copy_rate(case):
    """Sixteen cores on two sockets; copies that fit into caches take all cores' bandwidth."""
    procs = case["procs"]
    if case["bytes"] <= CACHE:
        return procs * CACHED
    sockets = -(-procs // 8)
    return min(procs * CORE, sockets * SOCKET)


def see(rate, site=SITE, simulated=False):
    """Return synthetic samples of model hockney's probes, and of copies at a rate by case."""
    seen = observed(Truth(TIMES, {}, site), "hockney")
    copies = []
    for case in find_probe("memory").cases("synthetic", site, [8]):
        settings = {**case.settings, "ranks": case.ranks, "layout": case.layout, "pair": case.pair}
        best = case.settings["procs"] * case.settings["bytes"] / rate(settings)
        seconds = best * np.array([1.0, 1.1, 1.2, 1.1, 1.3])
        sockets = np.full(5, float(-(-case.settings["procs"] // 8)))
        copies.append(CaseSamples(settings | {"where": "0"}, seconds, np.arange(5) // 2, sockets))
    return Observed({**seen.probes, "memory": copies}, simulated=simulated)


def fit(seen):
    fitted = fit_set(find_family("hockney"), seen)
    return replace(fitted, platform="synthetic", source="probes")


def test_the_memory_of_a_node_is_as_fast_as_the_fastest_long_copies(tmp_path):
    fitted = fit(see(copy_rate))
    assert fitted.settings["memory_bandwidth"] == {"node": pytest.approx(2 * SOCKET, rel=1e-4)}
    assert fitted.settings["memory_from"] == 4 * MIB
    copies = fitted.settings["memory_copies"]
    long_rates = {
        procs: (sockets, rate)
        for procs, sockets, bytes, rate in zip(
            copies["procs"], copies["sockets"], copies["bytes"], copies["fastest"], strict=True
        )
        if bytes >= 32 * MIB
    }
    assert long_rates == {
        1: (1, pytest.approx(CORE, rel=1e-4)),
        2: (1, pytest.approx(2 * CORE, rel=1e-4)),
        4: (1, pytest.approx(SOCKET, rel=1e-4)),
        8: (1, pytest.approx(SOCKET, rel=1e-4)),
        16: (2, pytest.approx(2 * SOCKET, rel=1e-4)),
    }
    for median, low, high, fastest in zip(
        copies["rate"], copies["low"], copies["high"], copies["fastest"], strict=True
    ):
        assert low <= median <= high <= fastest * (1 + 1e-5)
    write_parameters(tmp_path / "set.yaml", fitted)
    assert read_parameters(tmp_path / "set.yaml").settings == fitted.settings


@pytest.mark.parametrize("size", [1 << 16, 16 * MIB])
def test_only_messages_that_leave_caches_are_limited(size):
    """All ranks of a node exchange with each other. Without the limit, they copy at 16 times the
    rate of one."""
    fitted = fit(see(copy_rate))
    ring = point("allgather", "ring", ranks=16, bytes=size, layout="block:16")
    (prediction,) = predict(fitted, [ring])
    unlimited = replace(fitted, settings={**fitted.settings, "memory_bandwidth": {}})
    (faster,) = predict(unlimited, [ring])
    if size == 1 << 16:
        assert prediction.seconds == faster.seconds
        return
    assert prediction.seconds == pytest.approx(16 * 15 * size / (2 * SOCKET), rel=1e-4)
    assert faster.seconds < 0.6 * prediction.seconds
    assert "memory" not in faster.validity_text


def test_a_limited_prediction_states_it():
    fitted = fit(see(copy_rate))
    fitted = replace(fitted, settings={**fitted.settings, "probed_classes": ["node"]})
    fitted = replace(fitted, bytes_range=(1, 64 * MIB), vectors={})
    ring = point("allgather", "ring", ranks=16, bytes=16 * MIB, layout="block:16")
    (prediction,) = predict(fitted, [ring])
    limit = (
        "limited by memory: as long as the memory of a node takes to copy all messages within it"
    )
    assert prediction.validity_text == limit


def test_waves_of_a_stream_are_limited_too():
    """Model tan has an equation of the time between two waves."""
    fitted = read_published("tan/cab-mrnet")
    slow = fitted.with_settings(memory_bandwidth={"node": 1e3})
    stream = replace(point("reduce", topology="kary:2^2", bytes=64, layout="block:7"), waves=50)
    (unlimited,) = predict(fitted, [stream])
    (prediction,) = predict(slow, [stream])
    assert prediction.seconds == pytest.approx(6 * 64 / 1e3)
    assert unlimited.seconds < 0.1 * prediction.seconds


@pytest.mark.parametrize(("total", "limited"), [(3e9, True), (None, False)])
def test_a_simulated_node_without_a_limit_gets_none(total, limited):
    def rate(case):
        return total or case["procs"] * CORE

    seen = see(rate, Site(4, 16, simulated=True), simulated=True)
    procs = [case.settings["procs"] for case in seen.probes["memory"]]
    assert procs == [2, 4, 8, 16]
    fitted = fit(seen)
    assert ("memory_bandwidth" in fitted.settings) == limited
    assert "memory_from" not in fitted.settings
    (section,) = memory.make_sections([fitted])
    sentence = "at most 3 GB/s within a node" if limited else "no limit of the memory was found"
    assert sentence in section.note
    (table,) = section.tables
    assert len(table.rows) == 4


def without(seen, is_lost):
    """Return samples without those of some cases of probe `memory`."""
    left = [copy for copy in seen.probes["memory"] if not is_lost(copy.settings)]
    return Observed({**seen.probes, "memory": left}, simulated=seen.simulated)


def test_few_ranks_show_no_limit_of_the_memory():
    seen = see(copy_rate)
    fitted = fit(without(seen, lambda case: case["procs"] == 16 and case["bytes"] >= 32 * MIB))
    assert "memory_bandwidth" not in fitted.settings
    (section,) = memory.make_sections([fitted])
    assert "long copies by all ranks were not measured" in section.note


def test_without_short_copies_only_long_messages_are_limited():
    fitted = fit(without(see(copy_rate), lambda case: case["bytes"] < 32 * MIB))
    assert fitted.settings["memory_bandwidth"] == {"node": pytest.approx(2 * SOCKET, rel=1e-4)}
    assert fitted.settings["memory_from"] == 32 * MIB


def test_nodes_of_two_types_have_the_weaker_limit():
    """The bandwidth of the fastest type, and the longest messages that stay in caches of any."""
    site = Site(4, 16, types={"fat": 2, "thin": 2}, fewer_cores={"thin": 4})

    def rate(case):
        if case["ranks"] == 16:
            return copy_rate(case)
        return 4 * CACHED if case["bytes"] <= 8 * MIB else min(case["procs"] * CORE, SOCKET / 2)

    settings = fit(see(rate, site)).settings
    assert settings["memory_bandwidth"] == {"node": pytest.approx(2 * SOCKET, rel=1e-4)}
    assert settings["memory_from"] == 16 * MIB
    lost = without(see(rate, site), lambda case: case["ranks"] == 4 and case["procs"] == 4)
    assert "memory_bandwidth" not in fit(lost).settings


def test_nodes_of_one_core_have_no_probe_of_memory():
    assert not list(find_probe("memory").cases("synthetic", Site(8, 1), [8]))
    assert list(find_probe("memory").cases("synthetic", Site(8, 2), [8]))
    simulated = Site(8, 2, simulated=True)
    assert not list(find_probe("memory").cases("synthetic", simulated, [8]))
    mixed = Site(4, 8, types={"fat": 2, "thin": 2}, fewer_cores={"thin": 4})
    cases = list(find_probe("memory").cases("synthetic", mixed, [8]))
    assert {(case.where, case.ranks, case.layout) for case in cases} == {
        ((0,), 8, "block:8"),
        ((2,), 4, "block:4"),
    }
    of_all_ranks = [case.settings for case in cases if case.settings["procs"] == case.ranks]
    assert len(of_all_ranks) == 2 * 6
