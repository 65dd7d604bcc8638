"""Simulated cases stop after two equal samples, unless the network changes over time."""

from dataclasses import replace

import pytest

from commodel.files.safe_paths import SafePath
from commodel.measure.batch import measure_now
from commodel.records import ENOUGH_EQUAL_SAMPLES
from tests.patterns.catalogue import point
from tests.planning import MEASURE

HEAD = """<?xml version='1.0'?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">"""
NETWORK = """<zone id="z" routing="Full"><host id="node-0" speed="1Gf"/><host id="node-1" speed="1Gf"/>
<link id="l" bandwidth="100MBps" latency="1us"/><route src="node-0" dst="node-1"><link_ctn id="l"/></route></zone>"""
# The link is slow for 1 of 50 ms: the first samples are equal.
TRACE = """<trace id="load" periodicity="0.05">
0 1e8
0.049 1e7
</trace><trace_connect trace="load" element="l" kind="BANDWIDTH"/>"""


@pytest.mark.parametrize(
    ("trace", "count"), [("", ENOUGH_EQUAL_SAMPLES), (TRACE, MEASURE.min_samples)]
)
def test_equal_samples_of_a_network_without_noise_are_enough(
    trace, count, simgrid_programs, tmp_path
):
    (tmp_path / "net.xml").write_text(f"{HEAD}{NETWORK}{trace}</platform>")
    platform = tmp_path / "net.yaml"
    platform.write_text("launcher: simgrid\nnodes: 2\ncores: 1\nsimgrid: {file: net.xml}\n")
    points = [point("bcast", "binomial", ranks=2, bytes=size) for size in (8, 1 << 16)]
    settings = replace(MEASURE, passes=1)
    measured = measure_now(
        "equal", points, str(platform), settings, SafePath(tmp_path / "raw"), lambda _: None
    )
    for samples in measured:
        seconds = [sample["seconds"] for sample in samples]
        assert len(seconds) >= count
        assert all(sample["valid"] for sample in samples)
        if not trace:
            assert len(seconds) == count
            assert {sample["stop"] for sample in samples} == {"equal samples"}
            assert max(seconds) - min(seconds) <= 1e-9
