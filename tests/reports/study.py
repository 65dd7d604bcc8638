"""A synthetic but realistic study: two platforms (one simulated), nine model families, 198 points,
some missing; its samples, its parameter sets, and a results folder with the files of all stages."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from commodel.files.atomic import write_json
from commodel.files.parameter_sets import write_parameters
from commodel.files.tables import COMPARISON, add_default_columns, list_columns, write_table
from commodel.parameters import Curve, Estimate, ParameterSet
from commodel.predictions.interval_basis import PARAMETERS_ONLY_TEXT
from commodel.records import Batch, Point
from commodel.results.latency_distributions import tabulate_distributions
from commodel.results.raw_samples import tabulate_unmeasured
from tests.planning import planned

FAMILIES = {  # bias and spread of its predictions; pram predictions communication at nothing
    "loggp": (1.03, 0.04),
    "plogp": (1.00, 0.05),
    "hockney": (1.25, 0.18),
    "pmnf": (0.9, 0.35),
    "bsp": (1.6, 0.2),
    "logp": (0.7, 0.2),
    "pram": (0.0, 0.0),
    "tan": (1.15, 0.1),
    "taulop": (1.08, 0.06),
}
ALGORITHMS = {
    "bcast": ("binomial", "chain", "scatter-allgather"),
    "allreduce": ("ring", "recursive-doubling"),
}
TOPOLOGIES = ("flat", "kary:4", "binomial")


def seconds(choice, ranks, size, latency, per_byte):
    """Return the approximate time of these patterns under LogGP."""
    deep = int(np.ceil(np.log2(ranks)))
    message = latency + size * per_byte
    return {
        "binomial": deep * message,
        "chain": (ranks - 1) * latency * 0.6 + size * per_byte * 1.3,
        "scatter-allgather": (deep + ranks * 0.35) * latency + 2 * size * per_byte,
        "ring": 2 * (ranks - 1) * latency * 0.7 + 2 * size * per_byte,
        "recursive-doubling": deep * message * 1.1,
        "flat": latency + (ranks - 1) * (0.25 * latency + size * per_byte),
        "kary:4": deep / 2 * (latency + 4 * (0.25 * latency + size * per_byte)),
    }[choice]


def points():
    sizes = [4**power for power in range(11)]
    for platform in ("ether16", "fattree"):
        for operation, choices in ALGORITHMS.items():
            for ranks in (16, 64):
                for size in (
                    sizes[:9]
                    if platform == "ether16"
                    else sizes[::2] + [sizes[-1]] * (len(sizes) % 2 == 0)
                ):
                    for choice in choices:
                        yield platform, operation, choice, "", "block", ranks, 0, size
        for size in sizes[1:9]:
            for choice in TOPOLOGIES:
                ranks = {"flat": 33, "kary:4": 43, "binomial": 64}[choice]
                yield platform, "reduce", "", choice, "spread", ranks, 32, size


def make_comparison():
    random, predicted_ones = np.random.default_rng(7), np.random.default_rng(8)
    rows = []
    for platform, operation, algorithm, topology, layout, ranks, leaves, size in points():
        latency, per_byte = {"ether16": (3.1e-5, 8.6e-8), "fattree": (1.7e-6, 2.4e-10)}[platform]
        choice = algorithm or topology
        truth = seconds(choice, ranks, size, latency, per_byte)
        measured = truth * random.lognormal(0, 0.03)
        missing = (
            platform == "ether16" and operation == "allreduce" and ranks == 64 and size >= 65536
        )
        name = f"{platform}|{operation}|{choice}|{layout}|{ranks}|{size}"
        workload, usage = (
            (f"{leaves} leaves", "1 a node") if leaves else (f"{ranks} ranks", f"{ranks} nodes")
        )
        point = {
            "point": hashlib.blake2b(name.encode(), digest_size=6).hexdigest(),
            "platform": platform,
            "simulated": platform == "fattree",
            "operation": operation,
            "algorithm": algorithm,
            "topology": topology,
            "alternative": choice,
            "layout": layout,
            "ranks": ranks,
            "leaves": leaves,
            "bytes": size,
            "nodes": ranks,
            "node_usage": usage,
            "workload": f"{platform} {operation} {workload} {size} B {usage}",
            "fan_in": {"flat": 32, "kary:4": 4}.get(choice, 1),
            "batch": f"{platform}-1n-0",
        }
        half = random.uniform(0.002, 0.02)
        stop = random.choice(["precision", "samples", "time"], p=[0.9, 0.07, 0.03])
        measurement = {
            "measured": measured,
            "measured_low": measured * (1 - half),
            "measured_high": measured * (1 + half),
            "samples": int(random.integers(30, 400)),
            "invalid": int(random.poisson(0.4)),
            "stop": stop,
            "skew": random.uniform(2e-7, 9e-7) if platform == "ether16" else 0.0,
            "measurement": "ok",
        }
        if missing:
            measurement = dict.fromkeys(measurement, np.nan) | {
                "samples": 0,
                "invalid": 0,
                "stop": "",
                "measurement": "not measured: budget",
            }
        point["raw"] = "" if missing else f"raw/{point['batch']}/{point['point']}.csv"
        for family, (bias, spread) in FAMILIES.items():
            if operation == "reduce":
                bias *= {"hockney": 0.45, "tan": 0.87, "loggp": 1.3, "plogp": 1.3}.get(family, 1)
            off = bias * predicted_ones.lognormal(0, spread)
            predicted, width, validity = (
                truth * off,
                {"loggp": 0.05, "plogp": 0.03}.get(family, 0.1),
                "valid",
            )
            if size > 65536 and family in ("loggp", "hockney"):
                validity = "extrapolated: 256 KiB is outside the probes' 1 B…64 KiB"
            if family == "hockney" and operation == "reduce" and topology == "flat":
                predicted, validity = (
                    np.nan,
                    "no prediction: hockney has no parameter for concurrent receives",
                )
            rows.append(
                point
                | {
                    "model": family,
                    "seconds": predicted,
                    "low": predicted * (1 - width),
                    "high": predicted * (1 + width),
                    "corrected": predicted,
                    "parameter_low": predicted * (1 - width),
                    "parameter_high": predicted * (1 + width),
                    "basis": "" if np.isnan(predicted) else PARAMETERS_ONLY_TEXT,
                    "validity": validity,
                    "held_out": not (family == "pmnf" and size <= 1),
                }
                | measurement
            )
    return add_default_columns(judge(pd.DataFrame(rows)), COMPARISON)[list_columns(COMPARISON)]


def judge(frame):
    """Add the columns that compare a prediction with its measured time."""
    frame["relative_error"] = (frame["seconds"] - frame["measured"]) / frame["measured"]
    frame["mu"] = np.maximum(
        frame["seconds"] / frame["measured"], frame["measured"] / frame["seconds"]
    )
    frame["covered"] = frame["measured"].between(frame["low"], frame["high"])
    frame["chosen"], frame["tie"], frame["best"], frame["regret"] = False, False, False, np.nan
    frame["library_default"], frame["fastest"] = (
        np.nan,
        frame.groupby("workload")["measured"].transform("min"),
    )
    both = frame["seconds"].notna() & frame["measured"].notna()
    for _, group in frame[both & frame["held_out"]].groupby(["workload", "model"]):
        if len(group) > 1:
            fastest, pick = group["measured"].min(), group["seconds"].idxmin()
            frame.loc[group.index, "best"] = group["measured"] == fastest
            frame.loc[pick, "chosen"] = True
            frame.loc[pick, "regret"] = group.loc[pick, "measured"] / fastest - 1
    return frame


def make_round_trips():
    """Ping-pong samples as observations: two modes and an outlier on the real platform, one value
    on the other."""
    random, rows = np.random.default_rng(11), []
    for place, size in enumerate((1, 64, 1024, 65536)):
        near, far = random.normal(6.2e-5, 1e-6, 130), random.normal(7.1e-5, 1.5e-6, 90)
        real = np.concatenate([near, far, [2.9e-4]]) + 2 * size * 8.6e-8
        for platform, halves in (
            ("ether16", real),
            ("fattree", np.full(30, 3.4e-6 + 2 * size * 2.4e-10)),
        ):
            head = {
                "id": f"{platform}-pp{place}",
                "platform": platform,
                "simulated": platform == "fattree",
            }
            about = {
                "kind": "probe",
                "name": "pingpong",
                "pair": "node.node",
                "bytes": size,
                "valid": True,
            }
            rows += [head | about | {"seconds": seconds} for seconds in halves]
            rows.append(head | about | {"seconds": 1.0, "valid": False})
    return pd.DataFrame(rows)


def make_distributions():
    return tabulate_distributions(make_round_trips())


def make_probes():
    trips = make_round_trips()
    found = trips[trips["valid"]].groupby(["id", "kind", "platform", "name", "bytes"])["seconds"]
    rows = found.agg(
        ["size", "min", "median", "mean", lambda times: times.quantile(0.95), "max"]
    ).reset_index()
    rows.columns = [*rows.columns[:5], "samples", "min", "median", "mean", "p95", "max"]
    settings = "ranks=2 bytes=" + rows["bytes"].astype(str)
    rows = rows.assign(batch=rows["platform"] + "-1n-0", simulated=rows["platform"] == "fattree")
    rows = rows.assign(low=rows["median"] * 0.99, high=rows["median"] * 1.01)
    rows["raw"] = "raw/" + rows["batch"] + "/" + rows["id"] + ".csv"
    return rows.drop(columns="bytes").assign(
        settings=settings, passes=1, invalid=1, stop="precision", skew=0.0
    )


def make_raw(comparison):
    once = comparison.drop_duplicates("point")
    once = once[once["measurement"] == "ok"]
    middle = once["measured"]
    points = pd.DataFrame(
        {
            "id": once["point"],
            "kind": "point",
            "platform": once["platform"],
            "simulated": once["simulated"],
            "name": once["operation"] + " " + once["alternative"],
            "settings": "ranks="
            + once["ranks"].astype(str)
            + " bytes="
            + once["bytes"].astype(str),
            "passes": 1,
            "samples": once["samples"],
            "invalid": once["invalid"],
            "stop": once["stop"],
            "min": middle * 0.93,
            "median": middle,
            "low": middle * 0.98,
            "high": middle * 1.03,
            "mean": middle * 1.02,
            "p95": middle * 1.2,
            "max": middle * 3.1,
            "skew": once["skew"],
            "batch": once["batch"],
            "raw": once["raw"],
        }
    )
    return pd.concat([points, make_probes()], ignore_index=True)


def make_parameters():
    sizes = tuple(float(4**power) for power in range(9))
    sets = []
    for platform, latency, per_byte in (("ether16", 3.1e-5, 8.6e-8), ("fattree", 1.7e-6, 2.4e-10)):
        line = tuple(latency + per_byte * size for size in sizes)
        noisy = tuple(value * (1 + 0.04 * (-1) ** place) for place, value in enumerate(line))
        curve = Curve(
            "one-way time",
            "message size [B]",
            "one-way time [s]",
            sizes,
            noisy,
            line,
            "L + G·m",
            0.9987,
        )
        more = {"simulated": platform == "fattree", "bytes_range": (1.0, 65536.0)}
        where = {"batch": "probes-0", "commit": "4f2a91c", "date": "2026-10-02"}
        sets.append(
            ParameterSet(
                "loggp",
                platform,
                f"fitted from probes prtt on {platform}",
                {
                    "L": Estimate(latency, "s", latency * 0.97, latency * 1.04),
                    "o_s": Estimate(latency / 9, "s", latency / 10, latency / 8),
                    "o_r": Estimate(
                        latency / 8,
                        "s",
                        latency / 9,
                        latency / 7,
                        "not distinguishable from L below 16 B",
                    ),
                    "g": Estimate(latency / 4, "s", latency / 4.1, latency / 3.9),
                    "G": Estimate(per_byte, "s/B", per_byte * 0.99, per_byte * 1.02),
                },
                curves=(curve,),
                provenance=where,
                **more,
            )
        )
        sets.append(
            ParameterSet(
                "hockney",
                platform,
                f"fitted from probes pingpong on {platform}",
                {
                    "alpha": Estimate(latency * 1.2, "s", latency, latency * 1.3),
                    "beta": Estimate(per_byte, "s/B", per_byte * 0.9, per_byte * 1.1),
                },
                curves=(curve,),
                provenance=where,
                **more,
            )
        )
        sets.append(
            ParameterSet(
                "pmnf",
                platform,
                "fitted from 40 observations",
                {
                    "t.c": Estimate(-latency / 2, "s", -latency, np.nan, "interval open above"),
                    "t.k": Estimate(2.0, "", 2.0, 2.0, "given as exact"),
                },
                forms={"t": "c·p^k·log2(p)"},
                provenance=where,
                **more,
            )
        )
        sets.append(sampled_set(platform, latency, per_byte, sizes, where, more))
        sets.append(
            ParameterSet(
                "pram",
                platform,
                "needs no probe",
                {"gamma": Estimate(2e-10, "s/B", 1e-10, 3e-10)},
                **more,
            )
        )
    return sets


def sampled_set(platform, latency, per_byte, sizes, where, more):
    """Return a parameter set with sampled functions, one of them of two variables, and two values
    that the data do not identify."""
    unknown = (
        "not identifiable from these data, only together with g.a: its interval is as wide as its "
        "value"
    )
    values = {
        "B_L": Estimate(1935.0, "1", 1801.0, 2003.0),
        "S": Estimate(8192.0, "B", 4096.0, 16384.0),
        "C": Estimate(3.14159e-7, "s", 0.0, 9.87654e-7, unknown, known=False),
        "g.a": Estimate(latency / 3, "s", latency / 4, latency / 2),
        "g.b": Estimate(per_byte / 3, "s/B", 0.0, per_byte, unknown, known=False),
        "L.thin.fat": Estimate(latency, "s", latency * 0.9, latency * 1.1),
    }
    for size in sizes:
        time = latency / 5 + size * per_byte
        values[f"o_s.{int(size)}"] = Estimate(time, "s", time * 0.98, time * 1.01)
    for size in (64, 4096):
        for level in (1, 2, 3):
            time = latency + level * size * per_byte
            values[f"L_1.{size}x{level}"] = Estimate(
                time, "s", time * 0.9, time * 1.1, known=level < 3
            )
    line = tuple(latency / 5 + size * per_byte for size in sizes)
    bent = tuple(value * (1 + 0.02 * np.sin(place)) for place, value in enumerate(line))
    curves = (
        Curve(
            "o_s",
            "message / B",
            "time / s",
            sizes,
            line,
            line,
            "samples, linear in between",
            1.0,
            -400.0,
            0.031,
        ),
        Curve("g", "message / B", "time / s", sizes, bent, line, "a + b·x", 0.998, -61.25, 0.042),
        Curve(
            "waiting",
            "ranks",
            "time / s",
            (2.0, 4.0, 8.0),
            (3e-6, 5e-6, 9e-6),
            (2.8e-6, 5e-6, 9.3e-6),
            "a·x",
            0.99,
        ),
    )
    forms = {"o_s": "table", "L_1": "table", "g": "linear"}
    return ParameterSet(
        "plogp",
        platform,
        "fitted from probes prtt",
        values,
        forms,
        curves=curves,
        provenance=where,
        **more,
    )


FITTED = ("loggp", "hockney")
INPUTS = {
    "experiments/trees.yaml": "title: =1+1  # <script>\nplatform: ether16\n",
    "platforms/ether16.yaml": "launcher: hosts\nnodes: 2\ncores: 2\nhosts: {names: [n001, n002, n009]}\n",
    "platforms/fattree.yaml": "launcher: simgrid\n",
}
BOTH = {"pid": 7, "started": 1790939000, "updated": 1790942441}
ATTEMPTS = [
    BOTH
    | {
        "host": "n001",
        "job": "41",
        "ended": None,
        "outcome": "",
        "commit": "4f2a91c",
        "nodes": ["n001", "n002"],
    },
    BOTH
    | {
        "host": "login1",
        "job": "42",
        "ended": 1790942441,
        "outcome": "error: rank 1 should be on n002, but is on n017",
    }
    | {"nodes": ["spare-b", "spare-a", "n002"], "commit": "5e11d07-dirty"},
]
PROGRAM = {
    "mpi": "MPICH 5.0.2",
    "compiler": "/home/someone/bin/mpicc (gcc 12.2.0)",
    "flags": "-O2",
    "clock": "MPI_Wtime",
    "clock_resolution": 1e-9,
    "clock_uncertainty": 1e-7,
    "hosts": ["n001", "n002"],
}


def write_results(folder: Path, inputs: dict) -> Path:
    sets = [fitted for fitted in inputs["parameter_sets"] if fitted.model in FITTED]
    comparison = inputs["comparison"]  # few points: a test builds many reports of them
    few = (
        comparison["bytes"].isin([256, 1024])
        & (comparison["ranks"] < 64)
        & comparison["model"].isin(FITTED)
    )
    comparison = comparison[few]
    raw = inputs["raw"][
        inputs["raw"]["id"].isin(comparison["point"]) | (inputs["raw"]["kind"] == "probe")
    ]
    batches = tuple(
        Batch(
            f"{name}-1n-0", name, 1, points=(Point(name, "bcast", "linear", "", "block:1", 2, 8),)
        )
        for name in ("ether16", "fattree")
    )
    plan = planned(*batches, models=FITTED, simulated=("fattree",))
    plan = replace(plan, experiment="trees", title=inputs["title"])
    write_json(folder / "plan.json", plan.as_json())
    write_table(folder / "comparison.csv", comparison)
    write_table(folder / "summary.csv", raw.assign(low=raw["min"], high=raw["max"]))
    write_table(folder / "distributions.csv", inputs["distributions"])
    write_table(folder / "unmeasured.csv", tabulate_unmeasured([]))
    for fitted in sets:
        write_parameters(
            folder / "fitted" / fitted.platform / f"{fitted.model}.yaml",
            replace(fitted, draws={}, curves=()),
        )
    for batch, about in zip(
        batches, (inputs["provenance"][name] for name in ("ether16-0", "fattree-0")), strict=True
    ):
        raw = folder / "raw" / batch.name
        machine = {
            "machine": "login1",
            "simulated": batch.platform == "fattree",
            "measure": {"passes": 3},
        }
        write_json(raw / "provenance.json", about | machine)
        write_json(
            raw / "player-2r-block1.json",
            PROGRAM if batch.platform == "ether16" else PROGRAM | {"hosts": []},
        )
        write_json(raw / "state.json", {"attempts": ATTEMPTS})
        (raw / "0123456789ab.csv").write_text("id,pass\n")
    for name, text in INPUTS.items():
        (folder / "inputs" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "inputs" / name).write_text(text)
    return folder
