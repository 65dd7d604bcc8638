"""Trees on an overlay network over 600 hosts, which are network namespaces with ports of 4 Mbit/s,
a process each.

trees: the eight trees of the TAN paper, under TAN, LogP as drawn in that paper, and LogP as its
authors define it, fitted to the same chain and N-to-1. mrnet: start-up, round trip, throughput and
activities of the MRNet paper, to 512 back-ends. skew: the error of clock skews along the tree and
through it, of hosts that share one clock.

A port lets one frame pass at once and holds up those that follow. So frames are small, five to a
packet: with large ones a chain takes as long at any height, and two children as long as one.

python -m tests.labs.overlay_trees FOLDER [trees] [mrnet] [skew]    project/ in FOLDER keeps results and reports
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import fmean

import pandas as pd

from commodel_papers.mrnet import PAIRS
from commodel_papers.mrnet import TREES as MRNET_TREES
from commodel_papers.tan import FAMILIES, TREES
from tests.overlay.building import build

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HOSTS = [f"h{number}" for number in range(600)]  # an 8-way tree with 512 leaves has 585 nodes
RATE = "4mbit"  # what 256 hosts together send then, two processors of this machine can handle
FRAME = "320"  # bytes
QUEUE = 400_000  # bytes: nothing is thrown away
PLATFORM = f"""
title: {len(HOSTS)} network namespaces with ports of 4 Mbit/s, an overlay network
launcher: hosts
substrate: overlay
nodes: {len(HOSTS)}
cores: 1
hosts: {{names: [{", ".join(HOSTS)}]}}
"""
EXPERIMENTS = {
    "trees": f"""
title: The eight trees of the TAN paper on an overlay network over {len(HOSTS)} hosts
paper: tan
platform: netns-{len(HOSTS)}
models: [{", ".join(FAMILIES)}]
measure: {{precision: 5%, min_samples: 15, max_samples: 100, seconds: 3, passes: 1, warmup: 1}}
probe_bytes: [1KiB]
matrix:
  - axes:
      operation: reduce
      topology: {[spec for trees in TREES.values() for spec in trees.values()]}
      bytes: 1KiB
""",
    "mrnet": f"""
title: The MRNet paper's micro-benchmarks and activities on an overlay network over {len(HOSTS)} hosts
paper: mrnet
platform: netns-{len(HOSTS)}
models: [tan, logp]
measure: {{precision: 10%, min_samples: 4, max_samples: 12, seconds: 1, passes: 1, warmup: 1}}
probe_bytes: [8, 64]
matrix:
  - axes:
      operation: [overlay-startup, reduce, "overlay-throughput"]
      topology: {[spec for trees in MRNET_TREES.values() for spec in trees.values()]}
      bytes: 64
  - axes:
      operation: "overlay-classes:mode=binned"
      topology: {[spec for pair in PAIRS.values() for spec in pair]}
      bytes: [4KiB, 16KiB, 64KiB]
  - axes:
      operation: "reduce:filter=concat"
      topology: {[spec for pair in PAIRS.values() for spec in pair]}
      bytes: [64, 256, 1KiB]
  - axes: {{operation: "reduce:filter=max", topology: {[spec for pair in PAIRS.values() for spec in pair]}, bytes: 8}}
""",
}
COMMODEL = (sys.executable, "-m", "commodel")
SKEW_TREES = {"flat": [64], "8-way": [8, 8], "4-way": [4, 4, 4], "binary": [2] * 6}
SKEW_ROUNDS = (1, 10, 100)


def main(folder: Path, parts: list[str]) -> None:
    project, hosts = make_project(folder), folder / "hosts"
    own = {"LAB_HOSTS": " ".join(HOSTS), "LAB_RATE": RATE, "LAB_MTU": FRAME, "LAB_PRIORITY": ""}
    environment = os.environ | own | {"COMMODEL_AGENT": str(hosts / "agent")}

    def run(*command: object) -> None:
        subprocess.run([str(part) for part in command], cwd=project, env=environment, check=True)

    run(HERE / "network.sh", "up", hosts, QUEUE)
    try:
        for name in EXPERIMENTS.keys() & parts:
            run(*COMMODEL, "run", name)
        table = measure_skews(folder, hosts, environment) if "skew" in parts else None
    finally:
        run(HERE / "network.sh", "down", hosts)
    for name in EXPERIMENTS.keys() & parts:
        print(errors(project / "results" / name).round(3).to_string())
    if table is not None:
        print(table.round(1).to_string())


def make_project(folder: Path) -> Path:
    project = folder / "project"
    texts = [("platforms", f"netns-{len(HOSTS)}", PLATFORM)]
    for kind, name, text in [
        *texts,
        *(("experiments", name, text) for name, text in EXPERIMENTS.items()),
    ]:
        path = project / "params" / kind / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip())
    for name in ("Snakefile", "profiles", "slurm", "workflow"):
        (project / name).symlink_to(ROOT / name)
    return project


def errors(results: Path) -> pd.DataFrame:
    """Return the measured median in ms and μ of each model, by operation, tree, bytes and waves;
    the last line has the means."""
    compared = pd.read_csv(results / "comparison.csv")
    columns = [name for name in ("operation", "alternative", "bytes", "waves") if name in compared]
    compared["what"] = [" ".join(map(str, row)) for row in compared[columns].to_numpy()]
    table = compared.pivot_table(index="what", columns="model", values="mu")
    table.insert(0, "measured", compared.groupby("what")["measured"].first() * 1e3)
    table.loc["mean"] = table.mean().where(table.columns != "measured")
    return table


def write_tree(fanouts: list[int]) -> str:
    """Return a topology with one host for each process; the front-end is on the head."""
    lines, level, hosts = [], ["head:0"], iter(HOSTS)
    for fanout in fanouts:
        below = [[f"{next(hosts)}:0" for _ in range(fanout)] for _ in level]
        lines += [
            f"{parent} => {' '.join(children)} ;\n"
            for parent, children in zip(level, below, strict=True)
        ]
        level = [child for children in below for child in children]
    return "".join(lines)


def measure_skews(folder: Path, hosts: Path, environment: dict[str, str]) -> pd.DataFrame:
    """Return the mean error in µs of the clock skews of 64 back-ends, whose true skew is 0, by
    tree, load and rounds, along the tree and direct."""
    build(folder / "overlay", "-O2", ["drive"])
    rows = {}
    for name, fanouts in SKEW_TREES.items():
        (folder / "tree").write_text(write_tree(fanouts))
        for load in ("idle", "busy"):
            hogs = [
                subprocess.Popen(["sh", "-c", "while :; do :; done"])
                for _ in range(4 * (load == "busy"))
            ]
            commands = [f"skew {how} {rounds}" for rounds in SKEW_ROUNDS for how in (0, 1)]
            try:
                done = subprocess.run(
                    [
                        HERE / "network.sh",
                        "run",
                        hosts,
                        folder / "overlay" / "drive",
                        folder / "tree",
                    ],
                    input="\n".join([*commands, "quit\n"]),
                    env=environment
                    | {"DRIVE_LAUNCH": f"{hosts}/agent {{host}}", "DRIVE_BIND": "head"},
                    capture_output=True,
                    text=True,
                    check=True,
                )
            finally:
                for hog in hogs:
                    hog.kill()
                    hog.wait()
            answers = [json.loads(line) for line in done.stdout.splitlines()[1:]]
            skew_errors = [1e6 * fmean(map(abs, answer["seconds"])) for answer in answers]
            rows[name, load] = skew_errors
    columns = [(f"{rounds} rounds", how) for rounds in SKEW_ROUNDS for how in ("along", "direct")]
    return pd.DataFrame.from_dict(rows, orient="index", columns=pd.MultiIndex.from_tuples(columns))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:] or [*EXPERIMENTS, "skew"])
