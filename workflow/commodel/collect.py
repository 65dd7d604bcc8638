"""Gathers a campaign's raw files into one tidy table of observations, one row a sample, and a summary of each case."""

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from commodel.errors import UserError
from commodel.records import Batch, Plan
from commodel.stats import STOPS, median_interval, worst_stop

TEXT = (
    "id",
    "batch",
    "platform",
    "kind",
    "name",
    "choice",
    "layout",
    "pair",
    "direction",
    "how",
    "what",
    "path",
    "stop",
)


def collect(plan: Plan, raw: Path) -> pd.DataFrame:
    """All samples of all cases that the plan names; what has not been measured has no rows."""
    rows: list[dict] = []
    for batch in plan.batches:
        for case, about in _cases(plan, batch):
            path = raw / batch.name / f"{case}.csv"
            if path.exists():
                rows += [{"id": case, **about, **sample} for sample in _samples(path, case)]
    if not rows:
        raise UserError(f"nothing has been measured yet in {raw}")
    return pd.DataFrame(rows)


def _cases(plan: Plan, batch: Batch):
    """(id, columns) of everything in a batch. A probe's name is in `name`; a point's operation is."""
    where = {"batch": batch.name, "platform": batch.platform, "simulated": plan.platforms[batch.platform]["simulated"]}
    for case in batch.cases:
        yield (
            case.id,
            {**where, "kind": "probe", "name": case.probe, "layout": case.layout, "pair": case.pair}
            | {
                "ranks": case.ranks,
                **case.settings,
            },
        )
    for point in batch.points:
        about = {"kind": "point", "name": point.operation, "choice": point.choice, "layout": point.layout}
        yield point.id, {**where, **about, "ranks": point.ranks, "bytes": point.bytes}


def _samples(path: Path, case: str) -> list[dict]:
    with path.open(newline="", encoding="utf-8", errors="replace") as stream:
        reader = csv.DictReader(stream)
        rows = []
        for row in _readable(reader, path):
            try:
                if row["id"] != case:
                    raise ValueError(f"it holds samples of '{row['id']}'")
                seconds = float(row["seconds"])
                if not (np.isfinite(seconds) and seconds >= 0):
                    raise ValueError(f"found {seconds} seconds")
                skew = float(row["skew"]) if row["skew"] else np.nan
                valid, stop = bool(int(row["valid"])), row["stop"]
                if stop not in STOPS:
                    raise ValueError(f"found stop '{stop}'")
                found = {"pass": int(row["pass"]), "sample": int(row["sample"]), "seconds": seconds, "skew": skew}
                found |= {"valid": valid, "stop": stop}
                rows.append(found | ({"count": float(row["count"])} if row.get("count") else {}))
            except (KeyError, TypeError, ValueError) as error:
                message = f"damaged raw file ({error}); remove it, and `done` beside it, to measure the case again"
                raise UserError(message, file=path, line=reader.line_num) from None
    if not rows:
        raise UserError(
            "damaged raw file without samples; remove it, and `done` beside it, to measure the case again", file=path
        )
    return rows


def _readable(reader: csv.DictReader, path: Path) -> Iterator[dict]:
    """The rows, or what is wrong with one as a table."""
    try:
        yield from reader
    except csv.Error as error:
        raise UserError(f"damaged raw file ({error})", file=path, line=reader.reader.line_num) from None


def summarize_raw(observations: pd.DataFrame) -> pd.DataFrame:
    """One row a case: how its samples are spread, how many there are, and why sampling stopped."""
    rows = []
    for case, group in observations.groupby("id", sort=False):
        first = group.iloc[0]
        valid = group.loc[group["valid"], "seconds"].to_numpy()
        median, low, high = median_interval(valid, group.loc[group["valid"], "pass"].to_numpy())
        settings = {name: first[name] for name in group.columns if name not in OTHERS and not _blank(first[name])}
        rows.append(
            {
                **{name: first[name] for name in ("kind", "platform", "simulated", "name")},
                "id": case,
                "settings": " ".join(f"{name}={_plain(value)}" for name, value in settings.items()),
                "passes": group["pass"].nunique(),
                "samples": len(valid),
                "invalid": int((~group["valid"]).sum()),
                "stop": worst_stop(group["stop"].unique()),
                "min": valid.min() if len(valid) else np.nan,
                "median": median,
                "low": low,
                "high": high,
                "mean": valid.mean() if len(valid) else np.nan,
                "p95": np.percentile(valid, 95) if len(valid) else np.nan,
                "max": valid.max() if len(valid) else np.nan,
                "skew": group["skew"].median(),
            }
        )
    return pd.DataFrame(rows)


# Columns that do not tell one case of a probe or one point of an operation from another.
OTHERS = {"id", "batch", "platform", "simulated", "kind", "name", "pass", "sample", "seconds", "skew", "valid", "stop"}
OTHERS |= {"count"}


def _blank(value: object) -> bool:
    return value == "" or value is None or (isinstance(value, float) and np.isnan(value))


def _plain(value: object) -> object:
    return int(value) if isinstance(value, float) and value == int(value) else value
