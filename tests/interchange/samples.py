"""A small file of each of the core's formats of measured times, as its tool would write it, and
the expected times."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sample:
    """A file's text, options and expected times (operation, algorithm, layout, ranks, bytes,
    seconds, statistic, repetitions); `left_out` counts rows by name.

    `first_time` is the text of the first time in the file. `no_bytes` has a file with a collective
    of 0 bytes and one of 8 bytes that takes 1 µs, and the options to read it.
    """

    text: str
    times: list
    given: dict = field(default_factory=dict)
    left_out: dict = field(default_factory=dict)
    first_time: str = ""
    no_bytes: tuple[str, dict] | None = None


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
        first_time="3.50",
        no_bytes=(
            "# OSU MPI Broadcast Latency Test v7.3\n# Size  Avg Latency(us)\n0 0.03\n8 1.0\n",
            {"ranks": 4},
        ),
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
        first_time="0.50",
        no_bytes=(
            "# Benchmarking Bcast\n# #processes = 4\n#bytes #repetitions t_max[usec]\n0 9 0.03\n8 9 1.0\n",
            {},
        ),
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
        first_time="12.5",
        no_bytes=("operation,seconds,ranks,bytes\nbcast,3e-8,4,0\nbcast,1e-6,4,8\n", {}),
    ),
}
