"""What the summary rests on: parameters, fitted curves with their samples, raw summaries, provenance."""

from collections.abc import Mapping, Sequence

import pandas as pd

from commodel.records import ParameterSet
from commodel.report import charts
from commodel.report.frames import PLATFORM
from commodel.report.shape import MICRO, Column, Section, plain, show, table
from commodel.units import format_bytes

UNITS = {"s": ("µs", MICRO), "s/B": ("ns/B", 1e9), "s/message": ("µs/message", MICRO), "B/s": ("MB/s", 1e-6)}
WIDE = 12  # provenance keys that differ: up to so many become columns, more become rows


def parameters(sets: Sequence[ParameterSet], definitions: Mapping[tuple[str, str], str]) -> Section:
    values, sources = [], []
    for each in ordered(sets):
        head = {"platform": each.platform, "simulated": word(each.simulated), "family": each.family}
        for name, estimate in each.values.items():
            unit, factor = UNITS.get(estimate.unit, (estimate.unit or "1", 1.0))
            stem = name.rpartition(".")[0]
            values.append(
                head
                | {
                    "name": name,
                    "value": estimate.value * factor,
                    "low": estimate.low * factor,
                    "high": estimate.high * factor,
                    "unit": unit,
                    "note": estimate.note,
                    "form": each.forms.get(stem or name, ""),
                    "definition": definitions.get((each.family, name)) or definitions.get((each.family, stem), ""),
                }
            )
        ends = each.bytes_range
        provenance = "; ".join(f"{key}: {entry}" for key, entry in flat(each.provenance).items())
        sources.append(
            head
            | {
                "source": each.source,
                "range": f"{format_bytes(int(ends[0]))} … {format_bytes(int(ends[1]))}" if ends else "",
                "values": len(each.values),
                "provenance": provenance,
            }
        )
    columns = [
        *PLATFORM,
        Column("family", "family"),
        Column("name", "parameter"),
        Column("value", "value", "number"),
        Column("low", "low (95 %)", "number"),
        Column("high", "high (95 %)", "number"),
        Column("unit", "unit"),
        Column("form", "form"),
        *([Column("definition", "definition")] if definitions else []),
        Column("note", "note"),
    ]
    origins = [
        *PLATFORM,
        Column("family", "family"),
        Column("source", "source"),
        Column("range", "probed message sizes"),
        Column("values", "values", "count"),
        Column("provenance", "provenance"),
    ]
    note = (
        "Low and high: ends of the 95 % interval; equal: given as exact. Beyond the probed sizes a price extrapolates."
    )
    blocks = (
        table("Parameters", "Values", columns, rows(values, columns), fixed=4),
        table("Sources", "Where they come from", origins, rows(sources, origins), fixed=3),
    )
    return Section("Parameters", note, blocks)


def fits(sets: Sequence[ParameterSet]) -> Section:
    """Every fitted curve: how well it fits, a chart, and the samples it was drawn through."""
    curves, samples = [], []
    for each in ordered(sets):
        for curve in each.curves:
            head = {
                "platform": each.platform,
                "simulated": word(each.simulated),
                "family": each.family,
                "curve": curve.title,
            }
            factor, label = charts.micro(curve.y_label)
            curves.append(
                head | {"form": curve.form, "r2": curve.r2, "count": len(curve.x), "x": curve.x_label, "y": label}
            )
            for x, measured, fitted in zip(curve.x, curve.measured, curve.fitted, strict=True):
                samples.append(
                    head
                    | {
                        "x_label": curve.x_label,
                        "x": x,
                        "y_label": label,
                        "measured": measured * factor,
                        "fitted": fitted * factor,
                        "error": 100 * (fitted / measured - 1) if measured else float("nan"),
                    }
                )
    head = [*PLATFORM, Column("family", "family"), Column("curve", "curve")]
    about = [
        *head,
        Column("form", "form"),
        Column("r2", "R²", "number"),
        Column("count", "samples", "count"),
        Column("x", "over"),
        Column("y", "quantity"),
    ]
    data = [
        *head,
        Column("x_label", "over"),
        Column("x", "x", "number"),
        Column("y_label", "quantity"),
        Column("measured", "measured", "number"),
        Column("fitted", "fitted", "number"),
        Column("error", "fitted − measured [%]", "signed"),
    ]
    blocks = (
        table("Curves", "Fitted curves", about, rows(curves, about), fixed=4),
        *charts.fitted(ordered(sets)),
        table("Samples", "What the curves were fitted to", data, rows(samples, data), fixed=4),
    )
    return Section("Fits", "Fits see probes only, never the points of the comparison.", blocks)


def raw_summary(raw: pd.DataFrame | None, simulated: set[str]) -> Section:
    columns = [
        *PLATFORM,
        *(Column(key, key) for key in ("kind", "name", "settings")),
        *(Column(key, key, "count") for key in ("samples", "invalid")),
        Column("stop", "stopped by"),
        *(Column(key, f"{key} [µs]", "number") for key in ("min", "median", "mean", "p95", "max", "skew")),
        Column("id", "id"),
    ]
    keys = [column.key for column in columns]
    frame = raw.copy() if raw is not None else pd.DataFrame(columns=keys)
    for key in ("min", "median", "mean", "p95", "max", "skew"):
        frame[key] = pd.to_numeric(frame[key], errors="coerce") * MICRO
    frame["simulated"] = [word(plain(platform) in simulated) for platform in frame["platform"]]
    frame = frame.sort_values(["platform", "kind", "name"], kind="stable")
    note = "One row per point or probe case; every single sample stands in the raw files."
    return Section("Raw summary", note, (table("Raw", "Samples", columns, frame, fixed=5),))


def provenance(batches: Mapping[str, Mapping], simulated: set[str]) -> Section:
    """What all batches have in common is said once; what differs has a row per batch."""
    entries = {plain(name): flat(batch) for name, batch in batches.items()}
    keys = list(dict.fromkeys(key for batch in entries.values() for key in batch))
    common = [key for key in keys if len({batch.get(key) for batch in entries.values()}) == 1]
    differing = [key for key in keys if key not in common and key != "platform"]
    if "platform" in keys and "platform" not in common:
        differing.insert(0, "platform")
    said = pd.DataFrame([(key, next(iter(entries.values()))[key]) for key in common], columns=["key", "value"])
    blocks = [table("Common", "Common to every batch", [Column("key", "key"), Column("value", "value")], said)]
    head = [Column("batch", "batch"), Column("simulated", "simulated")]
    heads = {
        name: {"batch": name, "simulated": word(batch.get("platform") in simulated or batch.get("simulated") == "yes")}
        for name, batch in entries.items()
    }
    if len(differing) <= WIDE:
        columns = [*head, *(Column(f"= {key}", key) for key in differing)]
        lines = [heads[name] | {f"= {key}": batch.get(key, "") for key in differing} for name, batch in entries.items()]
    else:
        columns = [*head, Column("key", "key"), Column("value", "value")]
        lines = [
            heads[name] | {"key": key, "value": batch[key]}
            for name, batch in entries.items()
            for key in differing
            if key in batch
        ]
    blocks.append(table("Batches", "What differs between batches", columns, rows(lines, columns)))
    return Section("Provenance", "Where the measurements come from. One batch is one allocation.", tuple(blocks))


def ordered(sets: Sequence[ParameterSet]) -> list[ParameterSet]:
    return sorted(sets, key=lambda each: (each.platform, each.family, each.source))


def rows(entries: list[dict], columns: list[Column]) -> pd.DataFrame:
    """Objects as they are: a frame left to guess would turn a missing text into NaN."""
    return pd.DataFrame(entries, columns=[column.key for column in columns], dtype=object)


def word(flag: bool) -> str:
    return "simulated" if flag else "no"


def flat(nested: Mapping, prefix: str = "") -> dict[str, str]:
    """Nested provenance as dotted keys and texts."""
    found: dict[str, str] = {}
    for key, value in nested.items():
        name = plain(f"{prefix}{key}")
        if isinstance(value, Mapping):
            found |= flat(value, f"{name}.")
        elif isinstance(value, list | tuple | set):
            found[name] = plain(", ".join(str(entry) for entry in value))
        else:
            found[name] = show("text", value) if value is None or isinstance(value, bool) else plain(str(value))
    return found
