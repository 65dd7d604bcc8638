"""How latencies are spread: half the round trip of one message, its histogram and its modes. One number for L hides
what this section shows."""

import math

import pandas as pd

from commodel.report.frames import PLATFORM
from commodel.report.shape import MICRO, Answer, Axis, Chart, Column, Section, Series, table
from commodel.report.values import plain
from commodel.report.words import count, simulation
from commodel.results.distributions import modes
from commodel.units import format_bytes

DRAWN = 1024  # bytes of the message that is drawn beside the smallest: a packet of the TAN paper
STATISTICS = {"min": "min", "median": "median", "low": "median low", "high": "median high"}  # and their headers
STATISTICS |= {"mean": "mean", "p95": "p95", "max": "max"}
KINDS = (
    "Which number is the latency? TAN takes the mean of half the round trips, LogP an upper bound without the "
    "overheads of the two ends, Netgauge half the smallest round trip."
)
MODES = (
    "Modes: peaks of the histogram, parted by a valley below half of the lower peak and deeper than counting noise "
    "explains, each with at least a tenth of the samples. Between two modes a mean lies where few samples are."
)


def section(distributions: pd.DataFrame | None, raw: pd.DataFrame | None, simulated: set[str]) -> Section:
    note = "Half the round trip of one message between two ranks, every valid sample of the ping-pong probe."
    rows, charts = [], []
    if distributions is not None and raw is not None:
        known = raw.drop_duplicates("id").set_index("id")
        for case, bins in distributions.groupby("id", sort=False):
            if case in known.index:
                rows.append(entry(bins, known.loc[case], simulated))
    rows.sort(key=lambda row: (row["platform"], row["pair"], row["bytes"]))
    smallest = {row["platform"]: row["bytes"] for row in reversed(rows)}
    for row in rows:
        if row["bytes"] in (smallest[row["platform"]], DRAWN) and not row["single"]:
            charts.append(histogram(row))
    columns = [
        *PLATFORM,
        Column("pair", "nodes", "text", "types of the two nodes"),
        Column("bytes", "bytes [B]", "count"),
        Column("label", "size"),
        Column("samples", "samples", "count"),
        Column("modes", "modes", "count"),
        *(Column(key, f"{name} [µs]", "number") for key, name in STATISTICS.items()),
        Column("outliers", "in the last bin", "count", "outliers that share one bin"),
        Column("spread", "spread"),
    ]
    frame = pd.DataFrame(rows, columns=[column.key for column in columns], dtype=object)
    times = table("Latency", "Half the round trip by message size", columns, frame, fixed=4)
    reading = Answer("How to read it", (KINDS, MODES, *singles(rows)))
    return Section("Latency", note, (times, reading, *charts) if rows else (times,))


def entry(bins: pd.DataFrame, summary: pd.Series, simulated: set[str]) -> dict:
    """One case: its row of the table, and its bins."""
    body, tail = bins[~bins["tail"].astype(bool)], bins[bins["tail"].astype(bool)]
    platform, single = plain(bins["platform"].iloc[0]), len(body) == 1
    number = 1 if single else modes(body["count"].to_numpy())
    shape = "one value" if single else "one mode" if number == 1 else f"{number} modes"
    size = int(bins["bytes"].iloc[0])
    return {
        "platform": platform,
        "simulated": simulation(platform in simulated),
        "pair": plain("" if pd.isna(bins["pair"].iloc[0]) else bins["pair"].iloc[0]),
        "bytes": size,
        "label": format_bytes(size),
        "samples": int(bins["count"].sum()),
        "modes": number,
        **{key: float(summary[key]) / 2 * MICRO for key in STATISTICS},
        "outliers": int(tail["count"].sum()),
        "spread": shape,
        "single": single,
        "bins": [tuple(float(value) for value in row) for row in body[["low", "high", "count"]].to_numpy()],
    }


def histogram(row: dict) -> Chart:
    """The outline of the bins, with the three numbers that go by the name of latency. Outliers are left out."""
    xs, ys = [], []
    for low, high, number in row["bins"]:
        xs += [low * MICRO, low * MICRO, high * MICRO, high * MICRO]
        ys += [ys[-1] if ys else 0.0, number, number, number]
    top, right = max(ys) * 1.08, row["bins"][-1][1] * MICRO
    outline = Series("samples", (*xs, xs[-1]), (*ys, 0.0), "line", 0)
    named = (("half the smallest", "min"), ("median", "median"), ("mean", "mean"))
    marks = [
        Series(f"{name} {row[key]:.4g} µs", (row[key], row[key]), (0.0, top), "dashed", place)
        for place, (name, key) in enumerate(named, 1)
        if row[key] <= right
    ]
    where = f"{row['platform']}{' (simulated)' if row['simulated'] == 'simulated' else ''}"
    note = f"{row['spread']}, {count(row['samples'], 'sample')}"
    if row["outliers"]:
        note += f"; {row['outliers']} above {right:.4g} µs not drawn"
    if row["mean"] > right:
        note += f", mean {row['mean']:.4g} µs"
    low, high = row["bins"][0][0] * MICRO, right
    margin = 0.03 * (high - low)
    places = 2 - math.floor(math.log10(high - low))
    return Chart(
        f"Latency {row['platform']} {row['pair']} {row['bytes']}",
        plain(f"Half the round trip of {row['label']}: {where}{', ' + row['pair'] if row['pair'] else ''}"),
        Axis("half the round trip [µs]", log=False, low=round(low - margin, places), high=round(high + margin, places)),
        Axis("samples in a bin", log=False, low=0.0, high=float(math.ceil(top))),
        (outline, *marks),
        plain(note),
    )


def singles(rows: list[dict]) -> list[str]:
    """A simulator without noise gives one value however often it is asked."""
    where = sorted({row["platform"] for row in rows if row["single"]})
    lines = []
    for platform in where:
        here = [row for row in rows if row["platform"] == platform]
        alike, note = sum(row["single"] for row in here), " (simulated)" if here[0]["simulated"] == "simulated" else ""
        sizes = "every size" if alike == len(here) else f"{alike} of {len(here)} sizes"
        lines.append(f"{platform}{note}: at {sizes} all samples are the same: one value, no distribution to draw.")
    return lines
