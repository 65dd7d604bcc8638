"""Hosts reached by an agent on a real network: placement, command lines, both MPIs, and network
properties."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commodel.advice.gather_windows import gather_bounds
from commodel.files.parameter_sets import read_parameters
from commodel.models.parameter_sets import read_set
from tests.labs.network_lab import HERE, HOSTS, network

pytestmark = pytest.mark.lab

TWO_CORES = """
launcher: hosts
nodes: 8
cores: 2
hosts: {{names: [h0, h1, h2, h3, h4, h5, h6, h7], mpi: {mpi}}}
"""
PLACES = """
platform: {platform}
models: [hockney]
library: false
measure: {{sync: barrier, precision: 20%, min_samples: 6, max_samples: 6, seconds: 0.3, passes: 1}}
probe_bytes: [1, 1024]
matrix:
  - axes: {{operation: bcast, algorithm: linear, ranks: 6, layout: ["block:2", "cyclic:2", "random:2@5"], bytes: 8}}
"""
ONE_A_HOST = PLACES.format(platform="netns-8").replace(':2"', ':1"').replace(":2@", ":1@")
TRANSFERS = """
platform: netns-8
models: [hockney, cluster]
library: false
measure: {sync: barrier, precision: 10%, min_samples: 8, max_samples: 40, seconds: 0.6, passes: 1}
probe_bytes: [64, 1KiB, 256KiB]
matrix:
  - axes: {operation: gather, algorithm: linear, ranks: [2, 8], bytes: 256KiB}
"""
WINDOWED = """
platform: netns-8
models: [hockney]
library: false
measure: {{sync: barrier, precision: 5%, min_samples: 8, max_samples: 15, seconds: 6, passes: 2}}
probe_bytes: 1KiB
matrix:
  - axes: {{operation: gather, algorithm: [linear, "{windowed}"], ranks: 8, bytes: 256KiB}}
"""


def summary(lab, experiment, kind):
    with (lab.project / "results" / experiment / "summary.csv").open(newline="") as stream:
        return [row for row in csv.DictReader(stream) if row["kind"] == kind]


def seconds(rows, words, what="median"):
    """Return the time of the single row whose name and settings have these words. The fastest
    sample (`min`) shows the network's limit, even on a busy machine."""
    (row,) = (row for row in rows if set(words.split()) <= {row["name"], *row["settings"].split()})
    return float(row[what])


def test_command_lines_tell_no_environment(lab):
    """Open MPI passes its own settings on command lines; other environment variables must not be
    visible there."""
    lab.write("experiments", "quiet", ONE_A_HOST)
    process = lab.head(
        sys.executable, "-m", "commodel", "run", "quiet", "-q", ACCOUNT_TOKEN="sesame-open"
    )
    seen = set()
    while process.poll() is None:
        seen |= set(lab.processes().values())
        time.sleep(0.02)
    said = process.stdout.read()
    assert process.returncode == 0, said
    assert any("orted" in line for line in seen)
    assert any("player" in line for line in seen)
    assert not [line for line in seen if "sesame-open" in line]


def test_an_agent_that_reaches_another_host_is_found_out(lab):
    """The agent connects to h5 instead of h1; no sample is taken."""
    wrong_host = lab.folder / "astray"
    wrong_host.write_text(
        f'#!/bin/sh\n[ "$1" != h1 ] || {{ shift; set -- h5 "$@"; }}\nexec {lab.agent} "$@"\n'
    )
    wrong_host.chmod(0o755)
    lab.write("experiments", "astray", ONE_A_HOST)
    said = lab.commodel("run", "astray", "-q", code=1, COMMODEL_AGENT=str(wrong_host))
    assert re.search(r"rank \d should be on .*h1.*h5", said), said
    assert not list(lab.project.glob("results/astray/raw/*/????????????.csv"))


def test_an_agent_that_is_not_there_is_named(lab):
    lab.write("experiments", "unreached", ONE_A_HOST)
    said = lab.commodel("run", "unreached", "-q", code=1, COMMODEL_AGENT="no-such-agent")
    assert "COMMODEL_AGENT: found no program 'no-such-agent'" in said
    assert "Traceback" not in said


def test_one_sender_gets_the_link_rate_and_seven_senders_share_the_link(lab):
    """If the switch drops packets of a plain gather, a gather with the fitted window is not slower
    (2 % tolerance)."""
    lab.write("experiments", "transfers", TRANSFERS)
    lab.commodel("run", "transfers", "-q")
    half = seconds(summary(lab, "transfers", "probe"), "pingpong bytes=262144", "min") / 2
    rate = 8 * 262144 / half
    print(f"ping-pong of 256 KiB: {rate / 1e6:.1f} Mbit/s")
    assert 85e6 < rate < 97e6  # of 100, headers take 4, and what hosts do between packets up to 10
    points = summary(lab, "transfers", "point")
    single, seven = (
        seconds(points, f"gather ranks={ranks} bytes=262144", "min") for ranks in (2, 8)
    )
    print(
        f"one sender {single * 1e3:.2f} ms, seven {seven * 1e3:.2f} ms: {seven / single:.2f} times as long"
    )
    assert seven > 6.9 * single

    fitted = lab.project / "results/transfers/fitted/netns-8/cluster.yaml"
    window = gather_bounds(read_set(fitted), 8, 256 * 1024)
    assert 1 <= int(window["window"]) < 7
    lab.write("experiments", "windowed", WINDOWED.format(windowed=window["algorithm"]))
    before = lab.drops("h0"), sum(lab.timeouts(host) for host in HOSTS)
    lab.commodel("run", "windowed", "-q")
    after = lab.drops("h0"), sum(lab.timeouts(host) for host in HOSTS)
    points = summary(lab, "windowed", "point")
    plain, windowed = (
        seconds(points, f"alternative={choice}") for choice in ("linear", window["algorithm"])
    )
    print(
        f"plain {plain * 1e3:.1f} ms, {window['algorithm']} {windowed * 1e3:.1f} ms; "
        f"{after[0] - before[0]} packets dropped, {after[1] - before[1]} timeouts"
    )
    assert after[0] > before[0]
    assert windowed < 1.02 * plain


FLOOD = """
platform: netns-8
models: [cluster]
library: false
measure: {sync: barrier, precision: 5%, min_samples: 8, max_samples: 30, seconds: 1, passes: 2}
probe_bytes: [64, 1KiB]
matrix:
  - axes: {operation: gather, algorithm: linear, ranks: 8, bytes: 1KiB}
"""
FRAME = 1514  # B


@pytest.mark.parametrize("queue", [16384, 32768, 131072])
def test_the_buffer_of_a_port_is_found_by_times_of_arrival(tmp_path, queue):
    """The queue is set in bytes; the fitted buffer is in packets."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    with network(tmp_path, queue) as lab:
        lab.write("experiments", "flood", FLOOD)
        lab.commodel("run", "flood", "-q")
        buffer = read_parameters(lab.project / "results/flood/fitted/netns-8/cluster.yaml").values[
            "B_L"
        ]
    print(
        f"{queue / FRAME:.2f} frames: found {buffer.value:.2f} [{buffer.low:.2f}, {buffer.high:.2f}]"
    )
    assert buffer.low <= queue / FRAME <= buffer.high


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_every_rank_runs_where_the_plan_says(lab, mpi):
    """Layouts are block, cyclic and random, with two ranks a host. The programs are compiled again
    for each MPI."""
    lab.write("platforms", f"two-{mpi}", TWO_CORES.format(mpi=mpi))
    lab.write("experiments", f"places-{mpi}", PLACES.format(platform=f"two-{mpi}"))
    # Ranks of MPICH do not give way to each other while they wait.
    mpich = {
        "LAB_PRIORITY": "",
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin:/usr/sbin:/sbin",
    }
    lab.commodel("run", f"places-{mpi}", "-q", **({} if mpi == "openmpi" else mpich))
    results = lab.project / "results" / f"places-{mpi}"
    plan = json.loads((results / "plan.json").read_text())
    layouts = {point["layout"] for batch in plan["batches"] for point in batch["points"]}
    assert len(layouts) == 3
    hosts_of = {}
    for file in results.glob("raw/*/player-6r-*.json"):
        meta = json.loads(file.read_text())
        assert ("Open MPI" if mpi == "openmpi" else "MPICH") in json.dumps(meta)
        hosts_of[file.stem] = meta["hosts"]
    assert hosts_of["player-6r-block2"] == ["h0", "h0", "h1", "h1", "h2", "h2"]
    assert hosts_of["player-6r-cyclic2"] == ["h0", "h1", "h2", "h0", "h1", "h2"]
    (random,) = (hosts for name, hosts in hosts_of.items() if "random" in name)
    assert sorted(random) != random
    assert {random.count(host) for host in random} == {2}


def test_a_lab_network_leaves_no_processes_files_or_interfaces_behind(tmp_path):
    """This holds for a lab taken down while a program runs on it, and for a failed start."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")

    def interfaces():
        return sorted(path.name for path in Path("/sys/class/net").iterdir())

    def script(*arguments):
        return subprocess.run(
            [HERE / "network.sh", *arguments], capture_output=True, text=True, check=False
        )

    def command_line(pid):
        path = Path(f"/proc/{pid}/cmdline")
        return path.read_text() if path.exists() else ""

    before, folder = interfaces(), tmp_path / "hosts"
    assert script("up", folder).returncode == 0
    holders = [int(path.read_text()) for path in folder.glob("*.pid")]
    assert len(holders) == len(HOSTS) + 2
    assert all("commodel-lab" in command_line(pid) for pid in holders)
    with subprocess.Popen([folder / "agent", "h3", "sleep", "1000"]) as left:
        assert interfaces() == before
        assert script("down", folder).returncode == 0
        assert left.wait(10) == -signal.SIGKILL
    assert not [pid for pid in holders if "commodel-lab" in command_line(pid)]
    assert not list(folder.iterdir())
    failed = script("up", folder, "no-number")
    assert failed.returncode != 0
    assert not list(folder.iterdir())
    assert interfaces() == before


RATES = """
model: hockney
platform: netns-8
source: round numbers of 100 Mbit/s
parameters:
  alpha.a: {value: 1.5e-4, unit: s, low: 1.5e-4, high: 1.5e-4}
  beta.a: {value: 8.5e-8, unit: s/B, low: 8.5e-8, high: 8.5e-8}
  gamma: {value: 0, unit: s/B, low: 0, high: 0}
"""


def test_open_mpi_rules_speed_up_bcast_and_are_dropped_if_tuned_is_disabled(lab):
    """Its default broadcast of 96 KiB cuts nothing into segments; without `tuned` rules change
    nothing."""
    (lab.project / "rates.yaml").write_text(RATES)
    requested = (
        "tune",
        "--platform",
        "netns-8",
        "--params",
        "rates.yaml",
        "--operation",
        "bcast",
        "--ranks",
        8,
    )
    requested += ("--bytes", "64KiB", "--sync", "barrier", "--minutes", 0.5, "--pairs", 4, "-q")
    said = lab.commodel(*requested)
    assert "Rules for" not in said
    rules = (lab.project / "results/tune-netns-8/rules.conf").read_text()
    assert re.search(r"^65536 [1-9] 0 \d+ # ", rules, re.MULTILINE), said
    with (lab.project / "results/tune-netns-8/gains.csv").open(newline="") as stream:
        (validation,) = (row for row in csv.DictReader(stream) if row["stage"] == "validation")
    assert int(validation["bytes"]) == 98304
    assert float(validation["gain"]) > 1.1

    said = lab.commodel(*requested, "--out", "results/ignored", OMPI_MCA_coll="^tuned")
    assert "Rules for bcast change nothing" in said
    assert not (lab.project / "results/ignored/rules.conf").exists()
