"""Every single sample, for who has the workbook but not the raw files: a sheet that is written only when it is asked
for.

How latencies are spread: half the round trip of one message, its histogram and its modes. One number for L hides
what this section shows.

The table of all prices, each beside its measurement."""

import math
from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from commodel.compare.comparison import has_schedule, is_oversubscribed
from commodel.files.results_folder import Results
from commodel.files.tables import COMPARISON, SCHEDULE, Condition
from commodel.records import Plan
from commodel.reports.frames import PLATFORM, column_of, scaled
from commodel.reports.shape import MICRO, MU, Answer, Axis, Chart, Column, Section, Series, Table, table
from commodel.reports.values import count, plain, simulation
from commodel.results.latency_distributions import modes
from commodel.results.raw_samples import raw_file, read_samples
from commodel.units import format_bytes

SHEET = "Samples"
COLUMNS = [
    *PLATFORM,
    *(Column(key, key) for key in ("kind", "name", "settings", "id")),
    Column("pass", "pass", "count"),
    Column("sample", "sample", "count"),
    Column("seconds", "time [µs]", "number"),
    Column("skew", "skew [µs]", "number"),
    Column("valid", "valid", "flag", "no: a rank started late, and the sample counts nowhere"),
]


def samples_section(plan: Plan, results: Results, summary: pd.DataFrame) -> Section:
    about = {row["id"]: row for row in summary[["id", "kind", "name", "settings"]].to_dict("records")}
    parts = list(_cases(plan, results, about))
    keys = [column.key for column in COLUMNS]
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=keys)
    note = "One row per sample, of every pass, as the raw files have them."
    return Section(SHEET, note, (table("Samples", "All samples", COLUMNS, frame, fixed=6),))


def _cases(plan: Plan, results: Results, about: dict[str, dict]) -> Iterator[pd.DataFrame]:
    """Files by the plan's own names. A damaged one is an error, as it is for `collect`."""
    for batch in plan.batches:
        head = {"platform": plain(batch.platform), "simulated": simulation(plan.platforms[batch.platform].simulated)}
        for case in batch.ids:
            if case in about and (path := raw_file(results.raw(batch.name), case)):
                rows = pd.DataFrame(read_samples(path, case), columns=["pass", "sample", "seconds", "skew", "valid"])
                rows[["seconds", "skew"]] *= MICRO
                yield rows.assign(**head, **{key: plain(value) for key, value in about[case].items()})


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


def latency_section(distributions: pd.DataFrame | None, raw: pd.DataFrame | None, simulated: set[str]) -> Section:
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


# The first columns of the sheet; all others of a comparison follow, in the order of its file.
FIRST = "platform simulated operation choice layout ranks leaves bytes waves setting fan_in family measured"
FIRST += " measured_low measured_high predicted predicted_low predicted_high parameters_low parameters_high first last"
FIRST += " processes processors relative_error mu inside interval chosen tie best regret held_out status measurement"
FIRST += " samples invalid stop skew group point batch raw"
PLACES = {name: place for place, name in enumerate(FIRST.split())}


def prediction_section(frame: pd.DataFrame) -> Section:
    note = "One row per point and family: the price beside the measurement, and the file of its samples."
    return Section("Comparison", note, (_comparison(frame),))


def _comparison(frame: pd.DataFrame) -> Table:
    """Return the sheet of all rows, as the entries of their columns in `files/tables.py` have it. A cell is blank where
    a model made no choice or nothing can be compared; n/a is for what is missing and has a reason."""
    conditions = {
        Condition.ALWAYS: True,
        Condition.WAVES: (frame["waves"] > 1).any(),
        Condition.SETTINGS: frame["setting"].ne("").any(),
        Condition.OVERSUBSCRIBED: is_oversubscribed(frame).any(),
        Condition.NEVER: False,
    }
    fields = [field for field in COMPARISON if conditions[field.shown]]
    fields.sort(key=lambda field: PLACES.get(field.name, len(PLACES)))
    lacking = {
        name: ~has_schedule(frame) if name == SCHEDULE else frame[name].isna() | frame[name].isin([0, ""])
        for name in {field.blank_without for field in fields} - {""}
    }
    blank = {field.name: lacking[field.blank_without] for field in fields if field.blank_without}
    columns = [replace(column_of(field), scale=MU if field.name == "mu" else None) for field in fields]
    columns.insert(4, Column("kind", "kind"))
    return table("Comparison", "Predicted and measured", columns, scaled(frame), blank, fixed=4)
