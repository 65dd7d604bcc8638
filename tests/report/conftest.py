"""A made-up but realistic study: two platforms (one simulated), four families, 168 points, some missing."""

import hashlib
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from commodel.records import Curve, Estimate, ParameterSet

FAMILIES = {"loggp": (1.03, 0.04), "plogp": (1.00, 0.05), "hockney": (1.25, 0.18), "pmnf": (0.9, 0.35)}
ALGORITHMS = {"bcast": ("binomial", "chain", "scatter-allgather"), "allreduce": ("ring", "recursive-doubling")}
TOPOLOGIES = ("flat", "kary:4", "binomial")


def seconds(choice, ranks, size, latency, per_byte):
    """About what these patterns cost under LogGP."""
    deep = int(np.ceil(np.log2(ranks)))
    one = latency + size * per_byte
    return {
        "binomial": deep * one,
        "chain": (ranks - 1) * latency * 0.6 + size * per_byte * 1.3,
        "scatter-allgather": (deep + ranks * 0.35) * latency + 2 * size * per_byte,
        "ring": 2 * (ranks - 1) * latency * 0.7 + 2 * size * per_byte,
        "recursive-doubling": deep * one * 1.1,
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
        for size in sizes[2:8:2]:
            for choice in TOPOLOGIES:
                ranks = {"flat": 33, "kary:4": 43, "binomial": 64}[choice]
                yield platform, "reduce", "", choice, "spread", ranks, 32, size


def make_comparison(seed=7):
    random = np.random.default_rng(seed)
    rows = []
    for platform, operation, algorithm, topology, layout, ranks, leaves, size in points():
        latency, per_byte = {"ether16": (3.1e-5, 8.6e-8), "fattree": (1.7e-6, 2.4e-10)}[platform]
        choice = algorithm or topology
        truth = seconds(choice, ranks, size, latency, per_byte)
        measured = truth * random.lognormal(0, 0.03)
        missing = platform == "ether16" and operation == "allreduce" and ranks == 64 and size >= 65536
        name = f"{platform}|{operation}|{choice}|{layout}|{ranks}|{size}"
        job = f"{leaves} leaves" if leaves else f"{ranks} ranks"
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
            "group": f"{platform} {operation} {job} {size} B {layout}",
            "fan_in": {"flat": 32, "kary:4": 4}.get(choice, 1),
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
        for family, (bias, spread) in FAMILIES.items():
            off = bias * (0.45 if family == "hockney" and operation == "reduce" else 1) * random.lognormal(0, spread)
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
                    "held_out": True,
                }
                | measurement
            )
    return judge(pd.DataFrame(rows))


def judge(frame):
    """The columns that lay a price beside its measurement."""
    frame["relative_error"] = (frame["predicted"] - frame["measured"]) / frame["measured"]
    frame["mu"] = np.maximum(frame["predicted"] / frame["measured"], frame["measured"] / frame["predicted"])
    frame["inside"] = frame["measured"].between(frame["predicted_low"], frame["predicted_high"])
    frame["chosen"], frame["best"], frame["regret"] = False, False, np.nan
    both = frame["predicted"].notna() & frame["measured"].notna()
    for _, group in frame[both].groupby(["group", "family"]):
        if len(group) > 1:
            fastest, pick = group["measured"].min(), group["predicted"].idxmin()
            frame.loc[group.index, "best"] = group["measured"] == fastest
            frame.loc[pick, "chosen"] = True
            frame.loc[pick, "regret"] = group.loc[pick, "measured"] / fastest - 1
    return frame


def make_parameters():
    sizes = tuple(float(4**power) for power in range(9))
    sets = []
    for platform, latency, per_byte in (("ether16", 3.1e-5, 8.6e-8), ("fattree", 1.7e-6, 2.4e-10)):
        line = tuple(latency + per_byte * size for size in sizes)
        noisy = tuple(value * (1 + 0.04 * (-1) ** place) for place, value in enumerate(line))
        curve = Curve("one-way time", "message size [B]", "one-way time [s]", sizes, noisy, line, "L + G·m", 0.9987)
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
                    "o_r": Estimate(latency / 8, "s", latency / 9, latency / 7, "not told apart from L below 16 B"),
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
    return sets


def make_raw(comparison):
    once = comparison.drop_duplicates("point")
    once = once[once["measurement"] == "ok"]
    middle = once["measured"]
    return pd.DataFrame(
        {
            "id": once["point"],
            "kind": "point",
            "platform": once["platform"],
            "name": once["operation"] + " " + once["choice"],
            "settings": "ranks=" + once["ranks"].astype(str) + " bytes=" + once["bytes"].astype(str),
            "samples": once["samples"],
            "invalid": once["invalid"],
            "stop": once["stop"],
            "min": middle * 0.93,
            "median": middle,
            "mean": middle * 1.02,
            "p95": middle * 1.2,
            "max": middle * 3.1,
            "skew": once["skew"],
        }
    ).reset_index(drop=True)


def make_provenance():
    common = {"experiment": "b1946ac92492", "commit": "4f2a91c", "dirty": False, "compiler": "gcc 12.2.0 -O2"}
    real = {"platform": "ether16", "mpi": "MPICH 5.0.2", "cpu": "Intel Xeon E5-2670 v3", "kernel": "6.1.0-40-amd64"}
    simulated = {"platform": "fattree", "mpi": "SimGrid SMPI 4.0", "cpu": "simulated", "kernel": "simulated"}
    return {
        "ether16-0": common | real | {"hosts": ["n001", "n002"], "date": "2026-10-02T11:03:09Z", "seed": 17},
        "ether16-1": common | real | {"hosts": ["n001", "n003"], "date": "2026-10-02T12:40:41Z", "seed": 18},
        "fattree-0": common | simulated | {"hosts": [], "date": "2026-10-02T09:00:00Z", "seed": 17},
    }


VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Tags in balance, attributes, and the text of every table cell."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tables, self.links, self.ids, self.text, self.cell = [], [], [], [], [], None
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        for key, value in attributes:
            assert not key.startswith("on"), "no inline handlers"
            if key in ("src", "href"):
                self.links.append(value)
            if key == "id":
                self.ids.append(value)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.cell = ""

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag in ("td", "th"):
            self.tables[-1][-1].append(self.cell)
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data
        if self.open and self.open[-1] not in ("script", "style"):
            self.text.append(data)


@pytest.fixture(scope="session")
def parse():
    return Page


@pytest.fixture(scope="session")
def comparison():
    return make_comparison()


@pytest.fixture(scope="session")
def inputs(comparison):
    return {
        "comparison": comparison,
        "parameter_sets": make_parameters(),
        "raw": make_raw(comparison),
        "provenance": make_provenance(),
        "experiment": "trees-2026",
        "title": "Broadcast, allreduce and reduction trees on two clusters",
    }


@pytest.fixture(scope="session")
def report(inputs):
    from commodel.report import build

    return build(**inputs)
