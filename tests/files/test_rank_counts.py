"""Numbers of ranks in file names and in the output of launchers: read if they can mean nothing
else, or nearly so."""

from pathlib import Path

import pytest

from commodel.files.rank_counts import NamedRanks, read_ranks_in_line, read_ranks_in_name

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
    "osu_bcast_8_gpus.txt",
]


@pytest.mark.parametrize("name", [*STATED, *ASSUMED, *UNKNOWN])
def test_a_name_states_the_number_of_ranks_or_has_one_number_or_none(name):
    count = STATED.get(name) or ASSUMED.get(name) or 0
    assert read_ranks_in_name(Path("of_a_folder_np8", name)) == NamedRanks(count, name in STATED)


@pytest.mark.parametrize(
    ("line", "ranks"),
    [
        ("# Number of ranks: 64", 64),
        ("# nprocs = 16", 16),
        ("SLURM_NTASKS=128", 128),
        ("+ mpirun -np 16 --bind-to core ./osu_allreduce -f -m 8:1024", 16),
        ("mpiexec.hydra -n 8 -ppn 4 /opt/osu-7.4/libexec/osu_bcast -i 100", 8),
        ("$ srun --ntasks=32 --cpus-per-task 2 osu_bcast", 32),
        ("srun -N 4 --ntasks-per-node=8 ./osu_bcast -x 10", 32),
        ("srun -n64 apptainer exec image.sif osu_bcast", 64),
        ("mpirun ./osu_bcast -n 5", 0),  # the number is the program's own
        ("mpirun -n 2 ./osu_bcast : -n 4 ./osu_bcast", 0),  # several programs
        ("mpirun -n <N> ./osu_bcast", 0),
        ("aprun -n 64 -N 16 osu_bcast", 64),
        ("mpirun noticed that process rank 3 with -n 4 exited", None),
        ("# OSU MPI Broadcast Latency Test v7.4", None),
        ("# Size       Avg Latency(us)", None),
        ("# ranks per node: 8", None),
        ("1024 6.70", None),
    ],
)
def test_a_line_of_output_states_the_number_of_ranks(line, ranks):
    assert read_ranks_in_line(line) == ranks
