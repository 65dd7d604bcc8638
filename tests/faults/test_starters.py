"""A launcher that is killed at a random moment: none of its processes remains, also if it cannot
end them itself."""

import os
import random
import subprocess
import time

import pytest

from tests.processes import arguments, await_end, command_name, family, kill
from tests.starting import environment, mpiexec

ENDLESS = [
    "--sync",
    "barrier",
    "--min-samples",
    "100000000",
    "--max-samples",
    "100000000",
    "--max-seconds",
    "1000",
]
# before which a launcher is killed; ranks then wait for each other, unless the machine is busy
MAX_START_SECONDS = 1.0
MAX_END_SECONDS = 60.0


@pytest.mark.parametrize("times", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_no_rank_outlives_a_launcher_that_is_killed(mpi_programs, tmp_path, times):
    """The starter is mpiexec or, with MPICH, also its proxy, the parent of the ranks. If only the
    proxy is killed, no process ends its ranks: one of them used to wait for the other in MPI_Bcast,
    with a busy core."""
    (tmp_path / "cases").write_text("id,pairs,bytes\na,1,8\n")
    chance = random.Random(times)
    for number in range(times):
        name, value = "COMMODEL_KILL_TEST", f"{os.getpid()}-{number}"
        command = [
            mpiexec(),
            "-n",
            "2",
            mpi_programs / "pairs",
            *ENDLESS,
            "--cases",
            "cases",
            "--out",
            "out",
        ]
        quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment() | {name: value}, **quiet
        ) as starter:
            time.sleep(chance.uniform(0, MAX_START_SECONDS))
            proxies = [
                process for process in family(starter.pid) if "proxy" in command_name(process)
            ]
            kill([chance.choice([starter.pid, *proxies])])
            left = await_end(f"{name}={value}", MAX_END_SECONDS, starter.pid)
            lines = [" ".join(arguments(process)) for process in left]
            kill([*left, starter.pid])  # mpiexec may wait for a proxy that was killed too early
        assert not lines, f"try {number}: {lines}"
