"""What following the vote of all families brings, as `commodel advise` does: job by job with weights from the other
jobs alone, beside the fastest schedule measured and the MPI library's own choice."""

import pandas as pd

from commodel.compare import scoring
from commodel.report.frames import PLATFORM, scaled
from commodel.report.shape import Column, Table, table
from commodel.report.words import ALL, count, percent, size

KEYS = ["platform", "group", "choice", "layout"]


def picks(frame: pd.DataFrame) -> pd.DataFrame:
    """`scoring.picks` with the names that reports have for a pick and its job."""
    about = frame[[*KEYS, "way", "size", "bytes"]].drop_duplicates(KEYS)
    return scoring.picks(frame).merge(about, "left", on=KEYS)


def sentence(picked: pd.DataFrame) -> list[str]:
    """How good the advice was on one platform; nothing where there was nothing to choose."""
    if picked.empty:
        return []
    figures = scoring.summary(picked.assign(operation=ALL)).iloc[0]
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


def overview(picked: pd.DataFrame) -> Table:
    """By platform and operation; where a platform has several, all of them together first."""
    parts = []
    for _, here in picked.groupby("platform", sort=False):
        by_operation = scoring.summary(here.sort_values("operation", kind="stable"))
        if len(by_operation) > 1:
            parts.append(scoring.summary(here.assign(operation=ALL)))
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
