"""overlay-bench: output files, stop reasons, refusals, verification of data, launch of processes,
clocks, and no process left at the end."""

import csv
import json
import os
import subprocess
import sys
import time

import pytest

from commodel_overlay.process_counts import read_counts
from tests.overlay.conftest import CASE_COLUMNS
from tests.processes import family, kill, still_there
from tests.waiting import until

QUICK = ("--max-seconds", "0.05", "--min-samples", "3", "--max-samples", "4", "--warmup", "1")


@pytest.fixture
def measured(bench, tmp_path):
    """measured(rows, *options): return the samples of each case by id; every case must have
    samples."""

    def measure(rows, *options):
        process = bench(rows, *options)
        out, err = process.communicate(timeout=120)
        assert (process.returncode, out) == (0, ""), err
        files = {
            path.stem: path for path in (tmp_path / "out").iterdir() if path.suffix != ".levels"
        }
        # and nothing half done, nor `.now`
        assert set(files) == {row.partition(",")[0] for row in rows}
        return {case: list(csv.DictReader(path.open())) for case, path in files.items()}

    return measure


@pytest.mark.parametrize("topology", ["flat", "unequal", "chain"])
@pytest.mark.parametrize("size", [0, 8, 1029])
def test_every_filter_is_verified_in_the_first_wave_and_measured(measured, topology, size):
    filters = ("sum", "min", "max", "average", "none", "concat")
    rows = [f"{name},reduce,{topology}.top,{size},{name},0,waves,0,1" for name in filters]
    samples = measured([*rows, f"bcast,bcast,{topology}.top,{size},sum,0,waves,0,1"], *QUICK)
    for rows in samples.values():
        assert all(float(row["seconds"]) > 0 and row["valid"] == "1" for row in rows)
        assert [row["sample"] for row in rows] == [str(number) for number in range(len(rows))]


def test_modes_streams_start_up_and_the_layer_below(measured):
    samples = measured(
        [
            "trip,reduce,unequal.top,1024,sum,0,round-trip,0,1",
            "half,reduce,unequal.top,1024,sum,0,waves,0,1",
            "common,reduce,unequal.top,1024,sum,0,synchronous,0,1",
            "timed,reduce,unequal.top,1024,sum,0,timed,0.003,1",
            "stream,reduce,unequal.top,1024,sum,0,waves,0,30",
            "casts,bcast,unequal.top,1024,sum,0,waves,0,30",
            "busy,reduce,unequal.top,8,sum,0.01,synchronous,0,1",
            "startup,startup,unequal.top,0,sum,0,waves,0,1",
            "pingpong,pingpong,flat.top,1024,sum,0,waves,0,1",
        ],
        *QUICK,
    )
    header = ["id", "sample", "seconds", "skew", "valid", "stop"]
    assert list(samples["pingpong"][0]) == header
    assert list(samples["half"][0]) == [*header, "cpu"]
    assert list(samples["stream"][0]) == [*header, "cpu", "first", "last"]
    assert samples["stream"][0]["first"] == samples["half"][0]["skew"] == ""
    assert all(float(row["skew"]) >= 0 for case in ("common", "timed") for row in samples[case])
    assert all(
        float(row["cpu"]) > 0
        for case, rows in samples.items()
        if case != "pingpong"
        for row in rows
    )
    # at two nodes, 10 ms each
    assert all(float(row["seconds"]) > 0.02 for row in samples["busy"] if row["valid"] == "1")
    assert {row["stop"] for rows in samples.values() for row in rows} <= {
        "precision",
        "samples",
        "time",
    }


def test_processes_at_each_depth_are_counted(measured, tmp_path):
    samples = measured(
        ["sum,reduce,unequal.top,8,sum,0,waves,0,1", "startup,startup,flat.top,0,sum,0,waves,0,1"],
        *QUICK,
    )
    assert not (tmp_path / "out" / "startup.levels").exists()  # its trees end with each sample
    counts = read_counts(tmp_path / "out" / "sum.levels").set_index("depth")
    waves = counts.waves[0]
    assert waves >= len(samples["sum"])
    assert counts.packets_up[0] == waves
    assert counts.bytes_down[0] > 8 * waves
    # each hands on one packet for each wave
    assert (counts.packets_up[1:] == waves * counts.processes[1:]).all()
    assert (counts.filter_seconds[counts.waves > 0] > 0).all()
    assert (counts.round_trip[1:] > 0).all()


def test_skews_that_were_set_are_found_by_either_method(measured):
    rows = [
        f"{mode},skew,unequal.top,0,sum,0,{mode},0,1"
        for mode in ("tree", "direct", "tree-error", "direct-error")
    ]
    samples = measured(rows, *QUICK)
    for mode in ("tree-error", "direct-error"):
        errors = [float(row["seconds"]) for row in samples[mode]]
        assert all(0 < error < 5e-3 for error in errors)  # of 10 ms: on a busy machine too
    assert all(float(row["seconds"]) > 0 for mode in ("tree", "direct") for row in samples[mode])


@pytest.mark.parametrize("size", [0, 1, 20_000])
@pytest.mark.parametrize("topology", ["flat", "unequal", "chain"])
def test_class_data_from_one_back_end_or_from_all_are_verified_and_measured(
    measured, topology, size
):
    """The front-end verifies the data and the number of classes (one class if the data have no
    bytes)."""
    rows = [f"{mode},classes,{topology}.top,{size},sum,0,{mode},0,1" for mode in ("binned", "all")]
    for case in measured(rows, *QUICK).values():
        assert all(float(row["seconds"]) > 0 and float(row["cpu"]) >= 0 for row in case)


def test_overlay_bench_stops_at_the_requested_precision(measured):
    row = "{},reduce,flat.top,8,sum,0,waves,0,1"
    rough = measured(
        [row.format("rough")], "--precision", "100", "--min-samples", "7", "--max-seconds", "60"
    )
    assert [entry["stop"] for entry in rough["rough"]] == ["precision"] * len(rough["rough"])
    assert 7 <= len(rough["rough"]) <= 20


def test_overlay_bench_describes_the_columns_and_records_metadata(
    bench, overlay_programs, tmp_path
):
    program = [overlay_programs / "overlay-bench", "--describe"]
    about = json.loads(subprocess.run(program, capture_output=True, text=True, check=True).stdout)
    assert [column["name"] for column in about["columns"]] == CASE_COLUMNS.split(",")[1:-1]
    assert about["streams"]
    assert (
        bench(["a,reduce,flat.top,8,sum,0,waves,0,1"], "--meta", "meta.json", *QUICK).wait(60) == 0
    )
    meta = json.loads((tmp_path / "meta.json").read_text())
    assert meta["clock_uncertainty"] == 0
    assert meta["mpi"].startswith("none")
    assert len(meta["hosts"]) == 1
    assert meta["processors"] == os.cpu_count()


def test_a_case_with_a_result_file_is_not_measured_again(measured, bench, tmp_path):
    row = "a,reduce,flat.top,8,sum,0,waves,0,1"
    measured([row], *QUICK)
    before = (tmp_path / "out" / "a.csv").stat().st_mtime_ns
    process = bench([row], *QUICK)
    assert process.communicate(timeout=60)[1] == ""
    assert (tmp_path / "out" / "a.csv").stat().st_mtime_ns == before


BROKEN = {
    "operation": (
        "a,gather,flat.top,8,sum,0,waves,0,1",
        "cases.csv:2: column operation: found 'gather'",
    ),
    "no tree": ("a,reduce,absent.top,8,sum,0,waves,0,1", "absent.top"),
    "a tree that is none": ("a,reduce,cases.csv,8,sum,0,waves,0,1", "column topology"),
    "filter": (
        "a,reduce,flat.top,8,./own.so,0,waves,0,1",
        "column filter: found './own.so', wanted none, min",
    ),
    "mode": ("a,reduce,flat.top,8,sum,0,fast,0,1", "column mode: found 'fast'"),
    "mode of another": ("a,classes,flat.top,8,sum,0,waves,0,1", "column mode: found 'waves'"),
    "too large": ("a,reduce,flat.top,67108865,sum,0,waves,0,1", "at most 67108864 bytes"),
    "below 0": ("a,reduce,flat.top,-1,sum,0,waves,0,1", "a whole number of bytes from 0"),
    "no period": ("a,reduce,flat.top,8,sum,0,timed,0,1", "column period"),
    "stream of what": ("a,reduce,flat.top,8,sum,0,synchronous,0,2", "column waves"),
    "stream of start-ups": ("a,startup,flat.top,0,sum,0,waves,0,2", "column waves"),
    "a long filter": ("a,reduce,flat.top,8,sum,3600,waves,0,1", "at most 1 s"),
    "id as path": ("../a,reduce,flat.top,8,sum,0,waves,0,1", "column id"),
    "id twice": (
        "a,reduce,flat.top,8,sum,0,waves,0,1\na,reduce,flat.top,9,sum,0,waves,0,1",
        "line 2",
    ),
}


@pytest.mark.parametrize("mistake", BROKEN)
def test_a_wrong_case_is_refused_in_one_line_before_anything_is_started(bench, tmp_path, mistake):
    row, wanted = BROKEN[mistake]
    good = "good,reduce,flat.top,8,sum,0,waves,0,1"
    process = bench([*row.split("\n"), good], *QUICK)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2, err
    assert len(err.splitlines()) == 1
    assert err.startswith("error: ")
    assert wanted in err
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--launch", "ssh host"], "found no {host} in it"),
        (["--launch"], "--launch: found no value"),
        (["--placement", "x"], "--placement: this program has no ranks"),
        (["--fast", "1"], "unknown option '--fast'"),
    ],
)
def test_a_wrong_option_is_refused_in_one_line(bench, options, wanted):
    _, err = (process := bench(["a,reduce,flat.top,8,sum,0,waves,0,1"], *options)).communicate(
        timeout=60
    )
    assert process.returncode == 2
    assert wanted in err
    assert len(err.splitlines()) == 1


LONG = ("--min-samples", "1000000", "--max-samples", "1000000", "--max-seconds", "600")


def test_clocks_can_only_be_set_where_all_processes_are_forked(bench):
    process = bench(["a,skew,flat.top,0,sum,0,tree,0,1"], "--launch", "ssh {host}")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "column operation: found 'skew', wanted one that runs on other machines, too" in err


def running(process, tmp_path, count):
    """Return all processes of overlay-bench, once the network is up and samples are taken."""
    until(lambda: (tmp_path / "out" / ".now").exists() and len(family(process.pid)) == count)
    time.sleep(0.2)
    return family(process.pid)


def test_a_back_end_that_dies_ends_the_case_and_all_processes(bench, tmp_path):
    process = bench(["a,reduce,unequal.top,8,sum,0,waves,0,1"], *LONG)
    processes = running(process, tmp_path, 7)
    kill(processes[-1:])
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert any(".c:" in line for line in err.splitlines())
    assert (tmp_path / "out" / ".now").read_text() == "a\n"
    assert not (tmp_path / "out" / "a.csv").exists()
    assert not still_there(processes)


def test_all_processes_end_when_the_front_end_is_killed(bench, tmp_path):
    process = bench(["a,reduce,unequal.top,8,sum,0,waves,0,1"], *LONG)
    processes = running(process, tmp_path, 7)
    kill([process.pid])
    process.communicate(timeout=60)
    assert not still_there(processes)


# Stands between a process and its parent, whose port it replaces in what that boots from. Only the
# packets that compare clocks are slow, in both directions.
RELAY = """
import os, socket, struct, subprocess, sys, threading, time

packet = sys.stdin.buffer.raw.read(1 << 16)
start = packet.index(b"127.0.0.1 ") + 10
end = packet.index(b" ", start)
parent = socket.create_connection(("127.0.0.1", int(packet[start:end])))
listener = socket.create_server(("127.0.0.1", 0))
for _ in range(1000):  # one with as many digits
    if len(port := str(listener.getsockname()[1]).encode()) == end - start:
        break
    listener = socket.create_server(("127.0.0.1", 0))
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)
child.stdin.write(packet[:start] + port + packet[end:])
child.stdin.close()
own, _ = listener.accept()


def hand_on(source, target):
    source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while taken := source.recv(1 << 16):
        if taken[4:5] in (b"\\x13", b"\\x14"):
            time.sleep(0.02)
        target.sendall(taken)
    target.shutdown(socket.SHUT_WR)


threading.Thread(target=hand_on, args=(own, parent), daemon=True).start()
hand_on(parent, own)
sys.exit(child.wait())
"""


def test_processes_are_started_by_a_command_where_one_is_named(bench, tmp_path):
    """The command represents a launch agent: its arguments are a host and a command, which runs on
    this machine here."""
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\necho "$1" >>asked\nshift\nexec "$@"\n')
    agent.chmod(0o755)
    (tmp_path / "here.top").write_text("127.0.0.1:0 => 127.0.0.1:1 127.0.0.1:2 ;\n")
    rows = ["a,reduce,here.top,1024,sum,0,synchronous,0,1", "b,bcast,here.top,64,sum,0,waves,0,1"]
    options = ("--launch", f"{agent} {{host}}", "--meta", "meta.json", *QUICK)
    process = bench([*rows, "c,pingpong,here.top,64,sum,0,waves,0,1"], *options)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert (tmp_path / "asked").read_text() == "127.0.0.1\n" * 2
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "a.csv",
        "a.levels",
        "b.csv",
        "b.levels",
        "c.csv",
    }
    uncertainty = json.loads((tmp_path / "meta.json").read_text())["clock_uncertainty"]
    assert 0 < uncertainty < 0.1
    for case in "ab":  # from one clock to another's
        samples = list(csv.DictReader((tmp_path / "out" / f"{case}.csv").open()))
        assert any(row["valid"] == "1" for row in samples)
        assert all(float(row["seconds"]) >= 0 for row in samples if row["valid"] == "1")


def test_times_that_the_clocks_do_not_tell_are_marked(bench, tmp_path):
    (tmp_path / "relay.py").write_text(RELAY)
    agent = tmp_path / "agent"
    agent.write_text(f'#!/bin/sh\nshift\nexec {sys.executable} {tmp_path / "relay.py"} "$@"\n')
    agent.chmod(0o755)
    (tmp_path / "here.top").write_text("127.0.0.1:0 => 127.0.0.1:1 127.0.0.1:2 ;\n")
    options = ("--launch", f"{agent} {{host}}", "--meta", "meta.json", *QUICK)
    process = bench(["a,reduce,here.top,8,sum,0,synchronous,0,1"], *options)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    uncertainty = json.loads((tmp_path / "meta.json").read_text())["clock_uncertainty"]
    assert 0.02 <= uncertainty < 1
    # on a busy machine one may take longer
    samples = list(csv.DictReader((tmp_path / "out" / "a.csv").open()))
    assert {row["valid"] for row in samples if float(row["seconds"]) < uncertainty} == {"0"}


def test_a_back_end_on_another_host_than_planned_is_refused(bench, tmp_path):
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    agent.chmod(0o755)
    (tmp_path / "there.top").write_text("127.0.0.1:0 => 127.0.0.1:1 elsewhere:0 ;\n")
    process = bench(
        ["a,reduce,there.top,8,sum,0,waves,0,1"], "--launch", f"{agent} {{host}}", *QUICK
    )
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "back-end 1 should be on elsewhere, but is on " in err
