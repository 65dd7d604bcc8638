"""A made-up but realistic study: two platforms (one simulated), nine families, 198 points, some missing."""

import hashlib

import numpy as np
import pandas as pd

FAMILIES = {  # bias and spread of its prices; pram prices communication at nothing
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
ALGORITHMS = {"bcast": ("binomial", "chain", "scatter-allgather"), "allreduce": ("ring", "recursive-doubling")}
TOPOLOGIES = ("flat", "kary:4", "binomial")


def seconds(choice, ranks, size, latency, per_byte):
    """About what these patterns cost under LogGP."""
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
                for size in sizes[:9] if platform == "ether16" else sizes[::2] + [sizes[-1]] * (len(sizes) % 2 == 0):
                    for choice in choices:
                        yield platform, operation, choice, "", "block", ranks, 0, size
        for size in sizes[1:9]:
            for choice in TOPOLOGIES:
                ranks = {"flat": 33, "kary:4": 43, "binomial": 64}[choice]
                yield platform, "reduce", "", choice, "spread", ranks, 32, size


def make_comparison():
    random, priced = np.random.default_rng(7), np.random.default_rng(8)
    rows = []
    for platform, operation, algorithm, topology, layout, ranks, leaves, size in points():
        latency, per_byte = {"ether16": (3.1e-5, 8.6e-8), "fattree": (1.7e-6, 2.4e-10)}[platform]
        choice = algorithm or topology
        truth = seconds(choice, ranks, size, latency, per_byte)
        measured = truth * random.lognormal(0, 0.03)
        missing = platform == "ether16" and operation == "allreduce" and ranks == 64 and size >= 65536
        name = f"{platform}|{operation}|{choice}|{layout}|{ranks}|{size}"
        job, room = (f"{leaves} leaves", "1 a node") if leaves else (f"{ranks} ranks", f"{ranks} nodes")
        point = {
            "point": hashlib.blake2b(name.encode(), digest_size=6).hexdigest(),
            "platform": platform,
            "simulated": platform == "fattree",
            "operation": operation,
            "algorithm": algorithm,
            "topology": topology,
            "choice": choice,
            "layout": layout,
            "ranks": ranks,
            "leaves": leaves,
            "bytes": size,
            "room": room,
            "group": f"{platform} {operation} {job} {size} B {room}",
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
            off = bias * priced.lognormal(0, spread)
            predicted, width, status = truth * off, {"loggp": 0.05, "plogp": 0.03}.get(family, 0.1), "ok"
            if size > 65536 and family in ("loggp", "hockney"):
                status = "extrapolated: 256 KiB is outside the probes' 1 B…64 KiB"
            if family == "hockney" and operation == "reduce" and topology == "flat":
                predicted, status = np.nan, "no price: hockney has no parameter for concurrent receives"
            rows.append(
                point
                | {
                    "family": family,
                    "predicted": predicted,
                    "predicted_low": predicted * (1 - width),
                    "predicted_high": predicted * (1 + width),
                    "status": status,
                    "held_out": not (family == "pmnf" and size <= 1),
                }
                | measurement
            )
    return judge(pd.DataFrame(rows))


def judge(frame):
    """The columns that lay a price beside its measurement."""
    frame["relative_error"] = (frame["predicted"] - frame["measured"]) / frame["measured"]
    frame["mu"] = np.maximum(frame["predicted"] / frame["measured"], frame["measured"] / frame["predicted"])
    frame["inside"] = frame["measured"].between(frame["predicted_low"], frame["predicted_high"])
    frame["chosen"], frame["tie"], frame["best"], frame["regret"] = False, False, False, np.nan
    frame["library"], frame["fastest"] = np.nan, frame.groupby("group")["measured"].transform("min")
    both = frame["predicted"].notna() & frame["measured"].notna()
    for _, group in frame[both & frame["held_out"]].groupby(["group", "family"]):
        if len(group) > 1:
            fastest, pick = group["measured"].min(), group["predicted"].idxmin()
            frame.loc[group.index, "best"] = group["measured"] == fastest
            frame.loc[pick, "chosen"] = True
            frame.loc[pick, "regret"] = group.loc[pick, "measured"] / fastest - 1
    return frame
