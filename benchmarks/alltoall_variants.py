"""Predictions of measured variants of alltoall: `make bench-alltoall DATA=FOLDER [MODELS=…]`.

FOLDER has `microbench-dane.txt`, the probes of MPI Advance, and `alltoall-dane.csv`, the variants of
Bienz et al. on nodes of 112 ranks. Models are fitted to the probes alone. Times are medians of jobs.
A line is for one number of nodes: the error factor μ of a prediction in the median, the share of
pairs of variants in the right order, and the regret of taking the variant that is predicted to be
the fastest. Pairs whose measured times differ by at most 5 % are not counted. Variants that stall,
see `is_stalled`, are left out.
"""

from __future__ import annotations

import argparse
import time
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import commodel
from benchmarks.mpi_advance import EXCHANGES
from commodel.errors import UserError
from commodel.files.text_tables import format_table
from commodel.models.parameter_sets import read_set
from commodel.parameters import ParameterSet
from commodel.patterns.build import build_schedule
from commodel.patterns.points import PlatformResources, make_point
from commodel.predictions.model import Model
from commodel.records import Point

RANKS_PER_NODE = 112
TIE = 1.05  # ratio of two times that are taken as equal
MAX_STALLED_BYTES = 1024
MIN_STALLED_NODES = 4
DRAWS = 1


def choose_gather(members: int, bytes: int) -> str:
    """Return the gather that Open MPI's tuned component takes for blocks of these bytes."""
    if bytes > 92160:
        return "linear-sync:32768"
    if bytes > 6000:
        return "linear-sync:1024"
    if members > 60 or (members > 10 and bytes < 1024):
        return "binomial"
    return "linear"


def choose_scatter(members: int, bytes: int) -> str:
    return "binomial" if members > 10 and bytes < 300 else "linear"


def name_variant(row: pd.Series) -> str:
    """Return the spec of a measured variant."""
    exchange = EXCHANGES[row["exchange"]]
    leaders = 0 if np.isnan(row["leaders_per_node"]) else int(row["leaders_per_node"])
    kind = row["algorithm"]
    lanes = f"inter={exchange}:intra={exchange}"
    if kind == "node-aware":
        return f"lanes:{lanes}"
    if kind == "locality-aware":
        return f"lanes:{lanes}:leaders={leaders}"
    members = RANKS_PER_NODE // leaders
    block = int(row["ranks"] * row["bytes_per_pair"])
    within = f"intra={choose_gather(members, block)}+{choose_scatter(members, block)}"
    if kind == "multileader-node-aware":
        exchange = f"lanes({lanes.replace(':', ',')})"
    return f"hier:inter={exchange}:{within}:leaders={leaders}"


def is_stalled(row: pd.Series) -> bool:
    """Return whether a variant may stall: with many messages in flight, some take 0.16 s or
    multiples, which no model of latency and bandwidth predicts."""
    return (
        row["exchange"] == "nonblocking"
        and row["algorithm"] in ("locality-aware", "multileader")
        and row["bytes_per_pair"] <= MAX_STALLED_BYTES
        and row["nodes"] >= MIN_STALLED_NODES
    )


def read_variants(path: Path) -> pd.DataFrame:
    """Return the variants with the median time of all jobs."""
    rows = pd.read_csv(path)
    rows = rows[(rows["phase"] == "total") & (rows["algorithm"] != "library")]
    keys = ["nodes", "ranks", "bytes_per_pair", "algorithm", "exchange", "leaders_per_node"]
    times = rows.groupby(keys, dropna=False)["seconds"].median().reset_index()
    times = times[~times.apply(is_stalled, axis=1)]
    return times.assign(spec=times.apply(name_variant, axis=1))


def fit_probes(path: Path, models: list[str], folder: Path) -> dict[str, ParameterSet]:
    """Return the models fitted to the probes alone."""
    table = folder / "pairs.csv"
    commodel.import_("microbench", path).frame.to_csv(table, index=False)
    sets = {}
    for name in models:
        commodel.fit(table, model=name, out=folder / f"{name}.yaml")
        sets[name] = read_set(folder / f"{name}.yaml")
    return sets


def make_variant_point(resources: PlatformResources, row: pd.Series) -> Point:
    return make_point(
        resources,
        {
            "operation": "alltoall",
            "algorithm": row["spec"],
            "ranks": int(row["ranks"]),
            "bytes": int(row["bytes_per_pair"]),
            "layout": f"block:{RANKS_PER_NODE}",
        },
    )


def predict_variants(sets: dict[str, ParameterSet], variants: pd.DataFrame) -> pd.DataFrame:
    """Return the variants with the predicted time of each model, NaN where it has none."""
    nodes = int(variants["nodes"].max())
    resources = PlatformResources("dane", nodes, RANKS_PER_NODE)
    models = {name: Model.of_set(parameters, DRAWS) for name, parameters in sets.items()}
    predicted: dict[str, list[float]] = {name: [] for name in models}
    for _, row in variants.iterrows():
        pattern = build_schedule(make_variant_point(resources, row))
        for name, model in models.items():
            try:
                predicted[name].append(float(np.ravel(model.cost(pattern))[0]))
            except UserError:
                predicted[name].append(np.nan)
    return variants.assign(**predicted)


def score(rows: pd.DataFrame, model: str) -> dict[str, object]:
    """Return the scores of a model over several workloads."""
    factor = np.exp(np.abs(np.log(rows[model] / rows["seconds"])))
    right = pairs = 0
    regrets = []
    for _, workload in rows.groupby("bytes_per_pair"):
        measured, predicted = workload["seconds"].to_numpy(), workload[model].to_numpy()
        for one, two in combinations(range(len(workload)), 2):
            ratio = measured[one] / measured[two]
            if max(ratio, 1 / ratio) > TIE:
                pairs += 1
                right += (ratio > 1) == (predicted[one] > predicted[two])
        regrets.append(measured[predicted.argmin()] / measured.min() - 1)
    return {
        "median μ": f"{factor.median():.2f}",
        "worst μ": f"{factor.max():.1f}",
        "bias": f"{np.exp(np.median(np.log(rows['seconds'] / rows[model]))):.2f}",
        "pairs right": f"{100 * right / pairs:.0f} %",
        "mean regret": f"{100 * np.mean(regrets):.1f} %",
        "worst regret": f"{100 * max(regrets):.0f} %",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--nodes", type=int, nargs="*", default=[2, 4, 8])
    parser.add_argument("--bytes", type=int, nargs="*", default=[])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    variants = read_variants(arguments.folder / "alltoall-dane.csv")
    if arguments.bytes:
        variants = variants[variants["bytes_per_pair"].isin(arguments.bytes)]
    with TemporaryDirectory() as folder:
        sets = fit_probes(
            arguments.folder / "microbench-dane.txt",
            arguments.model or ["shares", "taulop", "loggp", "hockney"],
            Path(folder),
        )
    lines = []
    tables = []
    for nodes in arguments.nodes:
        started = time.process_time()
        rows = predict_variants(sets, variants[variants["nodes"] == nodes])
        tables.append(rows)
        seconds = time.process_time() - started
        lines += [{"nodes": nodes, "model": name, **score(rows, name)} for name in sets]
        print(f"{nodes} nodes: {len(rows)} points, {seconds:.0f} s of CPU time", flush=True)
    if arguments.out:
        pd.concat(tables).to_csv(arguments.out, index=False)
    print(format_table(lines))


if __name__ == "__main__":
    main()
