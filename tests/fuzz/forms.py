"""Valid samples and patterns of all fuzzed formats, and experiments assembled from valid and
invalid parts."""

import yaml
from hypothesis import strategies as st

from commodel.files.parameter_sets import format_parameters
from commodel.models.families import list_family_names
from tests.fuzz.mutation import NUMBERS, PIECES, written
from tests.models.synthetic import fitted_set
from tests.patterns.goal_files import TEXT

EXPERIMENT = """
platform: machine
models: [hockney]
matrix:
  - axes: {operation: bcast, algorithm: [linear, binomial], ranks: [2, 4], bytes: [1, 1KiB]}
"""
MATRIX = """
title: all keys of a matrix
platform: tree-256
models: [hockney, loggp]
probes: auto
seed: 3
measure: {sync: barrier, precision: 2%, min_samples: 10, max_samples: 500, seconds: 2, passes: 3, warmup: 1}
probe_bytes: [1, 1KiB]
library: false
matrix:
  - axes: &axes
      operation: bcast
      algorithm: [linear, "chain:8KiB"]
      ranks: {from: 2, to: 8, step: 2}
      bytes: {from: 1, to: 1MiB, factor: 32}
    exclude:
      - where: "algorithm == 'linear' and ranks > 4 or bytes // 2 in [1, 2]"
    include:
      - {operation: bcast, algorithm: binomial, ranks: 64, bytes: 1MiB}
  - axes: {operation: reduce, topology: ["flat:16", "kary:2^4", "groups:6,5,5"], bytes: 1KiB}
  - axes: {operation: [allgather], algorithm: ring}
    zips: {place: {ranks: [2, 4], layout: [block, cyclic], bytes: [1, 2]}}
"""
SIMULATED = """
title: 32 nodes
launcher: simgrid
nodes: 32
cores: 1
simgrid: {file: net.xml, prefix: node-, config: {smpi/os: "0:6.4e-6:0", smpi/wtime: 0, network/crosstraffic: no}}
"""
SLURM = b"""
launcher: slurm
nodes: 64
cores: 16
types: {fat: 48, thin: 16}
slurm: {mpi: pmi2}
"""
HOSTS = b"""
launcher: hosts
nodes: 3
cores: 2
hosts: {names: [one, two, three], mpi: openmpi}
"""
PLATFORMS = (SIMULATED.encode(), SLURM, HOSTS, b"launcher: local\nnodes: 1\ncores: 8\n")
CHANNEL = "#size o L1 L2\n0 1e-6 2e-6 3e-6\n1024 1e-6 4e-6 5e-6\n"
GAMMA = b"#size SUM_I MAX_I\n0 1e-9 2e-9\n1024 1e-7 1e-8\n"
NETGAUGE = b"""# size n PRTT(1,0,s)
1 10 10.0 20.0 40.0 5.0 1.5 1.0 -nan -nan -nan
1025 10 10.0 20.0 40.0 5.0 3.2 3.2 2.0 0.001 -nan
 L=5.000000  s=2049  o_s=3.263633  o_r=3.276120  g=2.100000  G=0.000500 (10.592345 GiB/s) lsqu(g,G)=0.630321
"""
LOGS = [
    b"""SLURM_NNODES=4
+ srun -N 4 --ntasks-per-node=16 osu_allreduce -f
# OSU MPI-CUDA Allreduce Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations  P50 Tail Lat(us)
4                       0.36              0.33              0.40         200              0.33
0.037s: flux-shell[1]: ERROR
""",
    b"""Open MPI v4.1.5
# OSU MPI Bandwidth Test v7.4
# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)
# Size      Bandwidth (MB/s) P50 Tail BW(MB/s)
4                       4.00              5.00
{"resources": [{"type":"node","count":2,"with":[{"type":"slot","count":1}]}],"tasks":[{"count":{"per_slot":1}}]}
""",
]
EVIDENCE = b"""operation,algorithm,layout,ranks,bytes,seconds,statistic,repetitions,setting,nodes,library,source,digest
allreduce,library,block:4,8,4,1e-06,rank mean,mean,Open MPI,2,Open MPI,a.txt:3,ab12
allreduce,library,block:4,8,8,2e-06,last rank,mean,Open MPI,2,Open MPI,a.txt:4,ab12
bcast,linear,,2,1,1e-06,completion,median,,,,b.txt:3,cd34
"""
POINTS = b"""operation,algorithm,topology,ranks,bytes,seconds,layout
bcast,binomial,,8,1KiB,1e-5,block:2
bcast,library,,8,1KiB,1e-5,
reduce,,kary:2^2,,64,12us,cyclic:1
barrier,dissemination,,4,,3us,
"""
CHOICES = b"""operation,ranks,bytes,algorithm,platform
bcast,4,1,binomial,x
bcast,4,1024,chain:64KiB,x
allgather,8,64,ring,x
gather,8,64,library,x
"""
CASES = b"""id,n,bytes,waves,delay,how
one,3,1024,50,1e-6,isend
two,0,0,1,0,send
"""
PARTITION = b"""rank,x,y,width,height
0,0,0,5,3
1,0,3,5,5
2,5,0,3,8
3,0,0,0,0
"""
PLAY = b"""step,wait,kind,rank,peer,peer_step,peer_wait,bytes,seconds,runs
0,,send,0,1,,,8,0.0,0+8
0,,send,1,2,,,16,0.0,0+8;24+8
1,,reduce,1,1,,,8,0.0,
1,,compute,2,,,,,0.5,
1,2,send,2,0,0,3,8,0.0,
2,,result,0,0,,,8,0.0,0+8
"""
GOALS = (
    b"// one unit of calc is 1 ps\n" + TEXT.encode() + b"/* last */\n",
    (
        b"num_ranks 2\nrank 0 {\na: send 1b to 1\nb: recv 1b from 1\nb requires a\n}\n"
        b"rank 1 {\na: send 1b to 0\nb: recv 1b from 0\na requires b\n}\n"
    ),
)
TREES = (
    b"a:0 => b:0 c:0 ;\nb:0 => d:0 e:0\n;# end\n",
    b"node,parent\n0,\n1,0\n2,0\n3,1\n",
    b'node,parent\n"one",\n"two","one"\n',
)
RANKS = (
    b"rank 0=a slot=0\nrank 1=b slot=0\nrank 2=a slot=1\nrank 3=b slots=1\n",
    b"0\n1\n1 # two\n0\n",
    b"+n0\n+n1\n+n0\n+n1\n",
)
TOPOLOGIES = (
    *(
        "flat:%",
        "chain:%",
        "kary:%^%",
        "balanced:%x%",
        "binomial:%",
        "knomial:%@%",
        "generic:%:%,%",
        "groups:%,%x%",
    ),
    *(
        "postal:%@%",
        "optimal:%us,%us,%us@%",
        "random:%@%",
        "b:%^%",
        "b:%x%",
        "k:%@%",
        "g:%:%",
        "file:%",
        "%:%",
    ),
)
LAYOUTS = (
    *(
        "block:%",
        "cyclic:%",
        "block-cyclic:%x%",
        "random:%@%",
        "file:%",
        "kinds:%core+%accelerator@%,%core@%",
        "%:%",
    ),
    *("kinds:fat=%core+%accelerator,thin=%core", "processes:%"),
)
QUANTITIES = ("%", "%KiB", "% MB", "%us", "%s", "%%%", "%,%", "%:%:*%", "%:%:+%", "%:%:*%,%:%:+%")
EXPRESSIONS = (
    *(
        "ranks > %",
        "ranks * % + bytes",
        "% < bytes <= %",
        "operation in ['bcast', %]",
        "algorithm == '%'",
        "not %",
    ),
    *(
        "log2(%)",
        "min(%, %)",
        "is_power_of_two(%)",
        "abs(-%) % ranks",
        "ranks // %",
        "(%)",
        "[%]",
        "% if % else %",
    ),
    *(
        "%.__class__",
        "ranks(%)",
        "lambda: %",
        "bytes and % or ranks",
        "bytes ** %",
        "'a' * %",
        "f'{%}'",
        "~%",
        "% @ %",
    ),
)
VALUES = st.one_of(
    st.integers(-2, 300), st.sampled_from(NUMBERS), PIECES, st.none(), st.booleans(), st.floats()
)
COUNTS = st.one_of(
    st.integers(2, 64),
    st.lists(st.integers(2, 300), max_size=3),
    st.fixed_dictionaries(
        {"from": VALUES, "to": VALUES}, optional={"factor": VALUES, "step": VALUES}
    ),
    written("%", "%KiB", "%:%:*%", "%:%:+%"),
    VALUES,
)
AXES = st.fixed_dictionaries(
    {"operation": st.sampled_from(("bcast", "reduce", "alltoall", "barrier", "allgather"))},
    optional={
        "algorithm": st.one_of(
            written("linear", "binomial", "ring", "chain:%", "knomial:%", "pairwise"), VALUES
        ),
        "topology": st.one_of(written(*TOPOLOGIES), st.lists(written(*TOPOLOGIES), max_size=3)),
        "layout": written(*LAYOUTS),
        "ranks": COUNTS,
        "nodes": COUNTS,
        "ranks_per_node": COUNTS,
        "bytes": COUNTS,
    },
)
BLOCK = st.fixed_dictionaries(
    {"axes": AXES},
    optional={
        "platform": st.sampled_from(("local", "tree-256", "none", "../x")),
        "zips": st.dictionaries(PIECES, AXES, max_size=1),
        "exclude": st.lists(st.fixed_dictionaries({"where": written(*EXPRESSIONS)}), max_size=2),
        "include": st.lists(AXES, max_size=2),
    },
)
MEASURE = st.dictionaries(
    st.sampled_from(("sync", "precision", "min_samples", "max_samples", "seconds", "passes")),
    VALUES,
)


def experiments() -> st.SearchStrategy[str]:
    keys = {
        "platform": st.sampled_from(("tree-256", "local")),
        "matrix": st.lists(BLOCK, min_size=1, max_size=3),
    }
    others = {
        "models": st.just(["hockney"]),
        "seed": VALUES,
        "measure": MEASURE,
        "probe_bytes": COUNTS,
        "title": VALUES,
    }
    return st.fixed_dictionaries(keys, optional=others).map(
        lambda data: yaml.safe_dump(data, allow_unicode=True)
    )


def sets() -> list[bytes]:
    """Return a fitted parameter set of every model, as the content of a file."""
    fitted = [fitted_set(name) for name in list_family_names()]
    return [format_parameters(parameters).encode() for parameters in fitted]
