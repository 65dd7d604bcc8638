"""Values of SimGrid's settings: what is refused before a run is what SimGrid itself would end with, or misread."""

import subprocess

import pytest

from commodel.errors import UserError
from commodel.platforms.simulated_networks import check_value
from tests.platforms.test_simnetwork import CLUSTER, HEAD

TAKEN = [
    ("smpi/os", "0:6e-6:0"),
    ("smpi/os", "0:6us:0;1500:4e-5:2e-9"),
    ("smpi/lat-factor", "0:1;65536:1.2"),
    ("smpi/wtime", "1e-6"),
    ("smpi/async-small-thresh", "65536"),
    ("smpi/host-speed", "1Gf"),
    ("smpi/host-speed", "1.5gigaflops"),
    ("smpi/simulate-computation", "no"),
    ("smpi/bcast", "binomial_tree"),
    ("network/bandwidth-factor", "0.97"),
    ("maxmin/concurrency-limit", "-1"),
    ("contexts/stack-size", "8192"),
]
FATAL = [
    ("smpi/os", "6us"),
    ("smpi/os", "0:x:0"),
    ("smpi/os", "0:"),
    ("smpi/bw-factor", "0:90%"),
    ("smpi/wtime", "1us"),
    ("smpi/async-small-thresh", "64KiB"),
    ("smpi/host-speed", "1GHz"),
    ("smpi/host-speed", "1Gflops"),
    ("smpi/simulate-computation", "maybe"),
    ("network/loopback-bw", "1GBps"),
    ("maxmin/concurrency-limit", "x"),
    ("contexts/stack-size", "8MiB"),
]
MISREAD = [("smpi/os", "1KiB:6e-6:0"), ("smpi/os", "1e3:6e-6:0"), ("smpi/os", "-1:6e-6:0"), ("smpi/wtime", "-1")]


@pytest.mark.parametrize(("name", "value"), TAKEN)
def test_what_is_taken(name, value):
    check_value(name, value)


@pytest.mark.parametrize(("name", "value"), FATAL + MISREAD)
def test_what_is_refused(name, value):
    with pytest.raises(UserError, match=f"^found '{value}', wanted "):
        check_value(name, value)


PROGRAM = """#include <mpi.h>
int main(int argc, char **argv) {
  int rank, word = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank) MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  return MPI_Finalize();
}
"""


@pytest.mark.slow
def test_simgrid_agrees(simgrid_programs, tmp_path):
    for name, text in (("net.xml", HEAD + CLUSTER), ("hosts", "node-0\nnode-1\n"), ("one.c", PROGRAM)):
        (tmp_path / name).write_text(text)
    subprocess.run(["smpicc", "one.c", "-o", "one"], cwd=tmp_path, check=True)
    start = ["smpirun", "-np", "2", "-platform", "net.xml", "-hostfile", "hosts"]
    for name, value in TAKEN + FATAL:
        run = subprocess.run([*start, f"--cfg={name}:{value}", "./one"], cwd=tmp_path, capture_output=True, check=False)
        assert (run.returncode == 0) == ((name, value) in TAKEN), (name, value)
