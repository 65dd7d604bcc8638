"""What was measured in the made-up study: round trips and how they are spread, and a summary of each case."""

import numpy as np
import pandas as pd

from commodel.results.latency_distributions import distributions


def make_round_trips():
    """Ping-pong samples as observations: two modes and an outlier on the real platform, one value on the other."""
    random, rows = np.random.default_rng(11), []
    for place, size in enumerate((1, 64, 1024, 65536)):
        near, far = random.normal(6.2e-5, 1e-6, 130), random.normal(7.1e-5, 1.5e-6, 90)
        real = np.concatenate([near, far, [2.9e-4]]) + 2 * size * 8.6e-8
        for platform, halves in (("ether16", real), ("fattree", np.full(30, 3.4e-6 + 2 * size * 2.4e-10))):
            head = {"id": f"{platform}-pp{place}", "platform": platform, "simulated": platform == "fattree"}
            about = {"kind": "probe", "name": "pingpong", "pair": "node.node", "bytes": size, "valid": True}
            rows += [head | about | {"seconds": seconds} for seconds in halves]
            rows.append(head | about | {"seconds": 1.0, "valid": False})
    return pd.DataFrame(rows)


def make_distributions():
    return distributions(make_round_trips())


def make_probes():
    trips = make_round_trips()
    found = trips[trips["valid"]].groupby(["id", "kind", "platform", "name", "bytes"])["seconds"]
    rows = found.agg(["size", "min", "median", "mean", lambda times: times.quantile(0.95), "max"]).reset_index()
    rows.columns = [*rows.columns[:5], "samples", "min", "median", "mean", "p95", "max"]
    settings = "ranks=2 bytes=" + rows["bytes"].astype(str)
    rows = rows.assign(batch=rows["platform"] + "-1n-0")
    rows = rows.assign(low=rows["median"] * 0.99, high=rows["median"] * 1.01)
    rows["raw"] = "raw/" + rows["batch"] + "/" + rows["id"] + ".csv"
    return rows.drop(columns="bytes").assign(settings=settings, passes=1, invalid=1, stop="precision", skew=0.0)


def make_raw(comparison):
    once = comparison.drop_duplicates("point")
    once = once[once["measurement"] == "ok"]
    middle = once["measured"]
    points = pd.DataFrame(
        {
            "id": once["point"],
            "kind": "point",
            "platform": once["platform"],
            "name": once["operation"] + " " + once["choice"],
            "settings": "ranks=" + once["ranks"].astype(str) + " bytes=" + once["bytes"].astype(str),
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
