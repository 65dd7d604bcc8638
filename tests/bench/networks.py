"""Which models are right on simulated networks of several levels, and the regret of choosing by them: `make
bench-networks`, which measures in build/networks what it has not measured yet. Minutes a platform. Arguments:
platforms. With TABLE=T.csv `heldout` goes on with a measured table, in the same columns (`scores`).

A point's own workload has weight 0 in its interval. SimGrid shares links between flows by its own algorithm.

The first table has the networks of params/experiments/networks.yaml, whose files name levels. The second has networks
on which no model was developed. Their files name no levels: a survey learns them. Two of each kind have other ports,
oversubscription, latency and limits of eager messages; others have SimGrid's own settings, links selected by
destination, two cables a node, protocols by size. DRAWN networks are drawn at random by SEED (`random_networks`).
`write_unseen` makes a project of them.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from commodel.api.fits import read_data_sheet
from commodel.api.surveys import find_network
from commodel.cli._output import format_table
from commodel.compare.comparison import add_errors
from commodel.compare.comparison_intervals import scale_predictions
from commodel.compare.recommended import evaluate_recommended
from commodel.files.results_folder import Results
from commodel.files.safe_paths import SafePath
from commodel.fits.probe_fits import fit
from commodel.measure.batch import measure_batch
from commodel.plan.config import find_config_file, load_platform
from commodel.plan.planning import make_plan
from commodel.plan.surveys import is_survey, write_network
from commodel.platforms.build import build_toolchain
from commodel.platforms.tools import ROOT
from commodel.predictions.prediction_intervals import cross_validate
from commodel.predictions.predictions import predict
from commodel.predictions.residuals import AXES, Residuals, find_operation_class
from commodel.records import Plan
from commodel.results.collection import collect_samples
from tests.bench.heldout import scores
from tests.bench.random_networks import DEFAULTS, XML_HEAD, Network, draw_network, make_config

EXPERIMENT = "networks"
KEPT = ROOT / "build" / EXPERIMENT


def rows_of(plan: Plan, platform: str, project: Path, kept: Path) -> Iterator[dict]:
    """A row for each point and family."""
    raw = SafePath.of_argument(kept, project)
    for batch in plan.batches:
        measure_batch(plan, batch, raw / batch.name, lambda text: None)
    observations, _ = collect_samples(plan, raw, unfinished=True)
    times = observations[observations["valid"]].groupby("id")["seconds"].median()
    points = [point for point in plan.points if point.predictable and point.id in times]
    sets = {name: fit(plan, observations, name, platform) for name in plan.families}
    if load_platform(find_config_file("platform", platform)).data_sheet:
        sets["shares, sheet"] = read_data_sheet("shares", find_config_file("platform", platform))
    for name, parameters in sets.items():
        for prediction in predict(parameters, points, strict=False, draws=0):
            point = prediction.point
            yield {
                "platform": platform,
                "family": name,
                "workload": f"{point.workload} {point.layout}",
                "operation": point.operation,
                "point": point.id,
                "algorithm": point.algorithm,
                "alternative": point.alternative,
                "layout": point.layout,
                "levels_crossed": point.reach,
                "ranks": float(point.ranks),
                "nodes": float(point.nodes),
                "bytes": float(point.bytes),
                "measured": times[point.id],
                "predicted": prediction.seconds,
                "single_message_ratio": prediction.single_message_ratio,
                "validity": prediction.validity_text,
            }


def with_intervals(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each family's predictions: what those of other jobs were off; then the recommended prediction."""
    models = pd.concat([_with_intervals(own) for _, own in rows.groupby("family", sort=False)])
    once = {"held_out": True, "batch": "", "leaves": 0, "waves": 1}
    once |= {"measured_low": models["measured"], "measured_high": models["measured"]}
    recommended = evaluate_recommended(add_errors(models.assign(**once)))
    return pd.concat([models, recommended[list(models)]], ignore_index=True)


def _with_intervals(own: pd.DataFrame) -> pd.DataFrame:
    residuals = Residuals(
        np.log(own["measured"] / scale_predictions(own)).to_numpy(),
        own["operation"].map(find_operation_class).to_numpy(str),
        own["workload"].to_numpy(str),
        np.full(len(own), ""),
        {name: own[name].to_numpy(float) for name in AXES},
    )
    interval = cross_validate(residuals)
    ends = {"predicted_low": interval.low, "predicted_high": interval.high}
    return own.assign(**{name: scale_predictions(own) * np.exp(logs) for name, logs in ends.items()})


def planned(project: Path, raw: Path, platform: str) -> Plan:
    """Return the plan of a platform, after a survey of its network if its file names no levels."""
    plan, results = make_plan(EXPERIMENT, project, platform), Results.of(raw.parent)
    for batch in plan.batches:
        if is_survey(batch):
            measure_batch(plan, batch, results.all_raw / batch.name, lambda text: None)
            network = find_network(plan, batch, results)
            write_network(network)
            found = [f"{level} {max(column) + 1}" for level, column in network.levels.items()]
            print(f"{platform}: {', '.join(found) or 'no levels'}; slow: {', '.join(network.slow) or 'none'}")
            plan = make_plan(EXPERIMENT, project, platform)
    return plan


def scored(project: Path, kept: Path, platforms: list[str]) -> None:
    build_toolchain(ROOT, "smpi")
    with chdir(project):  # where a plan's platforms are looked for
        plans = {name: planned(project, kept, name) for name in platforms}
        rows = {name: pd.DataFrame(rows_of(plan, name, project, kept)) for name, plan in plans.items()}
    print(
        format_table([{"platform": name} | row for name, here in rows.items() for row in scores(with_intervals(here))])
    )


DRAWN = 4  # networks drawn at random
OPERATIONS = {
    "bcast": (["linear", "chain", "binomial", "scatter-allgather"], [8, "16KiB", "1MiB"]),
    "reduce": (["linear", "binomial", "rabenseifner"], [8, "16KiB", "1MiB"]),
    "allreduce": (["recursive-doubling", "ring", "rabenseifner"], [8, "16KiB", "1MiB"]),
    "allgather": (["ring", "bruck", "neighbor-exchange"], [8, "1KiB", "16KiB"]),
    "alltoall": (["linear", "pairwise", "bruck"], [8, "1KiB"]),
}


def cluster(name: str, nodes: range, link: str, speed: str, latency: str, rest: str = "") -> str:
    hosts = f'prefix="node-" suffix="" radical="{nodes[0]}-{nodes[-1]}" speed="1Gf" core="2"'
    line = f'bw="{speed}" lat="{latency}" loopback_bw="{link}" loopback_lat="0.3us" sharing_policy="SPLITDUPLEX"'
    return f'<cluster id="{name}" {hosts} {line} {rest}/>\n'


def switched(kind: str, shape: str, nodes: int, speed: str, latency: str) -> str:
    """A fat tree, a dragonfly or a torus, as SimGrid builds them."""
    return cluster("all", range(nodes), "8GBps", speed, latency, f'topology="{kind}" topo_parameters="{shape}"')


def trunks(clusters: int, each: int, speed: str, latency: str, trunk: str, far: str) -> str:
    """Clusters, each with one trunk to all others."""
    lines = ['<zone id="site" routing="Full">\n']
    for number in range(clusters):
        nodes = range(number * each, (number + 1) * each)
        lines.append(cluster(f"c{number}", nodes, "4GBps", speed, latency, f'router_id="gate-{number}"'))
    for number in range(clusters):
        lines.append(f'<link id="trunk-{number}" bandwidth="{trunk}" latency="{far}" sharing_policy="SPLITDUPLEX"/>\n')
    for one in range(clusters):
        for two in range(clusters):
            if one != two:
                ends = f'src="c{one}" dst="c{two}" gw_src="gate-{one}" gw_dst="gate-{two}" symmetrical="NO"'
                way = f'<link_ctn id="trunk-{one}" direction="UP"/><link_ctn id="trunk-{two}" direction="DOWN"/>'
                lines.append(f"<zoneRoute {ends}>{way}</zoneRoute>\n")
    return "".join([*lines, "</zone>\n"])


def behind(clusters: int, each: int, speed: str, latency: str, backbone: str, trunk: str, far: str) -> str:
    """Clusters, each with a backbone that its nodes share, and one line for all between them, for both ways."""
    lines = ['<zone id="site" routing="Full">\n']
    for number in range(clusters):
        nodes = range(number * each, (number + 1) * each)
        rest = f'bb_bw="{backbone}" bb_lat="5us" router_id="gate-{number}"'
        lines.append(cluster(f"c{number}", nodes, "4GBps", speed, latency, rest))
    lines.append(f'<link id="trunk" bandwidth="{trunk}" latency="{far}"/>\n')
    for one in range(clusters):
        for two in range(one + 1, clusters):
            ends = f'src="c{one}" dst="c{two}" gw_src="gate-{one}" gw_dst="gate-{two}"'
            lines.append(f'<zoneRoute {ends}><link_ctn id="trunk"/></zoneRoute>\n')
    return "".join([*lines, "</zone>\n"])


SENDS = "0:8.9e-6:7.7e-10;1420:1.4e-5:3e-10;32768:1.5e-5:2.4e-10;65536:2.4e-4:0;327680:0:0"
CALIBRATED = {  # like those that measurements of Ethernet clusters give: overheads and factors by size, three protocols
    "smpi/os": SENDS,
    "smpi/ois": SENDS,
    "smpi/or": "0:8.1e-6:8.4e-10;1420:1.3e-5:9.1e-10;32768:3.1e-5:7e-10;65536:0:0;327680:0:0",
    "smpi/bw-factor": "0:0.4;1420:0.91;32768:1.08;65536:0.96;327680:0.93",
    "smpi/lat-factor": "0:1;1420:1.24;32768:1.94;65536:3.6;327680:6",
    "smpi/async-small-thresh": "65536",
    "smpi/send-is-detached-thresh": "327680",
    "smpi/wtime": "0",
}
CABLES = {  # overheads that grow, and three protocols
    "smpi/os": "0:5e-7:0;4096:1e-6:1e-10",
    "smpi/ois": "0:5e-7:0",
    "smpi/or": "0:7e-7:0;8192:1.5e-6:2e-10",
    "smpi/bw-factor": "0:0.4;2048:0.7;32768:0.93",
    "smpi/lat-factor": "0:1.2;2048:1.8;32768:2.5",
    "smpi/async-small-thresh": "4096",
    "smpi/send-is-detached-thresh": "32768",
    "network/TCP-gamma": "0",
    "smpi/wtime": "0",
}

# name: nodes, settings, the network
PLATFORMS = {
    "fat-tree-96": (96, make_config(3e-7, 16384), switched("FAT_TREE", "2;8,12;1,2;1,1", 96, "3GBps", "1.1us")),
    "fat-tree-128": (
        128,
        make_config(8e-7, 65536),
        switched("FAT_TREE", "2;16,8;1,8;1,1", 128, "1GBps", "2us"),
    ),
    "trunks-64": (64, make_config(1e-6, 16384), trunks(2, 32, "500MBps", "3us", "1GBps", "50us")),
    "trunks-96": (96, make_config(4e-6, 32768), trunks(4, 24, "120MBps", "15us", "480MBps", "30us")),
    "dragonfly-64": (
        64,
        make_config(5e-7, 8192),
        switched("DRAGONFLY", "4,2;2,1;4,1;2", 64, "3GBps", "0.8us"),
    ),
    "dragonfly-128": (
        128,
        make_config(1e-6, 32768),
        switched("DRAGONFLY", "4,1;4,1;4,1;2", 128, "1GBps", "1.2us"),
    ),
    "fat-tree-64-plain": (64, DEFAULTS, switched("FAT_TREE", "2;16,4;1,8;1,1", 64, "1.25GBps", "5us")),
    "trunks-64-plain": (64, DEFAULTS, behind(2, 32, "125MBps", "25us", "1GBps", "125MBps", "500us")),
    "dragonfly-72-plain": (
        72,
        DEFAULTS,
        switched("DRAGONFLY", "3,1;3,1;4,1;2", 72, "1.25GBps", "2us"),
    ),
    "fat-tree-128-cables": (128, CABLES, switched("FAT_TREE", "2;16,8;1,4;2,1", 128, "3GBps", "600ns")),
    "fat-tree-64-calibrated": (
        64,
        CALIBRATED,
        switched("FAT_TREE", "2;8,8;1,2;1,1", 64, "125MBps", "20us"),
    ),
    "torus-64": (64, DEFAULTS, switched("TORUS", "4,4,4", 64, "1.25GBps", "2us")),
    "dragonfly-96-groups": (96, DEFAULTS, switched("DRAGONFLY", "4,2;3,1;4,2;2", 96, "1.5GBps", "1us")),
}


def write_unseen(folder: Path, seed: int) -> list[str]:
    """Write platforms without levels, DRAWN of them drawn at random, and return their names; `networks` is the
    experiment."""
    platforms, experiments = folder / "params" / "platforms", folder / "params" / "experiments"
    for made in (platforms, experiments):
        made.mkdir(parents=True, exist_ok=True)
    drawn = {f"drawn-{seed}-{number}": draw_network(10 * seed + number) for number in range(DRAWN)}
    for name, (nodes, config, body) in PLATFORMS.items():
        drawn[name] = Network(name, nodes, f"{XML_HEAD}{body}</platform>\n", config)
    matrix = []
    for name, network in drawn.items():
        about = {"title": f"{network.title} (simulated)", "launcher": "simgrid", "nodes": network.nodes, "cores": 2}
        about |= {"types": network.types} if network.types else {}
        about["simgrid"] = {"file": f"{name}.xml", "config": network.config}
        (platforms / f"{name}.yaml").write_text(yaml.safe_dump(about, sort_keys=False))
        (platforms / f"{name}.xml").write_text(network.xml)
        ranks = [min(64, network.nodes), min(96, 2 * network.nodes)]
        where = {"where": {"ranks": ranks, "layout": ["block:1", "cyclic:2"]}}
        matrix += [
            {"platform": name, "axes": {"operation": operation, "algorithm": algorithms, "bytes": sizes}, "zips": where}
            for operation, (algorithms, sizes) in OPERATIONS.items()
        ]
    measure = {"sync": "window", "precision": "5%", "min_samples": 2, "max_samples": 2, "seconds": 0.5, "warmup": 1}
    about = {"title": "Networks that no model was made for (simulated)", "platform": next(iter(PLATFORMS))}
    about |= {"families": ["loggp", "shares"], "probes": "auto", "library": False, "seed": 1, "measure": measure}
    about |= {"probe_bytes": {"from": 1, "to": "1MiB", "factor": 4}, "matrix": matrix}
    (experiments / "networks.yaml").write_text(yaml.safe_dump(about, sort_keys=False))
    return list(drawn)


def main(only: list[str]) -> None:
    build_toolchain(ROOT, "replay")
    project = KEPT / "unseen"
    seed = int(os.environ.get("SEED") or time.time())
    known, unseen = list(make_plan(EXPERIMENT, ROOT).platforms), write_unseen(project, seed)
    scored(ROOT, KEPT, [name for name in known if name in (only or known)])
    if others := [name for name in unseen if name in (only or unseen)]:
        print(f"\nOn which no model was developed, levels learned; drawn at random by SEED={seed}:")
        scored(project, project / "raw", others)


if __name__ == "__main__":
    main(sys.argv[1:])
