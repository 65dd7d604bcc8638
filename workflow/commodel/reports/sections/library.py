"""What choosing for oneself gains over what the MPI library chooses by itself, job by job. The library's time is that
at the layout which suits it best, so that a gain is never that of a better layout alone.

What following the vote of all families brings, as `commodel advise` does: job by job with weights from the other
jobs alone, beside the fastest schedule measured and the MPI library's own choice."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from commodel.compare import combined_prediction
from commodel.compare.comparison import clearly_faster, geometric, is_library, measured_once
from commodel.reports.frames import PLATFORM, scaled
from commodel.reports.shape import MICRO, Column, Table, table
from commodel.reports.values import ALL, count, origin, percent, simulation, size

COPIED = ("platform", "operation", "place", "size", "bytes", "group", "way", "measured")
OUTCOMES = ("faster", "tied", "slower")


def against(comparison: pd.DataFrame) -> pd.DataFrame:
    """A row for each job where a schedule and the library were measured: the fastest schedule beside the library."""
    needed = [*COPIED, "algorithm", "measured_low", "measured_high", "point"]
    once = measured_once(comparison)[needed].sort_values(["measured", "way"], kind="stable")
    own = is_library(once)
    libraries = {row["group"]: row for row in once[own].drop_duplicates("group").to_dict("records")}
    rows = [
        {key: row[key] for key in COPIED} | {"library": other["measured"], "outcome": outcome(row, other)}
        for row in once[~own].drop_duplicates("group").to_dict("records")
        if (other := libraries.get(row["group"])) is not None
    ]
    frame = pd.DataFrame(rows, columns=[*COPIED, "library", "outcome"])
    return frame.assign(gain=frame["library"].astype(float) / frame["measured"].astype(float))


def outcome(schedule: dict, library: dict) -> str:
    """What the schedule is to the library: faster or slower beyond doubt, or tied."""
    return "faster" if clearly_faster(schedule, library) else "slower" if clearly_faster(library, schedule) else "tied"


def sentences(rows: pd.DataFrame, simulated: set[str]) -> list[str]:
    """One for each platform: how often a schedule beats the library, and by how much."""
    lines = []
    for platform, part in rows.groupby("platform"):
        of = {name: part[part["outcome"] == name] for name in OUTCOMES}
        won, lost = of["faster"], of["slower"]
        line = f"{origin(platform, simulated)}: the fastest schedule beats the library's own choice in "
        line += f"{len(won)} of {count(len(part), 'job')}"
        if len(won):
            top = won.loc[won["gain"].idxmax()]
            line += f" (by {mean(won['gain']):.2f}× on average, {top['gain']:.2f}× at most: {top['way']} for "
            line += f"{top['operation']} over {top['size']}{at(top['bytes'])})"
        line += f", is tied with it in {len(of['tied'])}" if len(of["tied"]) else ""
        if len(lost):
            line += f"; in {len(lost)} the library is best (by {1 / mean(lost['gain']):.2f}× on average)"
        lines.append(f"{line}.")
    return lines


def at(bytes: int) -> str:
    return f" at {size(bytes)}" if bytes else ""


def mean(gains: pd.Series) -> float:
    return geometric(np.log(gains))


def overview(rows: pd.DataFrame, simulated: set[str]) -> Table:
    """By platform and operation: how often, and how far, the fastest schedule is ahead of the library."""
    lines = []
    for (platform, operation), part in rows.groupby(["platform", "operation"]):
        top = part.loc[part["gain"].idxmax()]
        lines.append(
            {"platform": platform, "simulated": simulation(platform in simulated), "operation": operation}
            | {"jobs": len(part), **{name: int((part["outcome"] == name).sum()) for name in OUTCOMES}}
            | {"mean": mean(part["gain"]), "least": part["gain"].min(), "most": top["gain"]}
            | {"top": f"{top['way']}, {top['size']}{at(top['bytes'])}"}
        )
    lines.sort(key=lambda line: line["simulated"] != simulation(False))
    columns = [
        *PLATFORM,
        Column("operation", "operation"),
        Column("jobs", "jobs", "count"),
        Column("faster", "schedule is faster", "count", "beyond doubt: intervals part, and by more than 1 %"),
        Column("tied", "tied", "count"),
        Column("slower", "library is faster", "count", "beyond doubt: intervals part, and by more than 1 %"),
        Column("mean", "library / fastest schedule, mean [×]", "times", "geometric mean; above 1: the schedule wins"),
        Column("least", "min [×]", "times"),
        Column("most", "max [×]", "times"),
        Column("top", "largest gain"),
    ]
    shown = pd.DataFrame(lines, columns=[column.key for column in columns])
    note = "The fastest schedule measured in each job beside the MPI library's own collective. Above 1: choosing pays."
    marks = frozenset((place, 7) for place, row in enumerate(shown.itertuples()) if row.mean > 1)
    return table("Library", "What choosing gains over the library", columns, shown, note=note, fixed=3, marks=marks)


def beside(row: Mapping | None) -> dict[str, object]:
    """Columns of one job for the Selection sheet; NaN where the library was not measured."""
    if row is None:
        return {"library": np.nan, "gain": np.nan, "outcome": np.nan}
    words = {"faster": "schedule", "tied": "tied", "slower": "library"}
    return {"library": row["library"] * MICRO, "gain": row["gain"], "outcome": words[row["outcome"]]}


COLUMNS = [
    Column("library", "library's time [µs]", "number", "the MPI library's own collective"),
    Column("gain", "library / fastest schedule [×]", "times", "above 1: the schedule is faster than the library"),
    Column("outcome", "faster of the two"),
]

KEYS = ["platform", "group", "choice", "layout"]


def picks(frame: pd.DataFrame) -> pd.DataFrame:
    """`scoring.picks` with the names that reports have for a pick and its job."""
    about = frame[[*KEYS, "way", "size", "bytes"]].drop_duplicates(KEYS)
    return combined_prediction.pick_alternatives(frame).merge(about, "left", on=KEYS)


def sentence(picked: pd.DataFrame) -> list[str]:
    """How good the advice was on one platform; nothing where there was nothing to choose."""
    if picked.empty:
        return []
    figures = combined_prediction.summarize_picks(picked.assign(operation=ALL)).iloc[0]
    line = "following the vote of all families (weights from the other jobs) finds the fastest schedule or a tie in "
    line += f"{percent(figures['right'])} of {count(figures['jobs'], 'job')}"
    if not figures["regret_max"] > 0:
        line += ", costs nothing"
    else:
        worst = picked.loc[picked["regret"].idxmax()]
        where = f"{worst['way']} for {worst['operation']}, {worst['size']}, {size(worst['bytes'])}"
        mean, most = percent(figures["regret_mean"]), percent(figures["regret_max"])
        line += f", costs {mean} on average and {most} at worst ({where})"
    if (gain := figures["gain"]) > 0:
        over = (
            f"is on average {gain:.2f}× faster than" if gain >= 1 else f"takes on average {1 / gain:.2f}× the time of"
        )
        line += f", and {over} the library's own choice"
    return [line]


def combined_overview(picked: pd.DataFrame) -> Table:
    """By platform and operation; where a platform has several, all of them together first."""
    parts = []
    for _, here in picked.groupby("platform", sort=False):
        by_operation = combined_prediction.summarize_picks(here.sort_values("operation", kind="stable"))
        if len(by_operation) > 1:
            parts.append(combined_prediction.summarize_picks(here.assign(operation=ALL)))
        parts.append(by_operation)
    shown = scaled(pd.concat(parts, ignore_index=True))
    columns = [
        *PLATFORM,
        Column("operation", "operation"),
        Column("jobs", "jobs", "count", "with at least two schedules that were priced and measured"),
        Column("right", "picks best [%]", "percent", "the fastest schedule measured, or tied with it"),
        Column("regret_mean", "mean regret [%]", "percent"),
        Column("regret_max", "max regret [%]", "percent"),
        Column("gain", "library / pick [×]", "times", "geometric mean; above 1: the pick is faster than the library"),
        Column("most", "library / fastest schedule [×]", "times", "geometric mean: the most that choosing can bring"),
    ]
    marks = frozenset((place, 7) for place, row in enumerate(shown.itertuples()) if row.gain > 1)
    note = (
        "What comes of picking the schedule that the weighted vote of all families prices lowest, as `commodel advise` "
        "does; weights come from the other jobs alone. Marked: faster than the library's own choice."
    )
    return table("Following", "What following the vote brings", columns, shown, note=note, fixed=3, marks=marks)
