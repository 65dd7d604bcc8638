"""The tasks of HAN against models fitted to probes, on simulated clusters of fat nodes: `make
bench-han`. Measurements are cached in build/han-tasks.

HAN (Luo et al., Cluster 2020) predicts a pipeline of segments through the leaders of nodes from the
measured times of its tasks: what a leader does in one step. Once all tasks overlap, each further
segment adds the time of one step. This bench measures the step as the difference between two short
pipelines, which have just enough segments for all tasks, and predicts longer pipelines from it. The
models predict the same pipelines from probes, without any measured collective.

A line is for one cluster, operation and size of the segments. Factors are max(predicted/measured,
measured/predicted), the median and the worst over the longer pipelines.
"""

from __future__ import annotations

import sys
from contextlib import chdir

import numpy as np
import pandas as pd

from benchmarks.hierarchical import CLUSTERS, write_experiment
from benchmarks.networks import predict_points
from commodel.files.text_tables import format_table
from commodel.plan.planning import make_plan
from commodel.platforms.build import build_toolchain
from commodel.platforms.tools import ROOT
from commodel.units import format_bytes, parse_bytes

EXPERIMENT = "han-tasks"
SEGMENTS = [16 << 10, 64 << 10]  # bytes
# algorithm, and the number of segments from which on all tasks of HAN overlap
PIPELINES = {
    "bcast": ("hier:segment={}", 2),
    "reduce": ("hier:segment={}", 2),
    "allreduce": ("hier:inter=binomial+binomial:segment={}", 4),
}
LONGER = [8, 16, 32]  # segments
MODELS = ["shares", "taulop", "hloggp", "loggp"]


def list_blocks() -> list[dict[str, object]]:
    blocks: list[dict[str, object]] = []
    for name, cluster in CLUSTERS.items():
        for operation, (algorithm, overlapping) in PIPELINES.items():
            for segment in SEGMENTS:
                counts = [overlapping, overlapping + 1, *LONGER]
                axes = {
                    "operation": operation,
                    "algorithm": algorithm.format(segment),
                    "ranks": cluster.nodes * cluster.cores,
                    "layout": f"block:{cluster.cores}",
                    "bytes": [count * segment for count in counts],
                }
                blocks.append({"platform": name, "axes": axes})
    return blocks


def score_pipeline(rows: pd.DataFrame, segment: int, overlapping: int) -> dict[str, str]:
    """Return the factors of HAN's prediction and of the models for the longer pipelines."""
    count = (rows["bytes"] // segment).astype(int)
    measured = rows.groupby(count)["measured"].first()
    step = measured[overlapping + 1] - measured[overlapping]
    predicted = {
        "tasks": {
            number: measured[overlapping] + (number - overlapping) * step for number in LONGER
        }
    }
    for model in MODELS:
        of_model = rows[rows["model"] == model]
        predicted[model] = dict(zip(count[of_model.index], of_model["seconds"], strict=True))
    scores = {}
    for name, times in predicted.items():
        ratios = np.array([times[number] / measured[number] for number in LONGER])
        factors = np.maximum(ratios, 1 / ratios)
        scores[name] = f"{np.median(factors):.2f}, {factors.max():.2f}"
    return scores


def main(names: list[str]) -> None:
    folder = ROOT / "build" / EXPERIMENT
    write_experiment(folder, EXPERIMENT, "Pipelines of segments (simulated)", list_blocks())
    build_toolchain(ROOT, "smpi")
    lines = []
    for name in names or list(CLUSTERS):
        with chdir(folder):
            plan = make_plan(EXPERIMENT, folder, name)
            rows = pd.DataFrame(predict_points(plan, name, folder, folder / "raw"))
        rows.to_csv(folder / f"{name}.csv", index=False)
        for (operation, algorithm), pipeline in rows.groupby(
            ["operation", "algorithm"], sort=False
        ):
            segment = parse_bytes(algorithm.rpartition("=")[2])
            line = {"cluster": name, "operation": operation, "segment": format_bytes(segment)}
            lines.append(line | score_pipeline(pipeline, segment, PIPELINES[operation][1]))
    print(format_table(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
