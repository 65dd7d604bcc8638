"""A project in which the commands of README and docs run: a small simulated platform `mycluster`,
small experiments with the names of the docs, their results, and the other files that the commands
name."""

import shutil
from collections.abc import Iterable
from pathlib import Path

import yaml

from commodel.api.fits import read_data_sheet
from commodel.files.parameter_sets import read_parameters, write_parameters
from commodel.predictions.predictions import predict
from commodel_kernels.speeds import KernelSpeeds, Speeds, write_speeds
from tests.documented import ROOT
from tests.formats.samples import HEAD, RUN, TABLES, line, packed, samples
from tests.interchange.samples import OSU
from tests.patterns.catalogue import point
from tests.workflow.conftest import Project

PLATFORM = """
title: eight nodes of eight cores, one switch (simulated)
launcher: simgrid
nodes: 8
cores: 8
simgrid:
  file: mycluster.xml
  config:
    smpi/os: 0:1.5e-6:0
    smpi/ois: 0:1.5e-6:0
    smpi/or: 0:1.5e-6:0
    smpi/lat-factor: 0:1
    smpi/bw-factor: 0:1
    network/TCP-gamma: 0
    smpi/wtime: 0
    smpi/host-speed: 1Gf
"""
NETWORK = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="mine" prefix="node-" suffix="" radical="0-7" speed="1Gf" core="8" bw="10GBps" lat="5us"/>
</platform>
"""
EXPERIMENT = """
title: small
platform: mycluster
models: [hockney, loggp]
probes: [auto, nodepairs]
measure: {precision: 5%, min_samples: 6, max_samples: 10, seconds: 1, warmup: 1}
probe_bytes: [1, 1024, 64KiB]
matrix:
  - axes: {operation: allreduce, algorithm: [recursive-doubling, ring], ranks: [4, 8], bytes: [8, 64KiB]}
  - axes: {operation: bcast, algorithm: [linear, binomial], ranks: [4, 8], bytes: [8, 64KiB]}
"""
TREES = """
title: small trees
platform: tree-256
models: [hockney]
measure: {precision: 5%, min_samples: 6, max_samples: 10, seconds: 1, warmup: 1}
probe_bytes: [1, 1024]
matrix:
  - axes: {operation: reduce, topology: ["flat:8", "kary:2^3"], bytes: 1KiB}
"""
LOGGP = "model: loggp\nparameters:\n  G: {value: 1e-9, unit: s/B}\n"
SECONDS = {"L": 1e-5, "o_s": 1e-6, "o_r": 1e-6, "g": 2e-6}
LOGGP += "".join(f"  {name}: {{value: {value}, unit: s}}\n" for name, value in SECONDS.items())
LOGP = "model: logp\nparameters:\n"
LOGP += "".join(
    f"  {name}: {{value: {value}, unit: s}}\n"
    for name, value in (("L", 1e-5), ("o", 1e-6), ("g", 1e-6))
)
SPEEDS = {f"node/{cores}": ((1.0, 1e5 * cores), (4096.0, 2e5 * cores)) for cores in (1, 2, 3)}
SPEEDS = Speeds(
    {"gemm": KernelSpeeds(SPEEDS, 32), "wave": KernelSpeeds(SPEEDS, 1)},
    "mycluster",
    simulated=True,
    source="declared for a test",
)
PICO = "results/lumi/2025_04_07___16_22_51"

# A folder of measurements of the MPI default, as sites have them.
OSU_RESULTS = {
    "osu_allreduce-2n-56ppn.out": """# OSU MPI Allreduce Latency Test v7.4
# Size       Avg Latency(us)
8                      12.31
1024                   17.02
65536                 110.20
""",
    "osu_allreduce-4n-56ppn.out": """# OSU MPI Allreduce Latency Test v7.4
# Size       Avg Latency(us)
8                      15.80
1024                   21.47
65536                 132.65
""",
    "n8/osu_allreduce.out": """mpirun -np 448 -N 56 osu_allreduce -m 8:65536
# OSU MPI Allreduce Latency Test v7.4
# Size       Avg Latency(us)
8                      19.04
1024                   25.90
65536                 158.11
""",
    "readme.txt": "Measured in May.\n",
}


def make_project(folder: Path) -> None:
    """Make the project of fast commands: `mine` and `sample` have run, `cluster` and `demo` are
    planned."""
    project = Project(folder)
    project.verb("init", "initial")  # makes the files for Snakemake; params are those of the clone
    for name in ("Snakefile", "profiles", "slurm"):
        (folder / "initial" / name).rename(folder / name)
    shutil.copytree(ROOT / "params", folder / "params", dirs_exist_ok=True)
    _write(folder / "params/platforms/mycluster.yaml", PLATFORM)
    _write(folder / "params/platforms/mycluster.xml", NETWORK)
    shutil.copy(folder / "params/platforms/local.yaml", folder / "params/platforms/desk.yaml")
    for name in ("mine", "sample", "cluster", "demo"):
        project.experiment(name, EXPERIMENT)
    project.compare("mine")
    _compare_again(project, "sample")
    for name in ("cluster", "demo"):
        project.verb("plan", name, "--write")
    _write_files(project)
    for name in ("results/september", "results/october", "results/november", "FOLDER"):
        shutil.copytree(folder / "results/mine", folder / name)
    (folder / "mycluster").mkdir()
    # its results are those of the whole project
    (folder / "mycluster/results").symlink_to("../results")


# Printed by OSU 5.0 on a simulated cluster of 48 ranks a node.
OF_FAT_NODES = {
    "osu_latency.txt": """# OSU MPI Latency Test v5.0
# Size Latency (us)
1 1.70
64 1.71
1024 1.78
8192 2.36
65536 6.24
262144 21.97
""",
    "osu_mbw_mr.txt": """# OSU MPI Multiple Bandwidth / Message Rate Test v5.0
# [ pairs: 48 ] [ window size: 8 ]
# Size MB/s Messages/s
1 29.51 29508549.28
64 1885.68 29463680.72
1024 13941.24 13614495.86
8192 12673.08 1547006.45
65536 12484.77 190502.43
262144 12496.19 47669.18
""",
    "osu_bcast_96.txt": """# OSU MPI Broadcast Latency Test v5.0
# Size Avg Latency(us)
1 4.26
64 4.27
1024 4.35
8192 5.10
65536 18.97
262144 66.16
""",
    "osu_bcast_384.txt": """# OSU MPI Broadcast Latency Test v5.0
# Size Avg Latency(us)
1 7.04
64 7.06
1024 7.23
8192 9.65
65536 32.88
262144 115.70
""",
}


def reduce_experiment(text: str) -> str:
    """Return an experiment with the fewest samples of a point, a third of the probes' sizes, and
    the first and last values of paired axes."""
    experiment = yaml.safe_load(text)
    measure = {"min_samples": 1, "max_samples": 2, "seconds": 0.1, "passes": 1, "warmup": 0}
    experiment["measure"] = experiment.get("measure", {}) | measure
    if isinstance(sizes := experiment.get("probe_bytes"), list):
        experiment["probe_bytes"] = sorted({*sizes[::3], sizes[-1]}, key=sizes.index)
    for block in experiment["matrix"]:
        for name, paired_axes in block.get("zips", {}).items():
            block["zips"][name] = _keep_ends(paired_axes)
    return yaml.safe_dump(experiment)


def _keep_ends(axes: dict) -> dict:
    return {
        name: _keep_ends(values) if isinstance(values, dict) else [values[0], values[-1]]
        for name, values in axes.items()
    }


def run_experiments(project: Project, experiments: Iterable[str]) -> None:
    """Run the experiments that the other commands need, and make the given ones smaller."""
    for name in experiments:
        path = project.folder / f"params/experiments/{name}.yaml"
        path.write_text(reduce_experiment(path.read_text(encoding="utf-8")), encoding="utf-8")
    for name in ("cluster", "demo"):
        _compare_again(project, name)
    project.experiment("trees", TREES)
    project.compare("trees")
    project.verb("report", "--in", "results/cluster")
    shutil.copy(project.folder / "reports/cluster/cluster.xlsx", project.folder / "report.xlsx")


def _compare_again(project: Project, name: str) -> None:
    """Run an experiment that differs from `mine` only in its name, with the samples of `mine`."""
    shutil.copytree(project.folder / "results/mine/raw", project.folder / "results" / name / "raw")
    project.compare(name)


def _write_files(project: Project) -> None:
    """Write parameter sets, tables of measured times and the other files that commands name."""
    folder = project.folder
    _write(folder / "loggp.yaml", LOGGP)
    _write(folder / "logp.yaml", LOGP)
    write_parameters(
        folder / "shares.yaml",
        read_data_sheet("shares", ROOT / "params/platforms/fat-tree-64.yaml"),
    )
    shutil.copy(ROOT / "params/published/lop/infiniband-send.yaml", folder / "lop.yaml")
    shutil.copy(ROOT / "params/published/tan/cab-mrnet.yaml", folder / "tan.yaml")
    write_speeds(folder / "speeds.yaml", SPEEDS)
    for name, cores in (("even", (2, 2, 2, 2)), ("uneven", (3, 1, 2, 2))):
        rows = [f"{rank},{rank // 2},{count},cpu" for rank, count in enumerate(cores)]
        _write(
            folder / f"params/layouts/mine/{name}.csv",
            "\n".join(["rank,node,cores,device", *rows]) + "\n",
        )
    _write(folder / "mine.csv", "rank,node,cores,device\n0,0,1,cpu\n1,0,1,cpu\n")
    _write(folder / "choices.csv", "operation,ranks,bytes,algorithm\nallreduce,8,1024,ring\n")
    _write(folder / "hosts.txt", "".join(f"n{number}\n" for number in range(80)))
    _write(folder / "osu_bcast.txt", OSU)
    for name, text in OF_FAT_NODES.items():
        _write(folder / name, text)
    for name, text in OSU_RESULTS.items():
        _write(folder / "osu-results" / name, text)
    project.verb("import", "osu-results", "--out", "imported")
    project.verb("fit", "table", "imported/table.csv", "--model", "library", "-o", "default.yaml")
    _write(folder / "bcast.csv", "ranks,bytes,time\n4,8,10\n4,1024,20\n")
    _write(folder / "collectives.csv", _measured(folder / "loggp.yaml"))
    for name, text in TABLES.items():
        _write(folder / "taulop-tables" / f"{name}.txt", text)
    project.verb("import", "taulop", "taulop-tables", "-o", "taulop.yaml")
    pico = folder / PICO
    _write(
        pico.parent.with_name("lumi_metadata.csv"),
        HEAD + line(0, 4, 1, "ALLREDUCE").replace(RUN, pico.name),
    )
    _write(pico / "0/64_ring_over_int32.csv", samples(9000, 5000))
    packed(pico)


def _measured(path: Path) -> str:
    """Return a table of collectives, predicted by LogGP, in two settings; times of `friday` are
    doubled."""
    points = [
        point("bcast", "binomial", ranks=ranks, bytes=8**k)
        for ranks in (2, 4, 8)
        for k in range(1, 7)
    ]
    points += [point("allreduce", "ring", ranks=4, bytes=8**k) for k in range(1, 7)]
    predictions = predict(read_parameters(path), points)
    rows = ["operation,algorithm,ranks,bytes,seconds,setting"]
    for setting, factor in (("monday", 1), ("friday", 2)):
        for row, prediction in zip(points, predictions, strict=True):
            rows.append(
                f"{row.operation},{row.algorithm},{row.ranks},{row.bytes},{prediction.seconds * factor},{setting}"
            )
    return "\n".join(rows) + "\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
