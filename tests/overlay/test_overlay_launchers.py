"""The argv of an overlay network's front-end, by each launcher."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from commodel.errors import UserError
from commodel.platforms.launchers import LAUNCHERS, get_toolchain
from commodel_overlay.starts import make_argv
from tests.platforms.test_launchers import PLATFORMS, job

__all__ = ["job"]
OVERLAYS = {
    name: f"substrate: overlay\n{text}" for name, text in PLATFORMS.items() if name != "simgrid"
}


@pytest.mark.parametrize(
    ("name", "reached", "launch"),
    [
        ("local", [], []),
        (
            "slurm",
            ["/bin/start", "--overlap", "--mpi=none", "-N1", "-n1", "-w", "n1"],
            ["--launch", "/bin/start --overlap --mpi=none -N1 -n1 -w {host}"],
        ),
        (
            "hosts",
            ["ssh", "b", "env", "-uSLURMD_NODENAME", "--chdir=/shared/x"],
            ["--launch", "ssh {host} env -uSLURMD_NODENAME --chdir=/shared/x"],
        ),
    ],
)
def test_a_front_end_is_started_alone_on_the_node_of_rank_0(
    job, monkeypatch, name, reached, launch
):
    monkeypatch.delenv("COMMODEL_AGENT", raising=False)
    launched_job = replace(job(name, nodes=(1, 0), text=OVERLAYS[name]), folder=Path("/shared/x"))
    launched_job = replace(launched_job, names=()) if name == "local" else launched_job
    assert get_toolchain(launched_job.platform) == "overlay"
    command = ["/bin/player", "--out", "a b;c", *launch]
    quoted = map(shlex.quote, command) if name == "hosts" else command  # a shell there reads it
    assert make_argv(LAUNCHERS[name], launched_job) == [*reached, *quoted]


def test_hosts_are_reached_in_plain_folders_only(job):
    launched_job = replace(job("hosts", text=OVERLAYS["hosts"]), folder=Path("/shared/a b"))
    with pytest.raises(UserError, match="found the folder '/shared/a b', wanted a path of"):
        make_argv(LAUNCHERS["hosts"], launched_job)
