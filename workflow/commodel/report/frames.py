"""The comparison as reports need it: honest types whatever a CSV file made of them, and the scaling to shown units."""

import math

import numpy as np
import pandas as pd

from commodel.compare.table import is_library, named_streams
from commodel.files.columns import COMPARISON, names
from commodel.price.bands import PARAMETERS
from commodel.report.shape import MICRO, Column, plain
from commodel.report.words import simulation

FLAGS, WHOLE, TEXTS = (names(COMPARISON, kind) for kind in (bool, int, str))
SECONDS = [field.name for field in COMPARISON if field.unit == "s"]
SHARES = ("relative_error", "regret")

PLACE = Column("place", "layout", "text", "any layout: it is part of the choice, and named with it")
PLATFORM = [Column("platform", "platform"), Column("simulated", "simulated")]
SAMPLES = [
    Column("batch", "batch", "text", "the allocation that it was measured in"),
    Column("raw", "raw file", "file", "all its samples, of every pass; below the folder of the results"),
]
LEAVES = Column("leaves", "leaves", "count", "of the topology; an algorithm has none")


def prepare(comparison: pd.DataFrame) -> pd.DataFrame:
    """The comparison with honest types, whatever a CSV file made of them, sorted, with the labels that reports need:
    `size` of the job, with its waves and its setting, `kind` of the choice, and `way`, the choice by a name that tells
    it from the others of its job. Where these differ in layout too the way names it and `place` says what is given
    instead, else the layout."""
    frame = named_streams(comparison)
    frame = frame.assign(**dict.fromkeys({"batch", "raw", "setting"} - set(comparison), ""))  # of an older comparison
    frame = frame.assign(**dict.fromkeys({"first", "last", "processes", "processors"} - set(comparison), math.nan))
    if "interval" not in frame:
        ends = {f"parameters_{end}": frame[f"predicted_{end}"] for end in ("low", "high")}
        frame = frame.assign(interval=np.where(frame["predicted"].notna(), PARAMETERS, ""), **ends)
    frame.columns = pd.Index(frame.columns, dtype=object)
    for key in TEXTS:
        texts = [plain("" if pd.isna(value) else value) or "" for value in frame[key].tolist()]
        frame[key] = pd.Series(texts, index=frame.index, dtype=object)  # several times faster than Arrow here
    for key in FLAGS:
        flags = [str(value).strip().lower() in ("true", "1", "1.0") for value in frame[key].tolist()]
        frame[key] = np.array(flags, dtype=bool)  # of an empty list too
    for key in (*SECONDS, *SHARES, *WHOLE, "mu"):
        frame[key] = pd.to_numeric(frame[key], errors="coerce").astype(float)
    for key in WHOLE:
        frame[key] = frame[key].fillna(0).astype(np.int64)
    frame["size"] = [_size(row) for row in frame.itertuples()]
    kinds = [is_library(frame), frame["topology"] != ""]
    frame["kind"] = np.select(kinds, ["library", "topology"], "algorithm").astype(object)
    job = ["platform", "operation", "size", "room"]
    several = frame.groupby(job)["layout"].transform("nunique") > 1
    frame["place"] = ("any layout, " + frame["room"]).where(several, frame["layout"])
    frame["way"] = (frame["choice"] + ", " + frame["layout"]).where(several, frame["choice"])
    order = ["platform", "operation", "place", "ranks", "bytes", "way", "family"]
    return frame.sort_values(order, kind="stable").reset_index(drop=True)


def _size(row) -> str:
    over = f"{row.leaves} leaves" if row.leaves else f"{row.ranks} ranks"
    over = over if row.waves == 1 else f"{over}, {row.waves} waves"
    return f"{over}, {row.setting}" if row.setting else over


def scaled(frame: pd.DataFrame) -> pd.DataFrame:
    """Seconds as µs, shares as %, flags as words."""
    shown = frame.copy()
    for key in SECONDS:
        if key in shown:
            shown[key] = shown[key] * MICRO
    for key in (*SHARES, "abs_error_median", "bias", "inside_share", "right", "tied", "regret_mean", "regret_max"):
        if key in shown:
            shown[key] = shown[key].astype(float) * 100
    return shown.assign(simulated=shown["simulated"].map(simulation))


def families_of(frame: pd.DataFrame) -> list[str]:
    """The families in it; a point that no family was asked to price has an empty one."""
    return sorted(name for name in frame["family"].unique() if name)


def leaves(frame: pd.DataFrame) -> pd.Series:
    """As tables show them: blank for an algorithm."""
    return frame["leaves"].astype(object).where(frame["leaves"] > 0, None)
