"""Reports are written on login nodes that limit processes; simulations run where /tmp forbids the
execution of programs."""

import json
import os
import subprocess
import sys

import pytest

from commodel.platforms.tools import ROOT
from tests.once import made_once
from tests.results.received import make_received

TINY = """
platform: fast-ethernet-32
models: [hockney]
measure: {min_samples: 1, max_samples: 1}
probe_bytes: [1]
matrix:
  - axes: {operation: bcast, algorithm: linear, ranks: 4, bytes: 1}
"""
COMMODEL = [sys.executable, "-m", "commodel"]


def run(limit, *arguments, cwd, **settings):
    command = ["sh", "-c", f'{limit}; exec "$@"', "sh", *COMMODEL, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env=os.environ | settings, timeout=300
    )


@pytest.fixture(scope="session")
def finished(tmp_path_factory, mpi_programs):
    """Return a project in which every stage of an experiment is done."""
    return made_once(tmp_path_factory, "received", make_received)


def test_a_report_is_written_where_nothing_can_be_drawn(finished, tmp_path):
    done = run("ulimit -v 64000000", "report", "--in", "results/e", "--out", tmp_path, cwd=finished)
    assert done.returncode == 0, done.stderr
    assert "static pictures were not drawn: address space is limited to" in done.stderr
    assert done.stderr.count("\n") == 1
    page = (tmp_path / "index.html").read_text()
    assert "Static pictures were not drawn: address space is limited to" in page
    assert "vegaEmbed" in page
    assert (tmp_path / "e.xlsx").stat().st_size > 20_000


def test_pictures_that_were_requested_are_missed_in_one_line(finished, tmp_path):
    done = run(
        "ulimit -v 4000000", "report", "--in", "results/e", "--pictures", tmp_path, cwd=finished
    )
    assert done.returncode == 2
    assert done.stderr.startswith("commodel: address space is limited to")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_report_is_whole_under_other_limits(finished, tmp_path):
    """The limits: 64 open files, umask 077, no terminal type, no home directory."""
    settings = {
        "TERM": "",
        "LANG": "C",
        "LC_ALL": "C",
        "HOME": "/nonexistent",
        "XDG_CACHE_HOME": "/nonexistent",
    }
    done = run(
        "ulimit -n 64; umask 077",
        "report",
        "--in",
        "results/e",
        "--out",
        tmp_path,
        cwd=finished,
        **settings,
    )
    assert done.returncode == 0, done.stderr
    assert "not drawn" not in done.stderr
    assert "<svg" in (tmp_path / "index.html").read_text()


def with_small_tmpdir(options, cwd, *arguments):
    """Return a command that runs in a separate mount namespace, with TMPDIR on a small tmpfs."""
    script = f'mount -t tmpfs -o {options} tmpfs "$0" && cd "{cwd}" && TMPDIR="$0" exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, *arguments]


@pytest.fixture
def disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    tried = subprocess.run(
        with_small_tmpdir("size=64k", tmp_path, folder, "true"), capture_output=True
    )
    if tried.returncode:
        pytest.skip("no disk can be mounted here")
    return folder


def test_a_full_disk_for_temporary_files_does_not_matter_to_a_report(finished, tmp_path, disk):
    filled = ["sh", "-c", 'head -c 64k /dev/zero > "$TMPDIR/all" 2>/dev/null; exec "$@"', "sh"]
    command = [*COMMODEL, "report", "--in", "results/e", "--out", tmp_path / "out"]
    done = subprocess.run(
        list(map(str, with_small_tmpdir("size=64k", finished, disk, *filled, *command))),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["e.xlsx", "index.html"]


def test_simulations_run_where_temporary_files_may_not_be_executed(
    simgrid_programs, tmp_path, disk
):
    (tmp_path / "tiny.yaml").write_text(TINY)
    run("true", "init", tmp_path / "project", cwd=ROOT)
    done = run("true", "plan", tmp_path / "tiny.yaml", "--write", cwd=tmp_path / "project")
    assert done.returncode == 0, done.stderr
    results = tmp_path / "project/results/tiny"
    batch = json.loads((results / "plan.json").read_text())["batches"][0]["name"]
    command = [
        *COMMODEL,
        "measure",
        "--in",
        results / "plan.json",
        "--batch",
        batch,
        "--out",
        results / "raw" / batch,
    ]
    done = subprocess.run(
        list(map(str, with_small_tmpdir("noexec", tmp_path / "project", disk, *command))),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert list((results / "raw" / batch).glob("*.csv"))
