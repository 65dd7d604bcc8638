"""A small file of every format of measured times, as its tool would write it, and the expected
times.

Tables of measurements in the form that the authors of τ–Lop publish: within a node, between nodes,
and local sums.

Files of a run in the form of PICO, and PICO's archive of them."""

import tarfile
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sample:
    """A file's text, options and expected times (operation, algorithm, layout, ranks, bytes,
    seconds, statistic, repetitions); `left_out` counts rows by name."""

    text: str
    times: list
    given: dict = field(default_factory=dict)
    left_out: dict = field(default_factory=dict)


OSU = """
# OSU MPI Broadcast Latency Test v7.3
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations  P50 Tail Lat(us)  P90 Tail Lat(us)
1                       2.42              2.01              3.50        1000              2.40              2.90
1024                    6.70              6.10              7.00        1000              6.50              6.80

# OSU MPI Latency Test v5.8
# Size          Latency (us)
0                       1.10
8192                    3.25
# OSU MPI-CUDA Barrier Latency Test v7.3
# Avg Latency(us)
             8.00
# OSU MPI Exscan Latency Test v7.3
# Size       Avg Latency(us)
4                       1.00
# OSU MPI_Put Latency Test v7.3
# Window creation: MPI_Win_allocate
# Size          Latency (us)
4                       1.00
8                       1.00
# OSU MPI_Put Bandwidth Test v7.3
# Size      Bandwidth (MB/s)
4                       1.00
# OSU MPI Bandwidth Test v7.3
# Size      Bandwidth (MB/s)
4                       1.00
# OSU MPI Bi-Directional Bandwidth Test v7.3
# Size      Bandwidth (MB/s)
1024                  2048.00
# OSU MPI Multiple Bandwidth / Message Rate Test v7.3
# [ pairs: 3 ] [ window size: 16 ]
# Size                  MB/s        Messages/s
8                      96.00       12000000.00
# OSU MPI Multi Latency Test v7.3
# Size          Latency (us)
64                      2.50
"""

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

IMB = """
#----------------------------------------------------------------
#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part
#----------------------------------------------------------------
# List of Benchmarks to run:
# PingPong
#---------------------------------------------------
# Benchmarking PingPong
# #processes = 2
# ( 2 additional processes waiting in MPI_Barrier)
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
            0         1000         0.50         0.00
         4096         1000         2.00      2048.00

#----------------------------------------------------------------
# Benchmarking Allreduce
# #processes = 4
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]      defects
            0         1000         0.03         0.05         0.04         0.00
           64         1000         3.00         5.00         4.00         0.00
          128 time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over; use "-time X" to increase it.

#----------------------------------------------------------------
# Benchmarking Reduce_scatter
# #processes = 3
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
           16         1000         3.00         6.00         4.00

#----------------------------------------------------------------
# Benchmarking Reduce_scatter_block
# #processes = 3
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
           16         1000         3.00         6.50         4.00

#----------------------------------------------------------------
# Benchmarking Multi-Bcast
# ( 2 groups of 2 processes each running simultaneous )
#----------------------------------------------------------------
        Group       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]

            0           16         1000         3.00         6.50         4.00

#----------------------------------------------------------------
# Benchmarking Barrier
# #processes = 4
#----------------------------------------------------------------
 #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
         1000         1.00         2.00         1.50

#-----------------------------------------------------------------------------
# Benchmarking PingPing
# #processes = 2
#-----------------------------------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
           64         1000         0.50         0.00

#-----------------------------------------------------------------------------
# Benchmarking Exchange
# #processes = 2
#-----------------------------------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
           64         1000         0.50         0.00

#---------------------------------------------------
# Benchmarking Biband
# #processes = 4
#---------------------------------------------------
       #bytes #repetitions   Mbytes/sec      Msg/sec
            0         1000         0.00      5120000
           64         1000       655.36     10240000

# All processes entering MPI_Finalize
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

CSV = """name,how,p,size,t_us,where
bcast,binomial,8,4KiB,12.5,block:2
barrier,,8,,3,
pingpong,,2,8,5,
"""

SAMPLES = {
    "osu": Sample(
        OSU,
        [
            ("bcast", "library", "", 16, 1, 2.01e-6, "first rank", "mean"),
            ("bcast", "library", "", 16, 1, 2.40e-6, "rank mean", "median"),
            ("bcast", "library", "", 16, 1, 3.50e-6, "last rank", "mean"),
            ("bcast", "library", "", 16, 1024, 6.10e-6, "first rank", "mean"),
            ("bcast", "library", "", 16, 1024, 6.50e-6, "rank mean", "median"),
            ("bcast", "library", "", 16, 1024, 7.00e-6, "last rank", "mean"),
            ("bcast", "linear", "", 2, 0, 1.10e-6, "completion", "mean"),
            ("bcast", "linear", "", 2, 8192, 3.25e-6, "completion", "mean"),
            ("barrier", "library", "", 16, 0, 8e-6, "rank mean", "mean"),
            ("pairs", "at-once", "", 2, 4, 64 * 4e-6, "completion", "mean"),
            ("pairs:directions=2", "at-once", "", 2, 1024, 64e-6, "completion", "mean"),
            ("pairs:messages=16", "at-once", "", 6, 8, 4e-6, "completion", "mean"),
            ("pairs:messages=1:directions=2", "in-turn", "", 16, 64, 5e-6, "completion", "mean"),
        ],
        {"ranks": 16},
        {"Exscan": 1, "MPI_Put Latency": 2, "MPI_Put Bandwidth": 1},
    ),
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
    ),
    "imb": Sample(
        IMB,
        [
            ("bcast", "linear", "block:1", 2, 0, 0.5e-6, "completion", "mean"),
            ("bcast", "linear", "block:1", 2, 4096, 2e-6, "completion", "mean"),
            ("allreduce", "library", "block:1", 4, 64, 3e-6, "first rank", "mean"),
            ("allreduce", "library", "block:1", 4, 64, 4e-6, "rank mean", "mean"),
            ("allreduce", "library", "block:1", 4, 64, 5e-6, "last rank", "mean"),
            ("reduce-scatter", "library", "block:1", 3, 48, 3e-6, "first rank", "mean"),
            ("reduce-scatter", "library", "block:1", 3, 48, 4e-6, "rank mean", "mean"),
            ("reduce-scatter", "library", "block:1", 3, 48, 6e-6, "last rank", "mean"),
            ("reduce-scatter", "library", "block:1", 3, 48, 3e-6, "first rank", "mean"),
            ("reduce-scatter", "library", "block:1", 3, 48, 4e-6, "rank mean", "mean"),
            ("reduce-scatter", "library", "block:1", 3, 48, 6.5e-6, "last rank", "mean"),
            ("barrier", "library", "block:1", 4, 0, 1e-6, "first rank", "mean"),
            ("barrier", "library", "block:1", 4, 0, 1.5e-6, "rank mean", "mean"),
            ("barrier", "library", "block:1", 4, 0, 2e-6, "last rank", "mean"),
            (
                "pairs:messages=1:directions=2",
                "at-once",
                "block:1",
                2,
                64,
                0.5e-6,
                "completion",
                "mean",
            ),
            (
                "pairs:messages=256:directions=2",
                "at-once",
                "block:1",
                4,
                0,
                200e-6,
                "completion",
                "mean",
            ),
            (
                "pairs:messages=256:directions=2",
                "at-once",
                "block:1",
                4,
                64,
                100e-6,
                "completion",
                "mean",
            ),
        ],
        {"layout": "block:1"},
        {
            "Allreduce of 0 bytes": 1,
            "Allreduce that IMB aborted": 1,
            "Multi-Bcast": 1,
            "Exchange": 1,
        },
    ),
    "reprompi": Sample(
        REPROMPI,
        [
            ("bcast", "library", "", 16, 80, 10.9819e-6, "last rank", "single"),
            ("bcast", "library", "", 16, 80, 3.0911e-6, "last rank", "single"),
            ("gather", "library", "", 16, 16, 5e-6, "last rank", "single"),
        ],
    ),
    "mpiblib": Sample(
        MPIBLIB,
        [
            ("bcast", "linear", "", 2, 0, 2e-6, "completion", "mean"),
            ("bcast", "linear", "", 2, 1024, 4e-6, "completion", "mean"),
        ],
        {"operation": "pingpong"},
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
    ),
    "csv": Sample(
        CSV,
        [
            ("bcast", "binomial", "block:2", 8, 4096, 12.5e-6, "unknown", "unknown"),
            ("barrier", "library", "", 8, 0, 3e-6, "unknown", "unknown"),
            ("bcast", "linear", "", 2, 8, 2.5e-6, "completion", "unknown"),
        ],
        {
            "columns": (
                "operation=name",
                "algorithm=how",
                "ranks=p",
                "bytes=size",
                "seconds=t_us:us",
                "layout=where",
            )
        },
    ),
}


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
