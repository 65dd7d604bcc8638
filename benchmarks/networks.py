"""Errors of the models on simulated networks of several levels, and the regret of choosing by them:
`make bench-networks`. Measurements are cached in build/networks. Minutes a platform. Arguments:
platforms. With TABLE=T.csv, `heldout` prints the same columns for a measured table
(`score_models`).

The interval of a point does not use its own workload. SimGrid shares links between flows by its own
algorithm.

The first table has the networks of params/experiments/networks.yaml, whose files name levels. The
second has networks on which no model was developed. Their files name no levels: a survey learns
them. Two of each kind have other ports, oversubscription, latency and limits of eager messages;
others have SimGrid's own settings, links selected by destination, two cables a node, protocols by
size. DRAWN networks are drawn at random by SEED (`random_networks`). `write_other_networks` writes
a project with them.
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

from benchmarks.heldout import prepare_scores, score_models
from benchmarks.random_networks import DEFAULTS, XML_HEAD, Network, draw_network, make_config
from commodel.api.fits import read_data_sheet
from commodel.api.surveys import find_network
from commodel.compare.comparison import add_errors
from commodel.compare.recommended import evaluate_recommended
from commodel.files.results_folder import Results
from commodel.files.safe_paths import SafePath
from commodel.files.text_tables import format_table
from commodel.fits.probe_fits import fit
from commodel.measure.batch import measure_batch
from commodel.plan.config import find_config_file, load_platform
from commodel.plan.planning import make_plan
from commodel.plan.surveys import is_survey, write_network
from commodel.platforms.build import build_toolchain
from commodel.platforms.tools import ROOT
from commodel.predictions.places import Places
from commodel.predictions.predictions import predict
from commodel.predictions.residual_model import MeasuredResiduals, ResidualModel
from commodel.records import Plan
from commodel.results.collection import collect_samples

EXPERIMENT = "networks"
MEASUREMENTS = ROOT / "build" / EXPERIMENT


def predict_points(plan: Plan, platform: str, project: Path, raw_folder: Path) -> Iterator[dict]:
    """Yield a row for each point and model: its measured and predicted time."""
    raw = SafePath.of_argument(raw_folder, project)
    for batch in plan.batches:
        measure_batch(plan, batch, raw / batch.name, lambda text: None)
    observations, _ = collect_samples(plan, raw, unfinished=True)
    times = observations[observations["valid"]].groupby("id")["seconds"].median()
    points = [point for point in plan.points if point.predictable and point.id in times]
    sets = {name: fit(plan, observations, name, platform) for name in plan.models}
    if load_platform(find_config_file("platform", platform)).data_sheet:
        sets["shares, sheet"] = read_data_sheet("shares", find_config_file("platform", platform))
    for name, parameters in sets.items():
        for prediction in predict(parameters, points, strict=False, draws=0):
            point = prediction.point
            yield {
                "platform": platform,
                "model": name,
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
                "seconds": prediction.seconds,
                "single_message_ratio": prediction.single_message_ratio,
                "validity": prediction.validity_text,
            }


def add_intervals(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the predictions with intervals from the residuals of other workloads, and the
    recommended prediction."""
    models = pd.concat(
        [_add_intervals(rows_of_model) for _, rows_of_model in rows.groupby("model", sort=False)]
    )
    columns = {"held_out": True, "batch": "", "leaves": 0, "waves": 1, "simulated": True}
    columns |= {"measured_low": models["measured"], "measured_high": models["measured"]}
    recommended = evaluate_recommended(add_errors(models.assign(**columns)))
    return pd.concat([models, recommended[list(models)]], ignore_index=True)


def _add_intervals(rows: pd.DataFrame) -> pd.DataFrame:
    places = Places.of_rows(rows.assign(leaves=0, waves=1))
    model = ResidualModel.fit(
        MeasuredResiduals.of(places, np.log(rows["measured"] / rows["seconds"]).to_numpy())
    )
    assert model is not None
    logs, half_width, _ = model.predict_left_out()
    low, high = (rows["seconds"] * np.exp(end) for end in (logs - half_width, logs + half_width))
    return rows.assign(low=low, high=high)


def plan_platform(project: Path, raw: Path, platform: str) -> Plan:
    """Return the plan of a platform, after a survey of its network if its file names no levels."""
    plan, results = make_plan(EXPERIMENT, project, platform), Results.of(raw.parent)
    for batch in plan.batches:
        if is_survey(batch):
            measure_batch(plan, batch, results.all_raw / batch.name, lambda text: None)
            network = find_network(plan, batch, results)
            write_network(network)
            group_counts = [
                f"{level} {max(column) + 1}" for level, column in network.levels.items()
            ]
            print(
                f"{platform}: {', '.join(group_counts) or 'no levels'}; slow: {', '.join(network.slow) or 'none'}"
            )
            plan = make_plan(EXPERIMENT, project, platform)
    return plan


def print_scores(project: Path, raw_folder: Path, platforms: list[str]) -> None:
    build_toolchain(ROOT, "smpi")
    with chdir(project):  # platform files are found in this folder
        plans = {name: plan_platform(project, raw_folder, name) for name in platforms}
        rows = {
            name: pd.DataFrame(predict_points(plan, name, project, raw_folder))
            for name, plan in plans.items()
        }
    print(
        format_table(
            [
                {"platform": name} | row
                for name, rows_of_platform in rows.items()
                for row in score_models(prepare_scores(add_intervals(rows_of_platform)))
            ]
        )
    )


DRAWN = 4  # networks drawn at random
OPERATIONS = {
    "bcast": (["linear", "chain", "binomial", "scatter-allgather"], [8, "16KiB", "1MiB"]),
    "reduce": (["linear", "binomial", "rabenseifner"], [8, "16KiB", "1MiB"]),
    "allreduce": (["recursive-doubling", "ring", "rabenseifner"], [8, "16KiB", "1MiB"]),
    "allgather": (["ring", "bruck", "neighbor-exchange"], [8, "1KiB", "16KiB"]),
    "alltoall": (["linear", "pairwise", "bruck"], [8, "1KiB"]),
}


FULL_DUPLEX, HALF_DUPLEX = "SPLITDUPLEX", "SHARED"  # of SimGrid's links


def make_cluster(
    name: str,
    nodes: range,
    link: str,
    speed: str,
    latency: str,
    attributes: str = "",
    duplex: str = FULL_DUPLEX,
) -> str:
    hosts = f'prefix="node-" suffix="" radical="{nodes[0]}-{nodes[-1]}" speed="1Gf" core="2"'
    link_attributes = (
        f'bw="{speed}" lat="{latency}" loopback_bw="{link}" loopback_lat="0.3us" '
        f'sharing_policy="{duplex}"'
    )
    return f'<cluster id="{name}" {hosts} {link_attributes} {attributes}/>\n'


def make_switched(
    kind: str, shape: str, nodes: int, speed: str, latency: str, duplex: str = FULL_DUPLEX
) -> str:
    """Return a fat tree, a dragonfly or a torus as SimGrid builds it."""
    attributes = f'topology="{kind}" topo_parameters="{shape}"'
    return make_cluster("all", range(nodes), "8GBps", speed, latency, attributes, duplex)


def make_trunks(
    clusters: int, nodes_per_cluster: int, speed: str, latency: str, trunk: str, trunk_latency: str
) -> str:
    """Return clusters, each with one trunk link to all others."""
    lines = ['<zone id="site" routing="Full">\n']
    for number in range(clusters):
        nodes = range(number * nodes_per_cluster, (number + 1) * nodes_per_cluster)
        lines.append(
            make_cluster(f"c{number}", nodes, "4GBps", speed, latency, f'router_id="gate-{number}"')
        )
    for number in range(clusters):
        lines.append(
            f'<link id="trunk-{number}" bandwidth="{trunk}" latency="{trunk_latency}" sharing_policy="SPLITDUPLEX"/>\n'
        )
    for one in range(clusters):
        for two in range(clusters):
            if one != two:
                ends = (
                    f'src="c{one}" dst="c{two}" gw_src="gate-{one}" gw_dst="gate-{two}" '
                    'symmetrical="NO"'
                )
                route = (
                    f'<link_ctn id="trunk-{one}" direction="UP"/><link_ctn id="trunk-{two}" '
                    'direction="DOWN"/>'
                )
                lines.append(f"<zoneRoute {ends}>{route}</zoneRoute>\n")
    return "".join([*lines, "</zone>\n"])


def make_backbones(
    clusters: int,
    nodes_per_cluster: int,
    speed: str,
    latency: str,
    backbone: str,
    trunk: str,
    trunk_latency: str,
) -> str:
    """Return clusters with a shared backbone each, and one link between all of them for both
    directions."""
    lines = ['<zone id="site" routing="Full">\n']
    for number in range(clusters):
        nodes = range(number * nodes_per_cluster, (number + 1) * nodes_per_cluster)
        attributes = f'bb_bw="{backbone}" bb_lat="5us" router_id="gate-{number}"'
        lines.append(make_cluster(f"c{number}", nodes, "4GBps", speed, latency, attributes))
    lines.append(f'<link id="trunk" bandwidth="{trunk}" latency="{trunk_latency}"/>\n')
    for one in range(clusters):
        for two in range(one + 1, clusters):
            ends = f'src="c{one}" dst="c{two}" gw_src="gate-{one}" gw_dst="gate-{two}"'
            lines.append(f'<zoneRoute {ends}><link_ctn id="trunk"/></zoneRoute>\n')
    return "".join([*lines, "</zone>\n"])


def make_wide_area(
    nodes: tuple[int, int], speeds: tuple[str, str], latencies: tuple[str, str], wide: str
) -> str:
    """Return two clusters that differ, joined by a link of 10 ms for both directions."""
    first, second = range(nodes[0]), range(nodes[0], sum(nodes))
    clusters = zip((first, second), speeds, latencies, strict=True)
    bodies = [
        make_cluster(
            f"c{number}", *(members, "4GBps", speed, latency, f'router_id="gate-{number}"')
        )
        for number, (members, speed, latency) in enumerate(clusters)
    ]
    route = (
        '<zoneRoute src="c0" dst="c1" gw_src="gate-0" gw_dst="gate-1"><link_ctn '
        'id="wide"/></zoneRoute>\n'
    )
    link = f'<link id="wide" bandwidth="{wide}" latency="10ms"/>\n'
    return "".join(['<zone id="site" routing="Full">\n', *bodies, link, route, "</zone>\n"])


SENDS = "0:8.9e-6:7.7e-10;1420:1.4e-5:3e-10;32768:1.5e-5:2.4e-10;65536:2.4e-4:0;327680:0:0"
CALIBRATED = {  # as calibrated on Ethernet clusters: overheads and factors by size, three protocols
    "smpi/os": SENDS,
    "smpi/ois": SENDS,
    "smpi/or": "0:8.1e-6:8.4e-10;1420:1.3e-5:9.1e-10;32768:3.1e-5:7e-10;65536:0:0;327680:0:0",
    "smpi/bw-factor": "0:0.4;1420:0.91;32768:1.08;65536:0.96;327680:0.93",
    "smpi/lat-factor": "0:1;1420:1.24;32768:1.94;65536:3.6;327680:6",
    "smpi/async-small-thresh": "65536",
    "smpi/send-is-detached-thresh": "327680",
    "smpi/wtime": "0",
}
CABLES = {  # overheads that grow with the size, and three protocols
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
    "fat-tree-96": (
        96,
        make_config(3e-7, 16384),
        make_switched("FAT_TREE", "2;8,12;1,2;1,1", 96, "3GBps", "1.1us"),
    ),
    "fat-tree-128": (
        128,
        make_config(8e-7, 65536),
        make_switched("FAT_TREE", "2;16,8;1,8;1,1", 128, "1GBps", "2us"),
    ),
    "trunks-64": (
        64,
        make_config(1e-6, 16384),
        make_trunks(2, 32, "500MBps", "3us", "1GBps", "50us"),
    ),
    "trunks-96": (
        96,
        make_config(4e-6, 32768),
        make_trunks(4, 24, "120MBps", "15us", "480MBps", "30us"),
    ),
    "dragonfly-64": (
        64,
        make_config(5e-7, 8192),
        make_switched("DRAGONFLY", "4,2;2,1;4,1;2", 64, "3GBps", "0.8us"),
    ),
    "dragonfly-128": (
        128,
        make_config(1e-6, 32768),
        make_switched("DRAGONFLY", "4,1;4,1;4,1;2", 128, "1GBps", "1.2us"),
    ),
    "fat-tree-64-plain": (
        64,
        DEFAULTS,
        make_switched("FAT_TREE", "2;16,4;1,8;1,1", 64, "1.25GBps", "5us"),
    ),
    "trunks-64-plain": (
        64,
        DEFAULTS,
        make_backbones(2, 32, "125MBps", "25us", "1GBps", "125MBps", "500us"),
    ),
    "dragonfly-72-plain": (
        72,
        DEFAULTS,
        make_switched("DRAGONFLY", "3,1;3,1;4,1;2", 72, "1.25GBps", "2us"),
    ),
    "fat-tree-128-cables": (
        128,
        CABLES,
        make_switched("FAT_TREE", "2;16,8;1,4;2,1", 128, "3GBps", "600ns"),
    ),
    "fat-tree-64-calibrated": (
        64,
        CALIBRATED,
        make_switched("FAT_TREE", "2;8,8;1,2;1,1", 64, "125MBps", "20us"),
    ),
    "torus-64": (64, DEFAULTS, make_switched("TORUS", "4,4,4", 64, "1.25GBps", "2us")),
    "torus-63": (63, DEFAULTS, make_switched("TORUS", "7,9", 63, "1.25GBps", "2us")),
    "torus-27-half-duplex": (
        27,
        make_config(5e-7, 8192),
        make_switched("TORUS", "3,3,3", 27, "3GBps", "1us", HALF_DUPLEX),
    ),
    "backbone-24-half-duplex": (
        24,
        DEFAULTS,
        make_cluster(
            "all", range(24), "4GBps", "125MBps", "50us", 'bb_bw="1GBps" bb_lat="10us"', HALF_DUPLEX
        ),
    ),
    "wide-area-60": (
        60,
        DEFAULTS,
        make_wide_area((40, 20), ("1.25GBps", "125MBps"), ("10us", "30us"), "100MBps"),
    ),
    "dragonfly-96-groups": (
        96,
        DEFAULTS,
        make_switched("DRAGONFLY", "4,2;3,1;4,2;2", 96, "1.5GBps", "1us"),
    ),
}


def write_other_networks(folder: Path, seed: int) -> list[str]:
    """Write the experiment `networks` and its platforms, DRAWN of them random; return the names of
    the platforms."""
    platforms, experiments = folder / "params" / "platforms", folder / "params" / "experiments"
    for directory in (platforms, experiments):
        directory.mkdir(parents=True, exist_ok=True)
    networks = {
        f"drawn-{seed}-{number}": draw_network(10 * seed + number) for number in range(DRAWN)
    }
    for name, (nodes, config, body) in PLATFORMS.items():
        networks[name] = Network(name, nodes, f"{XML_HEAD}{body}</platform>\n", config)
    matrix = []
    for name, network in networks.items():
        description = {
            "title": f"{network.title} (simulated)",
            "launcher": "simgrid",
            "nodes": network.nodes,
            "cores": 2,
        }
        description |= {"types": network.types} if network.types else {}
        description["simgrid"] = {"file": f"{name}.xml", "config": network.config}
        (platforms / f"{name}.yaml").write_text(yaml.safe_dump(description, sort_keys=False))
        (platforms / f"{name}.xml").write_text(network.xml)
        ranks = [min(64, network.nodes), min(96, 2 * network.nodes)]
        placements = {"placement": {"ranks": ranks, "layout": ["block:1", "cyclic:2"]}}
        matrix += [
            {
                "platform": name,
                "axes": {"operation": operation, "algorithm": algorithms, "bytes": sizes},
                "zips": placements,
            }
            for operation, (algorithms, sizes) in OPERATIONS.items()
        ]
    measure = {
        "sync": "window",
        "precision": "5%",
        "min_samples": 2,
        "max_samples": 2,
        "seconds": 0.5,
        "warmup": 1,
    }
    experiment = {
        "title": "Networks on which no model was developed (simulated)",
        "platform": next(iter(PLATFORMS)),
    }
    experiment |= {
        "models": ["loggp", "shares"],
        "probes": "auto",
        "library": False,
        "seed": 1,
        "measure": measure,
    }
    experiment |= {"probe_bytes": {"from": 1, "to": "1MiB", "factor": 4}, "matrix": matrix}
    (experiments / "networks.yaml").write_text(yaml.safe_dump(experiment, sort_keys=False))
    return list(networks)


def main(only: list[str]) -> None:
    build_toolchain(ROOT, "replay")
    # the name of the folder of earlier runs, whose measurements are reused
    project = MEASUREMENTS / "unseen"
    seed = int(os.environ.get("SEED") or time.time())
    development, others = (
        list(make_plan(EXPERIMENT, ROOT).platforms),
        write_other_networks(project, seed),
    )
    print_scores(
        ROOT, MEASUREMENTS, [name for name in development if name in (only or development)]
    )
    selected = [name for name in others if name in (only or others)]
    if selected:
        print(
            f"\nNetworks on which no model was developed, with learned levels; drawn at random by SEED={seed}:"
        )
        print_scores(project, project / "raw", selected)


if __name__ == "__main__":
    main(sys.argv[1:])
