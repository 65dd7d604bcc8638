"""One slow cable among eight real hosts is detected, and named in the report and by `commodel show
network`."""

import json
import re
import shutil

import pytest

from tests.labs.network_lab import HOSTS

pytestmark = pytest.mark.lab

PAIRS = """
platform: netns-8
models: [hockney]
probes: [auto, nodepairs]
library: false
measure: {sync: barrier, precision: 10%, min_samples: 6, max_samples: 12, seconds: 0.5, passes: 1}
probe_bytes: [1, 1KiB]
matrix:
  - axes: {operation: bcast, algorithm: linear, ranks: 8, bytes: 8}
"""
FAST, SLOW = "100mbit", "10mbit"
SLOWED = "h5"


def set_rate(lab, host, rate):
    lab.on(
        host,
        f"{shutil.which('tc')} qdisc replace dev eth0 root tbf rate {rate} burst 1600 limit 1514000",
    )


def test_a_slow_cable_is_named(lab):
    lab.write("experiments", "cables", PAIRS)
    set_rate(lab, SLOWED, SLOW)
    try:
        lab.commodel("run", "cables", "-q")
    finally:
        set_rate(lab, SLOWED, FAST)
    nodes = json.loads(lab.commodel("show", "network", "cables", "--format", "json"))
    assert [node["node"] for node in nodes if node["slow"]] == [SLOWED], nodes
    assert {node["node"] for node in nodes} == set(HOSTS)
    said = lab.commodel("show", "network", "cables")
    print(said)
    assert re.search(rf"Node {SLOWED} is slower than its like: .*transfer time", said)
    page = (lab.project / "reports" / "cables" / "index.html").read_text()
    assert f"Node {SLOWED} is slower than its like" in page
    assert '<section id="network">' in page
    assert page.index('<section id="network">') < page.index('<section id="summary">')
