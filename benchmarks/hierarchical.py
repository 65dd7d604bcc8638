"""Hierarchical algorithms against flat ones on simulated clusters of fat nodes, predicted and
measured: `make bench-hierarchical`. Measurements are cached in build/hierarchical. Minutes a
cluster.

A model ranks a workload rightly if the kind that it predicts to be the fastest, flat or
hierarchical, is at most 5 % slower than the other kind. Pairs of alternatives whose measured times
differ by more than 5 % are in the right order or not. Regret is the time lost by the alternative
that is predicted to be the fastest. Rows such as `loggp, port` are the predictions of a model,
raised to the least time in which the port of a node sends and receives its messages.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from benchmarks.networks import add_intervals, predict_points
from benchmarks.random_networks import XML_HEAD, make_config
from commodel.files.text_tables import format_table
from commodel.patterns.build import build_schedule
from commodel.patterns.repeated import sample_rounds
from commodel.plan.planning import make_plan
from commodel.platforms.build import build_toolchain
from commodel.platforms.tools import ROOT
from commodel.records import Plan, Point

EXPERIMENT = "hierarchical"
MODELS = ["hockney", "loggp", "hloggp", "plogp", "taulop", "shares"]
TIE = 1.05  # ratio of two times that are taken as equal


@dataclass(frozen=True)
class FatCluster:
    """A cluster of nodes with many cores. The ranks of a node share its memory and its port.
    `leaf` is the number of nodes on a leaf switch, whose uplink has the bandwidth of `uplinks`
    ports; 0: all nodes are on one switch."""

    nodes: int
    cores: int
    port: float  # bytes per second
    latency: float  # seconds
    memory: float
    overhead: float
    leaf: int = 0
    uplinks: int = 0

    def format_xml(self) -> str:
        lines = ['<zone id="all" routing="Full">\n']
        for node in range(self.nodes):
            lines.append(f'<host id="node-{node}" speed="1Gf" core="{self.cores}"/>\n')
            lines.append(
                f'<link id="memory-{node}" bandwidth="{self.memory:.0f}Bps" latency="0.2us" '
                'sharing_policy="SHARED"/>\n'
            )
            lines.append(self._format_link(f"port-{node}", self.port, self.latency / 2))
        leaves = range(self.nodes // self.leaf if self.leaf else 0)
        lines += [
            self._format_link(f"up-{leaf}", self.uplinks * self.port, self.latency / 2)
            for leaf in leaves
        ]
        for src in range(self.nodes):
            lines.append(
                f'<route src="node-{src}" dst="node-{src}"><link_ctn id="memory-{src}"/></route>\n'
            )
            for dst in range(self.nodes):
                if src != dst:
                    lines.append(self._format_route(src, dst))
        return "".join([XML_HEAD, *lines, "</zone>\n</platform>\n"])

    def _format_link(self, name: str, bandwidth: float, latency: float) -> str:
        return (
            f'<link id="{name}" bandwidth="{bandwidth:.0f}Bps" latency="{latency:g}s" '
            'sharing_policy="SPLITDUPLEX"/>\n'
        )

    def _format_route(self, src: int, dst: int) -> str:
        up, down = [f"port-{src}"], [f"port-{dst}"]
        if self.leaf and src // self.leaf != dst // self.leaf:
            up.append(f"up-{src // self.leaf}")
            down.insert(0, f"up-{dst // self.leaf}")
        links = [f'<link_ctn id="{name}" direction="UP"/>' for name in up]
        links += [f'<link_ctn id="{name}" direction="DOWN"/>' for name in down]
        return (
            f'<route src="node-{src}" dst="node-{dst}" symmetrical="NO">{"".join(links)}</route>\n'
        )


CLUSTERS = {
    "fat-ethernet": FatCluster(8, 4, port=125e6, latency=5e-5, memory=4e9, overhead=1e-6),
    "fat-infiniband": FatCluster(8, 8, port=6e9, latency=1.4e-6, memory=3e10, overhead=3e-7),
    "fat-leaves": FatCluster(
        16, 4, port=3e9, latency=2e-6, memory=2e10, overhead=4e-7, leaf=4, uplinks=2
    ),
}
LONG = [8, "16KiB", "1MiB"]
OPERATIONS = {
    "bcast": (
        ["binomial", "chain", "scatter-allgather", "scatter-allgather-ring", "linear"],
        [
            "hier",
            "hier:intra=linear",
            "hier:inter=chain:intra=chain",
            "hier:segment=64KiB",
            "lanes",
        ],
        LONG,
    ),
    "reduce": (
        ["binomial", "rabenseifner", "chain"],
        ["hier", "hier:inter=rabenseifner", "hier:segment=64KiB", "lanes"],
        LONG,
    ),
    "allreduce": (
        ["recursive-doubling", "ring", "rabenseifner"],
        [
            "hier",
            "hier:inter=ring",
            "hier:leaders=2:inter=rabenseifner",
            "hier:inter=binomial+binomial:segment=64KiB",
            "lanes",
            "lanes:inter=ring:intra=ring",
        ],
        LONG,
    ),
    "allgather": (
        ["ring", "bruck", "neighbor-exchange"],
        ["hier", "hier:inter=bruck", "lanes", "lanes:inter=bruck:intra=bruck"],
        [8, "1KiB", "16KiB"],
    ),
    "alltoall": (
        ["linear", "pairwise", "bruck"],
        ["hier", "hier:leaders=2", "lanes", "hier:inter=lanes:leaders=2"],
        [8, "1KiB"],
    ),
    "gather": (["binomial", "linear"], ["hier", "hier:inter=linear:intra=linear"], [8, "16KiB"]),
    "reduce-scatter": (["ring", "recursive-halving"], ["hier", "lanes"], LONG),
    "barrier": (["dissemination", "binomial"], ["hier", "hier:intra=binomial"], [0]),
}
CYCLIC = {"allreduce": ["by-node:ring"], "allgather": ["by-node:ring"], "bcast": ["by-node:chain"]}


def write_project(folder: Path) -> None:
    """Write the platforms and the experiment."""
    blocks = []
    for name, cluster in CLUSTERS.items():
        ranks = cluster.nodes * cluster.cores
        for operation, (flat, hierarchical, sizes) in OPERATIONS.items():
            for layout in ("block", "cyclic"):
                further = CYCLIC.get(operation, []) if layout == "cyclic" else []
                axes = {
                    "operation": operation,
                    "algorithm": [*flat, *hierarchical, *further],
                    "ranks": ranks,
                    "layout": f"{layout}:{cluster.cores}",
                }
                axes |= {} if operation == "barrier" else {"bytes": sizes}
                blocks.append({"platform": name, "axes": axes})
    write_experiment(folder, EXPERIMENT, "Hierarchical algorithms on fat nodes (simulated)", blocks)


def write_experiment(
    folder: Path, name: str, title: str, blocks: Sequence[Mapping[str, object]]
) -> None:
    """Write the platforms, and an experiment with these blocks of its matrix."""
    for kind in ("platforms", "experiments"):
        (folder / "params" / kind).mkdir(parents=True, exist_ok=True)
    for platform, cluster in CLUSTERS.items():
        write_platform(folder / "params/platforms", platform, cluster)
    experiment = {
        "title": title,
        "platform": next(iter(CLUSTERS)),
        "models": MODELS,
        "probes": "auto",
        "library": False,
        "seed": 1,
        "measure": {
            "sync": "window",
            "precision": "5%",
            "min_samples": 2,
            "max_samples": 3,
            "seconds": 0.5,
            "warmup": 1,
        },
        "probe_bytes": {"from": 1, "to": "1MiB", "factor": 4},
        "matrix": list(blocks),
    }
    (folder / "params/experiments" / f"{name}.yaml").write_text(yaml.safe_dump(experiment))


def write_platform(folder: Path, name: str, cluster: FatCluster) -> None:
    (folder / f"{name}.xml").write_text(cluster.format_xml())
    platform = {
        "title": f"Fat nodes: {name} (simulated)",
        "launcher": "simgrid",
        "nodes": cluster.nodes,
        "cores": cluster.cores,
        "simgrid": {"file": f"{name}.xml", "config": make_config(cluster.overhead, 65536)},
    }
    platform |= {"levels": {"leaf": cluster.leaf}} if cluster.leaf else {}
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(platform))


def is_hierarchical(algorithm: str) -> bool:
    return algorithm.partition(":")[0] in ("hier", "lanes", "by-node", "locality-bruck")


def limit_by_port(rows: pd.DataFrame, plan: Plan, port: float) -> pd.DataFrame:
    """Return the predictions of models without shared ports, at least as long as the port of a node
    takes."""
    names = [name for name in MODELS if name != "shares"]
    limited = rows[rows["model"].isin(names)]
    least = {
        point.id: find_busiest_port_bytes(point) / port
        for point in plan.points
        if point.predictable
    }
    return limited.assign(
        model=limited["model"] + ", port",
        seconds=np.maximum(limited["seconds"], limited["point"].map(least)),
    )


def find_busiest_port_bytes(point: Point) -> float:
    """Return the most bytes that a node sends to other nodes, or receives from them."""
    pattern = build_schedule(point)
    nodes = int(pattern.node.max()) + 1
    totals = np.zeros((2, nodes))
    for count, part in sample_rounds(pattern):
        sender, receiver = part.node[part.src], part.node[part.dst]
        between = sender != receiver
        lengths = part.bytes.reshape(-1, len(part.src))[0][between]
        for total, node in zip(totals, (sender, receiver), strict=True):
            total += count * np.bincount(node[between], lengths, minlength=nodes)
    return float(totals.max())


def score_workload(rows: pd.DataFrame) -> dict[str, float]:
    """Return whether the kind that is predicted to be the fastest is, the pairs in the right order
    and all pairs, and the regret."""
    measured, predicted = rows["measured"].to_numpy(), rows["seconds"].to_numpy()
    hierarchical = rows["algorithm"].map(is_hierarchical).to_numpy()
    chosen = int(predicted.argmin())
    of_kind = measured[hierarchical == hierarchical[chosen]].min()
    right = pairs = 0
    for one, two in combinations(range(len(rows)), 2):
        ratio = measured[one] / measured[two]
        if max(ratio, 1 / ratio) > TIE:
            pairs += 1
            right += (ratio > 1) == (predicted[one] > predicted[two])
    return {
        "kind": float(of_kind <= TIE * measured.min()),
        "right": right,
        "pairs": pairs,
        "regret": measured[chosen] / measured.min() - 1,
        "hierarchical": float(measured[hierarchical].min() < measured[~hierarchical].min()),
    }


def summarize(rows: pd.DataFrame) -> list[dict[str, object]]:
    """Return a line for each model."""
    lines: list[dict[str, object]] = []
    for model, of_model in rows.groupby("model", sort=False):
        workloads = [
            score_workload(part)
            for _, part in of_model.groupby("workload")
            if np.isfinite(part["seconds"]).all()
        ]
        if not workloads:
            continue
        scores = pd.DataFrame(workloads)
        errors = np.exp(np.abs(np.log(of_model["measured"] / of_model["seconds"])))
        lines.append(
            {
                "model": model,
                "workloads": len(scores),
                "hierarchical fastest": f"{100 * scores['hierarchical'].mean():.0f} %",
                "kind right": f"{100 * scores['kind'].mean():.0f} %",
                "pairs right": f"{100 * scores['right'].sum() / scores['pairs'].sum():.0f} %",
                "median factor": f"{errors.median():.2f}",
                "mean regret": f"{100 * scores['regret'].mean():.1f} %",
                "worst regret": f"{100 * scores['regret'].max():.0f} %",
            }
        )
    return lines


def main(names: list[str]) -> None:
    folder = ROOT / "build" / EXPERIMENT
    write_project(folder)
    build_toolchain(ROOT, "smpi")
    for name in names or list(CLUSTERS):
        with chdir(folder):
            plan = make_plan(EXPERIMENT, folder, name)
            rows = pd.DataFrame(predict_points(plan, name, folder, folder / "raw"))
        rows = add_intervals(rows)
        rows.to_csv(folder / f"{name}.csv", index=False)
        rows = pd.concat([rows, limit_by_port(rows, plan, CLUSTERS[name].port)])
        print(f"{name}: {len(plan.points)} points\n{format_table(summarize(rows))}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
