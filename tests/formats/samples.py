"""A small file of each format of commodel_formats, as its tool would write it, and the expected
times.

Tables of measurements in the form that the authors of τ–Lop publish: within a node, between nodes,
and local sums. Files of a run in the form of PICO, and PICO's archive of them. Lines of Netgauge."""

import tarfile

from tests.interchange.samples import Sample

MICROBENCH = """
On-NUMA Ping-Pong:
Size 1: 5.0e-07
Off-Node MultiProc Ping-Pong:
Active Procs: 1
Size 1: 2.0e-06

Active Procs: 4
Size 8: 4.0e-06
On-NUMA MultiProc Ping-Pong, All NUMAs Active:
Active Procs: 2
Size 1: 9.0e-07
"""


REPROMPI = """#Command-line arguments:  bin/mpibenchmark --calls-list=MPI_Bcast,MPI_Gather --nrep=2
#MPI calls:
#    MPI_Bcast
#@datatype=MPI_DOUBLE
#@datatype_extent_bytes=8
#@nprocs=16
#@sync=MPI_Barrier
                                              test       nrep        count    runtime_sec
                                         MPI_Bcast          0           10   0.0000109819
                                         MPI_Bcast          1           10   0.0000030911
                                        MPI_Gather          0            2   0.0000050000
# Benchmark started at Mon Oct 12 22:14:38 2020
"""


MPIBLIB = """#measure = 0
#msg\ttime\twtick\treps\tci
0\t4.0e-06\t1e-09\t5\t1e-07
1024\t8.0e-06\t1e-09\t7\t1e-07
"""


SKAMPI = """# SKaMPI Version 5.0.4
begin result "Pingpong_Send_Recv"
count= 1        4       6.0       0.0      160       5.7       5.7
end result "Pingpong_Send_Recv"
begin result "MPI_Bcast-procs-short"
procs= 2      256      10.0       0.1        8      10.0       9.0       0.0       0.0
procs= 4      256      20.0       0.1        8      20.0      19.0      19.0      19.0
end result "MPI_Bcast-procs-short"
begin result "MPI_Reduce-length"
count= 64     256      30.0       0.1        8      30.0      29.0      29.0
end result "MPI_Reduce-length"
begin result "Bcast_using_Send_Recv-procs-short"
procs= 2      256      10.0       0.1        8      10.0       9.0
end result "Bcast_using_Send_Recv-procs-short"
"""


PICO = """system,run,collective,algorithm,nodes,ranks_per_node,bytes,samples,median_s,mean_s
mn5,1,bcast,binomial_ompi,32,1,4096,5,1e-5,2e-5
mn5,1,gather,linear_over,8,4,4096,5,2e-5,2e-5
mn5,1,allreduce,default_ompi,4,2,64,5,3e-5,3e-5
mn5,1,allgather,ring_ompi,16,1,1024,5,4e-5,3e-5
mn5,1,bcast,bine_lat_over,16,1,1024,5,4e-5,3e-5
mn5,1,bcast,bine_lat_over,32,1,1024,5,4e-5,3e-5
mn5,1,reduce,in_order_ompi,32,1,1024,5,5e-5,3e-5
mn5,1,scatter,linear_nb_ompi,32,1,1024,5,6e-5,3e-5
mn5,1,gather,linear_synch_ompi,32,1,1024,5,7e-5,3e-5
mn5,1,bcast,binomial_mpich,32,1,1024,5,8e-5,3e-5
mn5,1,bcast,pipeline_ompi,32,1,1024,5,9e-5,3e-5
mn5,1,bcast,chain_ompi,32,1,1024,5,9e-5,3e-5
mn5,1,reduce,chain_ompi,32,1,1024,5,9e-5,3e-5
mn5,1,allreduce,nonoverlapping_ompi,32,1,1024,5,9e-5,3e-5
"""


SHM = "#m\t2\n#tau\t2\n#m\to(m)\tL(m, 1)\tL(m, 2)\n1\t1e-6\t1e-7\t2e-7\n101\t1e-6\t3e-7\t4e-7\n"


IB = "#m\to(m)\tL(m, 1)\tL(m, 2)\n1\t2e-6\t1e-6\t1.5e-6\n101\t2e-6\t3e-6\t5e-6\n"


GAMMA = "#size\tMAX_I\tSUM_I\n4\t1e-7\t2e-7\n104\t1e-7\t12e-7\n"


TABLES = {"SHM": SHM, "IB": IB, "gamma": GAMMA}


RUN = "2025_04_10___20_36_45"


HEAD = (
    "timestamp,test_id,nnodes,tasks_per_node,collective_type,mpi_lib,mpi_lib_version,libbine_version,gpu_awareness,"
    "gpu_lib,gpu_lib_version,output_level,MPI_Op,notes\n"
)


OMPI = "OMPI,4.1.5,1.0.0,no,null,null,summarized,MPI_SUM, UCX_MAX_RNDV_RAILS=1\r"


CUDA = "OMPI,4.1.6,1.0.0,yes,CUDA,12.1,all,null,null"


def line(test, nodes, per_node, collective, rest=OMPI):
    return f"{RUN},{test},{nodes},{per_node},{collective},{rest}\n"


def samples(*nanoseconds, columns=""):
    return f"highest{columns}\n" + "".join(f"{time}\n" for time in nanoseconds)


def alloc(*hosts, padding="\0" * 9):
    return "MPI_Rank,allocation\n" + padding.join(
        f"{rank},{host}\n" for rank, host in enumerate(hosts)
    )


def packed(folder):
    archive = folder.with_name(f"{folder.name}.tar.gz")
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname=folder.name)
    return archive


SAMPLES = {
    "microbench": Sample(
        MICROBENCH,
        [
            (
                "pairs:messages=1:directions=2",
                "in-turn",
                "block:2",
                2,
                1,
                5e-7,
                "completion",
                "mean",
            ),
            (
                "pairs:messages=1:directions=2",
                "in-turn",
                "block:1",
                2,
                1,
                2e-6,
                "completion",
                "mean",
            ),
            (
                "pairs:messages=1:directions=2",
                "in-turn",
                "block:4",
                8,
                8,
                4e-6,
                "completion",
                "mean",
            ),
        ],
        {},
        {"On-NUMA MultiProc Ping-Pong, All NUMAs Active": 1},
        first_time="5.0e-07",
    ),
    "reprompi": Sample(
        REPROMPI,
        [
            ("bcast", "library", "", 16, 80, 10.9819e-6, "last rank", "single"),
            ("bcast", "library", "", 16, 80, 3.0911e-6, "last rank", "single"),
            ("gather", "library", "", 16, 16, 5e-6, "last rank", "single"),
        ],
        first_time="0.0000109819",
        no_bytes=(
            "#@nprocs=4\ntest nrep count runtime_sec\nMPI_Bcast 0 0 3e-8\nMPI_Bcast 0 8 1e-6\n",
            {},
        ),
    ),
    "mpiblib": Sample(
        MPIBLIB,
        [
            ("bcast", "linear", "", 2, 0, 2e-6, "completion", "mean"),
            ("bcast", "linear", "", 2, 1024, 4e-6, "completion", "mean"),
        ],
        {"operation": "pingpong"},
        first_time="4.0e-06",
        no_bytes=(
            "#msg time wtick reps ci\n0 3e-8 1 1 1\n8 1e-6 1 1 1\n",
            {"ranks": 4, "operation": "bcast"},
        ),
    ),
    "skampi": Sample(
        SKAMPI,
        [
            ("bcast", "linear", "", 2, 4, 3e-6, "completion", "mean"),
            ("bcast", "library", "", 2, 256, 10e-6, "last rank", "mean"),
            ("bcast", "library", "", 4, 256, 20e-6, "last rank", "mean"),
            ("reduce", "library", "", 3, 256, 30e-6, "last rank", "mean"),
        ],
        left_out={"Bcast_using_Send_Recv": 1},
        first_time="6.0",
        no_bytes=(
            'begin result "MPI_Bcast"\nprocs= 4 0 0.03 0 1 1\nprocs= 4 8 1.0 0 1 1\nend result\n',
            {},
        ),
    ),
    "pico": Sample(
        PICO,
        [
            ("bcast", "binomial-near", "block:1", 32, 4096, 1e-5, "last rank", "median"),
            ("gather", "linear", "block:4", 32, 128, 2e-5, "last rank", "median"),
            ("allreduce", "library", "block:2", 8, 64, 3e-5, "last rank", "median"),
            ("allgather", "ring", "block:1", 16, 64, 4e-5, "last rank", "median"),
            ("reduce", "in-order:2GiB", "block:1", 32, 1024, 5e-5, "last rank", "median"),
            ("scatter", "linear", "block:1", 32, 32, 6e-5, "last rank", "median"),
            ("gather", "linear-sync:2GiB", "block:1", 32, 32, 7e-5, "last rank", "median"),
            ("bcast", "binomial", "block:1", 32, 1024, 8e-5, "last rank", "median"),
            ("bcast", "chain:2GiB", "block:1", 32, 1024, 9e-5, "last rank", "median"),
        ],
        left_out={
            "bcast bine-lat": 2,
            "bcast chain_ompi": 1,
            "reduce chain_ompi": 1,
            "allreduce nonoverlapping_ompi": 1,
        },
        first_time="1e-5",
        no_bytes=(
            "collective,algorithm,nodes,ranks_per_node,bytes,median_s\n\
gather,default,4,1,2,3e-8\ngather,default,4,1,32,1e-6\n",
            {},
        ),
    ),
}


NETGAUGE = """# Info:   (0): Netgauge v2.4.6 MPI enabled (P=2, threadlevel=0)
Testing 1 bytes 100 times:
n is 1, d is 0.000000, o_r is 0, s is 1, the median latency in the test is 10.0 (us)
 L=5.000000  s=1  o_s=1.500000  o_r=1.000000  g=-nan  G=-nan (-nan GiB/s) lsqu(g,G)=-nan
 L=5.000000  s=1025  o_s=3.287033  o_r=3.290569  g=2.000000  G=0.001000 (5.238189 GiB/s) lsqu(g,G)=-nan
 L=5.000000  s=2049  o_s=3.263633  o_r=3.276120  g=2.100000  G=0.000500 (10.592345 GiB/s) lsqu(g,G)=0.630321
"""


NETGAUGE_FILE = """# size n PRTT(1,0,s) …
1 10 10.0 20.0 40.0 5.0 1.5 1.0 -nan -nan -nan
1025 10 10.0 20.0 40.0 5.0 3.2 3.2 2.0 0.001 -nan
2049 10 10.0 20.0 40.0 5.0 3.2 3.2 2.1 0.0005 0.6
"""
