"""What has no measurement, and why: the points and probe cases whose program crashed, hung, or had no time left; and
which prices have no interval, since nothing like them was measured."""

from collections.abc import Mapping

import pandas as pd

from commodel.compare.table import some_passes, why_not_measured
from commodel.price.intervals import unseen
from commodel.report.frames import PLATFORM
from commodel.report.shape import Column, Section, table
from commodel.report.values import plain
from commodel.report.words import by_frequency, comma, count, simulation, tally
from commodel.results.unmeasured import COUNTS, TEXTS, table_of

NOTE = (
    "budget: its batch had no time left. timeout: it ran past its limit. crash: its program failed. unfinished: its "
    "batch did not finish. late: in every sample a rank came after the common start, as on a node with more busy ranks "
    "than cores, or a clock was set. No score counts these. `commodel run EXPERIMENT --retry` tries them again."
)


def prepare(unmeasured: pd.DataFrame | None) -> pd.DataFrame:
    """The table as reports have it, in their order; empty where everything was measured."""
    frame = (unmeasured if unmeasured is not None else table_of([])).astype(object)
    for key in TEXTS:
        frame[key] = [plain(value) for value in frame[key]]
    for key in COUNTS:
        frame[key] = [None if pd.isna(number) else number for number in frame[key]]
    return frame.sort_values(["platform", "kind", "status", "name", "choice"], kind="stable").reset_index(drop=True)


def sections(frame: pd.DataFrame, simulated: set[str]) -> list[Section]:
    """Nothing where everything was measured."""
    if frame.empty:
        return []
    shown_counts = [key for key in COUNTS if key != "waves" or frame[key].notna().any()]
    columns = [
        *PLATFORM,
        Column("status", "status"),
        Column("kind", "kind"),
        Column("name", "operation or probe"),
        Column("choice", "choice"),
        Column("layout", "layout"),
        *(Column(key, "bytes [B]" if key == "bytes" else key, "count") for key in shown_counts),
        Column("batch", "batch"),
        Column("id", "id"),
        Column("reason", "reason"),
    ]
    shown = frame.assign(simulated=[simulation(name in simulated) for name in frame["platform"]])
    made = table("Unmeasured", "What has no measurement, and why", columns, shown.astype(object), fixed=3)
    return [Section("Not measured", NOTE, (made,))]


def points(once: pd.DataFrame) -> list[str]:
    """Of a comparison with one row a point: how many have no measurement, why, and what that leaves open."""
    lacking = once[once["measured"].isna()]
    if lacking.empty:
        return []
    reasons = [why_not_measured(text) or "reason unknown" for text in lacking["measurement"]]
    where = f" ({tally(lacking['platform'])})" if once["platform"].nunique() > 1 else ""
    verb = "was" if len(lacking) == 1 else "were"
    lines = [f"{len(lacking)} of {count(len(once), 'point')} {verb} not measured: {by_number(reasons)}{where}."]
    open_jobs = set(lacking["group"]) & set(once.loc[once["measured"].notna(), "group"])
    if open_jobs:
        lines.append(
            f"In {count(len(open_jobs), 'job')} an alternative has no measurement: the fastest there is the fastest of "
            "those that have."
        )
    return lines


def passes(once: pd.DataFrame) -> list[str]:
    """Of a comparison with one row a point: those that were measured in some of their passes only."""
    outcomes = [f"with {number}" for text in once["measurement"] if (number := some_passes(text))]
    if not outcomes:
        return []
    verb = "has" if len(outcomes) == 1 else "have"
    line = f"{count(len(outcomes), 'point')} {verb} some passes only, {by_number(outcomes)}: "
    line += "in the others every sample came late, the time of the batch was over, or three cases in a row had failed. "
    return [line + "Their intervals hold less of what changes from pass to pass."]


def probes(frame: pd.DataFrame, raw: pd.DataFrame | None, asked: Mapping[str, int]) -> list[str]:
    """Probe cases without samples, which fits had to do without; and those of the summary of raw samples that have
    fewer passes than were asked for on their platform."""
    lines, lacking = [], frame[frame["kind"] == "probe"]
    if len(lacking):
        line = f"{count(len(lacking), 'probe case')} {'was' if len(lacking) == 1 else 'were'} not measured: "
        lines.append(f"{line}{by_number(lacking['status'])} ({tally(lacking['name'])}); the fits saw the others only.")
    if raw is not None:
        few = raw[(raw["kind"] == "probe") & (raw["passes"] < raw["platform"].map(asked))]
        if len(few):
            has = "has" if len(few) == 1 else "have"
            line = f"{count(len(few), 'probe case')} {has} some passes only ({tally(few['name'])}): intervals "
            lines.append(f"{line}of what is fitted from them hold less of what changes from pass to pass.")
    return lines


def by_number(reasons) -> str:
    """`2 budget and 1 crash`: the most frequent first."""
    return comma([f"{number} {reason}" for reason, number in by_frequency(reasons)[:6]])


def without_errors(part: pd.DataFrame, family: str) -> list[str]:
    """Which points of a platform have no interval that rests on errors, as those on more nodes than one may have none
    where all others are within one."""
    places = part.loc[part["family"] == family, "interval"].map(unseen)
    return [
        f"{count(number, 'price')} of {family} {'has' if number == 1 else 'have'} no interval by errors, only that of "
        f"the parameters: no other job was measured {place}"
        for place, number in places[places != ""].value_counts().items()
    ]
