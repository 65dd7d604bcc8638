"""Numbers of ranks, nodes and ranks per node in file names and in the output of launchers: read if
they can mean nothing else, or nearly so."""

from pathlib import Path

import pytest

from commodel.files.rank_counts import (
    NamedRanks,
    RankCounts,
    read_job_specification,
    read_placement_in_command,
    read_placement_in_header,
    read_placement_in_name,
    read_ranks_in_name,
)

STATED = {
    "np64.txt": 64,
    "osu_bcast_np64.out": 64,
    "osu_bcast-64-ranks.txt": 64,
    "bcast.64procs.log": 64,
    "osu_allreduce_ntasks=128.txt": 128,
    "n4_ppn8.txt": 32,
    "osu_bcast_N4-ppn16.txt": 64,
    "osu_bcast_4nodes_16ppn.csv": 64,
    "4n-4ppn": 16,
    "8-ranks-per-node_4nodes.txt": 32,
    "osu_bcast_v7.4_np16_1M.txt": 16,
    "osu_bcast_p512.out": 512,
    "osu_allreduce-32n-56ppn.out": 1792,
}
ASSUMED = {
    "a_32.txt": 32,
    "osu_allreduce_64.txt": 64,
    "osu_bcast.128.out": 128,
    "bcast-256.txt.gz": 256,
    "osu_allreduce_4x16.txt": 64,
    "mvapich2-2.3.7_osu_bcast_64": 64,
    "bcast_64KiB_16.txt": 16,
    "osu_bcast_4nodes_16ranks.txt": 16,
}
UNKNOWN = [
    "osu_bcast.txt",
    "osu_bcast_1.txt",  # no collective has one rank
    "osu_allreduce-128-cpu.txt",  # nodes of a cloud
    "osu_bcast_n64.txt",  # nodes for srun, ranks for mpirun
    "osu_bcast_4nodes.txt",
    "osu_bcast_4nodes_128.txt",
    "osu_bcast_v7.txt",
    "osu-7.4-bcast.txt",
    "openmpi-5.0.3.txt",
    "osu_bcast_64KiB.txt",
    "osu_bcast_64_bytes.txt",
    "osu_bcast_size_1024.txt",
    "osu_bcast_run_2.txt",
    "osu_bcast-run3.txt",
    "slurm-48213.out",
    "osu_bcast_48213377.txt",
    "osu_bcast_2024-05-01.txt",
    "osu_bcast_007.txt",
    "osu_bcast_16_32.txt",
    "np16_np32.txt",
    "64_ring_over_int32_8.csv",
    "osu_bcast_p2p.txt",
    "osu_bcast_p99.txt",
    "osu_bcast_8_gpus.txt",
]


@pytest.mark.parametrize("name", [*STATED, *ASSUMED, *UNKNOWN])
def test_a_name_states_the_number_of_ranks_or_has_one_number_or_none(name):
    count = STATED.get(name) or ASSUMED.get(name) or 0
    assert read_ranks_in_name(Path("of_a_folder_np8", name)) == NamedRanks(count, name in STATED)


@pytest.mark.parametrize(
    ("name", "placement"),
    [
        ("osu_allreduce-32n-56ppn.out", RankCounts(0, 32, 56)),
        ("np64_ppn32", RankCounts(64, 0, 32)),
        ("p512", RankCounts(512)),
        ("osu-256n-6147-iter-5.out", RankCounts(0, 256)),
        ("size128", RankCounts()),
        ("np16_np32", RankCounts()),
    ],
)
def test_words_in_a_name_state_the_placement(name, placement):
    assert read_placement_in_name(name) == placement


@pytest.mark.parametrize(
    ("placement", "complete"),
    [
        (RankCounts(0, 32, 56), RankCounts(1792, 32, 56)),
        (RankCounts(64, 0, 24), RankCounts(64, 3, 24)),
        (RankCounts(64, 4), RankCounts(64, 4, 16)),
        (RankCounts(64, 3), RankCounts(64, 3)),
        (RankCounts(64), RankCounts(64)),
        (RankCounts(0, 4), RankCounts(0, 4)),
    ],
)
def test_two_numbers_determine_the_third(placement, complete):
    assert placement.complete == complete
    assert not complete.is_contradictory


def test_a_placement_has_a_layout():
    assert RankCounts(64, 4, 16).layout == "block:16"
    assert RankCounts(64, 4, 16, is_cyclic=True).layout == "cyclic:16"
    assert RankCounts(64).layout == ""


def test_numbers_contradict_each_other():
    assert RankCounts(64, 4, 8).is_contradictory
    assert not RankCounts(62, 4, 16).is_contradictory  # the last node has fewer


@pytest.mark.parametrize(
    ("line", "placement"),
    [
        ("# Number of ranks: 64", RankCounts(64)),
        ("# nprocs = 16", RankCounts(16)),
        ("SLURM_NTASKS=128", RankCounts(128)),
        ("export SLURM_NNODES=4", RankCounts(0, 4)),
        ("SLURM_TASKS_PER_NODE=56(x32)", RankCounts(0, 0, 56)),
        ("# Number of nodes: 8", RankCounts(0, 8)),
        ("# ranks per node: 8", RankCounts(0, 0, 8)),
        ("# OSU MPI Broadcast Latency Test v7.4", None),
        ("# Size       Avg Latency(us)", None),
        ("1024 6.70", None),
    ],
)
def test_a_header_states_the_placement(line, placement):
    assert read_placement_in_header(line) == placement


@pytest.mark.parametrize(
    ("line", "placement"),
    [
        ("+ mpirun -np 16 --bind-to core ./osu_allreduce -f -m 8:1024", RankCounts(16)),
        ("mpiexec.hydra -n 8 -ppn 4 /opt/osu-7.4/libexec/osu_bcast -i 100", RankCounts(8, 2, 4)),
        ("$ srun --ntasks=32 --cpus-per-task 2 osu_bcast", RankCounts(32)),
        ("srun -N 4 --ntasks-per-node=8 ./osu_bcast -x 10", RankCounts(32, 4, 8)),
        ("srun -n64 apptainer exec image.sif osu_bcast", RankCounts(64)),
        ("srun -N 2 -n 64 IMB-MPI1 allreduce", RankCounts(64, 2, 32)),
        ("flux run -N 32 -n 1792 osu_allreduce", RankCounts(1792, 32, 56)),
        ("mpirun -n 144 -N 36 -hostfile h osu_allreduce -x 10", RankCounts(144, 4, 36)),
        ("mpirun -np 64 --map-by ppr:16:node osu_bcast", RankCounts(64, 4, 16)),
        ("mpirun -np 64 --map-by ppr:16:socket osu_bcast", RankCounts(64)),
        ("mpirun -np 64 -N 16 --map-by node osu_bcast", RankCounts(64, 4, 16, is_cyclic=True)),
        ("srun -N 4 -n 64 -m cyclic osu_bcast", RankCounts(64, 4, 16, is_cyclic=True)),
        ("srun -N 4 -n 64 --distribution=cyclic:block osu_bcast", RankCounts(64, 4, 16, True)),
        ("srun -N 4 -n 64 --distribution=block:cyclic osu_bcast", RankCounts(64, 4, 16)),
        ("mpirun ./osu_bcast -n 5", RankCounts()),  # the number is the program's own
        ("mpirun -n 2 ./osu_bcast : -n 4 ./osu_bcast", RankCounts()),  # several programs
        ("mpirun -n <N> ./osu_bcast", RankCounts()),
        ("aprun -n 64 -N 16 osu_bcast", RankCounts(64, 4, 16)),
        ("mpirun noticed that process rank 3 with -n 4 exited", None),
        ("# OSU MPI Broadcast Latency Test v7.4", None),
    ],
)
def test_a_command_states_the_placement(line, placement):
    assert read_placement_in_command(line) == placement


JOB = (
    '{"resources": [{"type": "node", "count": 128, "with": [{"type": "slot", "count": 96, '
    '"with": [{"type": "core", "count": 1}]}]}], "tasks": [{"command": ["osu_allreduce"], '
    '"slot": "task", "count": {"per_slot": 1}}], "version": 1}'
)


def test_a_job_specification_states_the_placement():
    assert read_job_specification(JOB) == RankCounts(12288, 128, 96)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"count": 128', '"count": 0'),
        ('"count": 128', '"count": "many"'),
        ('"count": 128', '"count": true'),
        ('"type": "slot"', '"type": "rack"'),
        ('"type": "slot"', '"kind": "slot"'),
        ('"per_slot": 1', '"per_core": 1'),
        ('"tasks": [', '"tasks": [{}, '),
        ('"version": 1}', ""),
        ('"version": 1', '"version": ' + 5000 * "["),
    ],
)
def test_another_job_specification_states_none(old, new):
    assert read_job_specification(JOB.replace(old, new)) is None
