"""Whole campaigns on an overlay network of this machine, and on MRNet, from the experiment file to
the report."""

import json
import os
import signal
import subprocess

import openpyxl
import pandas as pd
import pytest

from commodel.files.tables import COMPARISON, OBSERVATIONS, SUMMARY, read_table
from commodel.platforms.build import build_toolchain
from commodel.platforms.tools import ROOT, find_tool
from tests.processes import command_name, family, still_there
from tests.waiting import until
from tests.workflow.conftest import Project, ending

PLATFORM = (
    "title: processes of this machine over TCP\nlauncher: local\nsubstrate: overlay\nnodes: 1\n"
    "cores: 8\n"
)
SMALL_OVERLAY = """
title: an overlay
platform: overlay-here
models: [tan, logp-tan, logp, loggp]
measure: {precision: 50%, min_samples: 6, max_samples: 12, seconds: 0.05, passes: 2, warmup: 1}
probe_bytes: [64]
matrix:
  - axes: {operation: [reduce, bcast], topology: ["flat:4", "kary:2^2"], bytes: [64, 1KiB]}
  - axes: {operation: ["reduce:mode=synchronous", "reduce:filter=none"], topology: "kary:2^2", bytes: 1KiB}
  - axes: {operation: overlay-throughput, topology: "flat:4", bytes: 1KiB}
  - axes: {operation: overlay-startup, topology: ["flat:4", "kary:2^2"]}
"""


HOSTS = (
    "launcher: hosts\nsubstrate: overlay\nnodes: 2\ncores: 4\nhosts: {names: [127.0.0.1, "
    "127.0.0.2]}\n"
)
FEW = """
platform: overlay-there
models: [pram]
measure: {precision: 50%, min_samples: 6, max_samples: 12, seconds: 0.05, passes: 1, warmup: 1}
matrix:
  - axes: {operation: [reduce, bcast, "reduce:mode=synchronous"], topology: "kary:2^2", layout: "cyclic:4", bytes: 1KiB}
"""


@pytest.fixture
def project(tmp_path):
    yield from ending(Project(tmp_path))


def test_an_overlay_on_hosts_is_started_by_the_agent(project, overlay_programs, monkeypatch):
    """The agent takes the place of ssh: it logs the host and starts the command on this machine."""
    agent = project.folder / "agent"
    agent.write_text(
        f'#!/bin/sh\necho "$1" >>{project.folder}/asked\nshift\ncd /\nexec sh -c "$*"\n'
    )
    agent.chmod(0o755)
    monkeypatch.setenv("COMMODEL_AGENT", str(agent))
    (project.folder / "params/platforms/overlay-there.yaml").write_text(HOSTS)
    project.experiment("hosts", FEW)
    rows = read_table(project.compare("hosts") / "comparison.csv", COMPARISON)
    assert rows["measured"].gt(0).all()
    asked = (project.folder / "asked").read_text().split()
    # The front-end on the first host; dealt in turn, of the other six processes three on each, in
    # one network.
    assert asked[0] == "127.0.0.1"
    assert sorted(asked[1:]) == ["127.0.0.1"] * 3 + ["127.0.0.2"] * 3


def test_an_overlay_campaign_runs_from_experiment_to_report(project, overlay_programs):
    (project.folder / "params/platforms/overlay-here.yaml").write_text(PLATFORM)
    project.experiment("overlay", SMALL_OVERLAY)
    results = project.compare("overlay")
    rows = read_table(results / "comparison.csv", COMPARISON)
    once = rows.drop_duplicates("point")
    assert len(once) == 13
    assert once["measured"].gt(0).all()
    assert set(once["algorithm"].fillna("")) == {""}  # no library beside them
    measured_only = once["operation"].isin(["overlay-startup", "reduce:filter=none"])
    assert set(once.loc[measured_only, "validity"]) == {"measured only: no schedule describes it"}
    assert set(once.loc[measured_only, "model"].fillna("")) == {""}
    tan = rows[(rows["model"] == "tan") & (rows["bytes"] == 1024)]
    assert len(tan) == 6
    assert tan["seconds"].notna().all()
    assert set(rows.loc[rows["model"] == "loggp", "validity"]) == {
        "no fit: no measurements of probe 'prtt'"
    }
    assert rows.loc[rows["model"] == "logp", "seconds"].gt(0).all()
    assert set(once["processors"]) == {os.cpu_count()}
    assert set(once["processes"]) == {5, 7}
    observations = read_table(results / "observations.csv", OBSERVATIONS)
    counted = observations[observations["name"] != "pingpong"]
    assert counted["cpu"].gt(0).all()
    summary = read_table(results / "summary.csv", SUMMARY)
    assert summary.loc[summary["name"] == "overlay-startup", "median"].between(1e-4, 10).all()
    project.verb("report", "--in", "results/overlay", "--out", "reports/overlay")
    book = openpyxl.load_workbook(
        project.folder / "reports" / "overlay" / "overlay.xlsx", read_only=True
    )
    cells = {cell for row in book["Raw summary"].iter_rows(values_only=True) for cell in row}
    assert {"processor time of a wave [µs]", "overlay-startup"} <= cells
    compared = {cell for row in book["Comparison"].iter_rows(values_only=True) for cell in row}
    assert {"measured only: no schedule describes it", "stream of reduce"} <= compared
    assert "overlay-startup" in (project.folder / "reports/overlay/index.html").read_text(
        encoding="utf-8"
    )
    assert pd.notna(rows["mu"]).any()


with_mrnet = pytest.mark.skipif(
    find_tool("mrnet_commnode") is None, reason="no MRNet here: its bin is not on PATH"
)


@with_mrnet
def test_mrnet_is_measured_by_the_same_benchmark(project):
    program = build_toolchain(ROOT, "mrnet") / "mrnet-bench"
    described = json.loads(
        subprocess.run([program, "--describe"], capture_output=True, check=True).stdout
    )
    assert (described["name"], described["mpi"]) == ("mrnet-bench", "MRNet")
    (project.folder / "params/platforms/overlay-there.yaml").write_text(
        PLATFORM.replace("overlay", "mrnet")
    )
    matrix = (
        "\nmatrix:\n  - axes: {operation: [reduce, bcast, overlay-throughput], topology: "
        '"kary:2^2", bytes: 1KiB}\n'
    )
    project.experiment("mrnet", FEW.partition("\nmatrix:")[0] + matrix)
    rows = read_table(project.compare("mrnet") / "comparison.csv", COMPARISON)
    assert len(rows) == 3
    assert rows["measured"].gt(0).all()


@with_mrnet
@pytest.mark.parametrize("hung", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_mrnet_process_outlives_the_front_end(tmp_path, hung):
    """This also holds if the start hangs; the time limit is 60 s."""
    (tmp_path / "tree.top").write_text(
        "localhost:0 => localhost:1 localhost:2 ;\nlocalhost:1 => localhost:3 ;\n"
    )
    (tmp_path / "cases.csv").write_text(
        "id,operation,topology,bytes,filter,compute,mode,period\na,reduce,tree.top,8,sum,0,waves,0\n"
    )
    options = ["--max-seconds", "600", "--min-samples", "10000000", "--max-samples", "10000000"]
    command = [
        build_toolchain(ROOT, "mrnet") / "mrnet-bench",
        "--cases",
        "cases.csv",
        "--out",
        "out",
        *options,
    ]
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    if hung:
        inner = until(
            lambda: [
                number for number in family(process.pid) if command_name(number) == "mrnet_commnode"
            ]
        )
        os.kill(inner[0], signal.SIGSTOP)
    else:
        until(lambda: len(family(process.pid)) == 4)
    processes = family(process.pid)
    if not hung:
        process.terminate()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 3
    assert ("has not started or ended within 60 s" in said) == hung
    assert not still_there(processes)
