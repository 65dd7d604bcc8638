"""How much jobs differ from each other: factors of latency and of time per byte, from calibrations and from batches."""

import pandas as pd

from commodel.compare.drift import CALIBRATED, clear
from commodel.report.frames import PLATFORM
from commodel.report.shape import Column, Section, table
from commodel.report.values import plain
from commodel.report.words import simulation

NOTE = (
    "A factor is that of the job over what the prices are of: of all values in seconds, and of all that grow with the "
    "size of a message. Against the same points: what the job took beside what the campaign took. Against prices: what "
    "a family is off with more ranks, or on more nodes, is among it."
)
WHAT = (("latency", "latency"), ("per_byte", "time per byte"))
JOBS_NAMED = 3  # jobs that the first screen names


def sentences(drift: pd.DataFrame) -> list[str]:
    """Of jobs measured at the same points that differ beyond doubt; the one that differs most first."""
    known = drift[drift["against"] == CALIBRATED]
    lines = []
    for row in known.to_dict("records"):
        parts = [
            (max(row[f"{key}_value"], 1 / row[f"{key}_value"]), _part(row, key, name))
            for key, name in WHAT
            if clear(row[f"{key}_low"], row[f"{key}_high"])
        ]
        if parts:
            text = f"In job {plain(row['job'])} {' and '.join(part for _, part in parts)} that of the campaign"
            after = f": prices are {row['before']:.2f} times off there, {row['after']:.2f} after `commodel calibrate`"
            lines.append((max(parts)[0], f"{text}{after if row['after'] == row['after'] else ''}."))
    return [text for _, text in sorted(lines, reverse=True)[:JOBS_NAMED]]


def _part(row: dict, key: str, name: str) -> str:
    value, low, high = (row[f"{key}_{end}"] for end in ("value", "low", "high"))
    return f"{name} is {value:.3g}× [{low:.3g}, {high:.3g}]"


def sections(drift: pd.DataFrame) -> list[Section]:
    """None where there is but one job."""
    if drift.empty:
        return []
    shown = drift.assign(simulated=drift["simulated"].map(simulation))
    shown["checked"] = drift["checked"].where(drift["checked"] > 0)
    for key in ("platform", "job", "date", "family"):
        shown[key] = shown[key].map(plain)
    factors = [
        Column(f"{key}_{end}", f"{name}{'' if end == 'value' else f' {end}'} [×]", "ratio")
        for key, name in WHAT
        for end in ("value", "low", "high")
    ]
    columns = [
        *PLATFORM,
        Column("job", "job", "text", "its setting, or its batch"),
        Column("date", "measured"),
        Column("against", "against"),
        Column("family", "family", "text", "whose values the factors are of: the one that is nearest"),
        *factors,
        Column("points", "points", "count"),
        Column("before", "μ before", "ratio", "of points kept aside, with the campaign's prices"),
        Column("after", "μ after", "ratio", "of the same points, with prices moved to the job"),
        Column("checked", "points kept aside", "count"),
    ]
    jobs = table("Jobs", "How much jobs differ", columns, shown, note=NOTE, fixed=2)
    return [Section("Jobs", "Times of other jobs beside those that the prices are of.", (jobs,))]
