"""The eight trees of the TAN paper on an overlay network over 256 hosts, which are network namespaces with ports of
4 Mbit/s, a process each as the paper has it: TAN, LogP as that paper drew it, and LogP as its authors define it, fitted
to the same chain and N-to-1.

A port lets one frame pass at once and holds up those that follow. So frames are small, five to a packet: with
large ones a chain takes as long at any height, and two children as long as one.

python -m tests.lab.overlay_trees FOLDER    an empty folder; its project/ keeps results and reports
"""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd

from commodel.predictions.papers.tan import FAMILIES, TREES

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HOSTS = [f"h{number}" for number in range(256)]  # a binomial tree with 128 leaves has as many nodes
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
EXPERIMENT = f"""
title: The eight trees of the TAN paper on an overlay network over {len(HOSTS)} hosts
paper: tan
platform: netns-{len(HOSTS)}
families: [{", ".join(FAMILIES)}]
measure: {{precision: 5%, min_samples: 15, max_samples: 100, seconds: 3, passes: 1, warmup: 1}}
probe_bytes: [1KiB]
matrix:
  - axes:
      operation: reduce
      topology: {[spec for trees in TREES.values() for spec in trees.values()]}
      bytes: 1KiB
"""
COMMODEL = (sys.executable, "-m", "commodel")


def main(folder: Path) -> None:
    project, hosts = make_project(folder), folder / "hosts"
    own = {"LAB_HOSTS": " ".join(HOSTS), "LAB_RATE": RATE, "LAB_MTU": FRAME, "LAB_PRIORITY": ""}
    environment = os.environ | own | {"COMMODEL_AGENT": str(hosts / "agent")}

    def run(*command: object) -> None:
        subprocess.run([str(part) for part in command], cwd=project, env=environment, check=True)

    run(HERE / "network.sh", "up", hosts, QUEUE)
    try:
        run(*COMMODEL, "run", "trees")
    finally:
        run(HERE / "network.sh", "down", hosts)
    print(errors(project / "results" / "trees").round(3).to_string())


def make_project(folder: Path) -> Path:
    project = folder / "project"
    for kind, name, text in (("platforms", f"netns-{len(HOSTS)}", PLATFORM), ("experiments", "trees", EXPERIMENT)):
        path = project / "params" / kind / f"{name}.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(text.lstrip())
    for name in ("Snakefile", "profiles", "slurm", "workflow"):
        (project / name).symlink_to(ROOT / name)
    return project


def errors(results: Path) -> pd.DataFrame:
    """By tree: the median in ms, and μ of each family; their means in the last line."""
    compared = pd.read_csv(results / "comparison.csv")
    table = compared.pivot_table(index="alternative", columns="family", values="mu")
    table.insert(0, "measured", compared.groupby("alternative")["measured"].first() * 1e3)
    table.loc["mean"] = table.mean().where(table.columns != "measured")
    return table


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
