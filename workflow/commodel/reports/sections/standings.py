"""How families stand and what choosing brings: figures of merit, who is ahead in which class of points, where each
family errs, what it would choose; and what choosing gains over what the MPI library chooses by itself, job by job.

The library's time is that at the layout which suits it best, so that a gain is never that of a better layout alone. The
combined prediction of all models is followed as `commodel advise` does, with weights from the other jobs alone.
"""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from commodel.compare import combined_prediction
from commodel.compare.comparison import (
    geometric_mean,
    has_schedule,
    is_clearly_faster,
    is_library,
    select_measured_points,
    summarize,
    summarize_choices,
)
from commodel.compare.model_ranking import (
    COVER,
    FEWEST_POINTS,
    find_best_model,
    find_equal_models,
    find_tied_models,
    sort_by_error,
)
from commodel.reports.frames import PLATFORM, families_of, scale_to_shown_units
from commodel.reports.shape import (
    ALL,
    MICRO,
    MU,
    REGRET,
    Column,
    Section,
    Table,
    columns_of,
    count,
    origin,
    percent,
    simulation,
    size,
    table,
)
from commodel.units import format_bytes

LIBRARY_COPIED = ("platform", "operation", "place", "size", "bytes", "group", "way", "measured")
OUTCOMES = ("faster", "tied", "slower")


def compare_with_library(comparison: pd.DataFrame) -> pd.DataFrame:
    """A row for each job where a schedule and the library were measured: the fastest schedule beside the library."""
    needed = [*LIBRARY_COPIED, "algorithm", "measured_low", "measured_high", "point"]
    once = select_measured_points(comparison)[needed].sort_values(["measured", "way"], kind="stable")
    own = is_library(once)
    libraries = {row["group"]: row for row in once[own].drop_duplicates("group").to_dict("records")}
    rows = [
        {key: row[key] for key in LIBRARY_COPIED} | {"library": other["measured"], "outcome": outcome(row, other)}
        for row in once[~own].drop_duplicates("group").to_dict("records")
        if (other := libraries.get(row["group"])) is not None
    ]
    frame = pd.DataFrame(rows, columns=[*LIBRARY_COPIED, "library", "outcome"])
    return frame.assign(gain=frame["library"].astype(float) / frame["measured"].astype(float))


def outcome(schedule: dict, library: dict) -> str:
    """What the schedule is to the library: faster or slower beyond doubt, or tied."""
    return (
        "faster"
        if is_clearly_faster(schedule, library)
        else "slower"
        if is_clearly_faster(library, schedule)
        else "tied"
    )


def library_sentences(rows: pd.DataFrame, simulated: set[str]) -> list[str]:
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
    return geometric_mean(np.log(gains))


def library_overview(rows: pd.DataFrame, simulated: set[str]) -> Table:
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
    columns = columns_of("Library")
    shown = pd.DataFrame(lines, columns=[column.key for column in columns])
    note = "The fastest schedule measured in each job beside the MPI library's own collective. Above 1: choosing pays."
    marks = frozenset((place, 7) for place, row in enumerate(shown.itertuples()) if row.mean > 1)
    return table("Library", "What choosing gains over the library", columns, shown, note=note, fixed=3, marks=marks)


def library_cells(row: Mapping | None) -> dict[str, object]:
    """Columns of one job for the Selection sheet; NaN where the library was not measured."""
    if row is None:
        return {"library": np.nan, "gain": np.nan, "outcome": np.nan}
    words = {"faster": "schedule", "tied": "tied", "slower": "library"}
    return {"library": row["library"] * MICRO, "gain": row["gain"], "outcome": words[row["outcome"]]}


LIBRARY_COLUMNS = columns_of("Beside the library")

KEYS = ["platform", "group", "choice", "layout"]


def combined_picks(frame: pd.DataFrame) -> pd.DataFrame:
    """`scoring.picks` with the names that reports have for a pick and its job."""
    about = frame[[*KEYS, "way", "size", "bytes"]].drop_duplicates(KEYS)
    return combined_prediction.pick_alternatives(frame).merge(about, "left", on=KEYS)


def combined_sentence(picked: pd.DataFrame) -> list[str]:
    """How good the advice was on one platform; nothing where there was nothing to choose."""
    if picked.empty:
        return []
    figures = combined_prediction.summarize_picks(picked.assign(operation=ALL)).iloc[0]
    line = "following the combined prediction of all models (weights from the other jobs) "
    line += "finds the fastest schedule or a tie in "
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
    shown = scale_to_shown_units(pd.concat(parts, ignore_index=True))
    columns = columns_of("Following")
    marks = frozenset((place, 7) for place, row in enumerate(shown.itertuples()) if row.gain > 1)
    note = (
        "What comes of picking the schedule that the combined prediction of all models prices lowest, as `commodel "
        "advise` "
        "does; weights come from the other jobs alone. Marked: faster than the library's own choice."
    )
    return table("Following", "What following the vote brings", columns, shown, note=note, fixed=3, marks=marks)


def families(frame: pd.DataFrame, judged: pd.DataFrame) -> tuple[Table, Table]:
    """Family × figures of merit, of its prices and of its picks: the best one of each platform marked, the family that
    predicts best first."""
    by = ["platform", "family"]
    predicted = frame.loc[has_schedule(frame), [*by, "simulated", "point", "measured"]]
    every = predicted.loc[predicted["family"] != "", [*by, "simulated"]].drop_duplicates(by)
    rows = every.merge(summarize(judged, by), "left", on=by).merge(summarize_choices(frame, by), "left", on=by)
    rows = scale_to_shown_units(rows.assign(points=rows["points"].fillna(0), groups=rows["groups"].fillna(0)))
    rows = sort_by_error(rows, ("simulated", "platform"))
    best = {platform: find_best_model(part) for platform, part in judged.groupby("platform")}
    return tabulate_predicting(rows, judged, predicted, best), tabulate_choosing(rows, best)


def tabulate_predicting(rows: pd.DataFrame, judged: pd.DataFrame, predicted: pd.DataFrame, best: dict) -> Table:
    standing = {}
    for platform, first in best.items():
        if first is not None:
            part = judged[judged["platform"] == platform]
            standing |= {(platform, family): "statistically tied" for family in find_tied_models(part, first)}
            standing |= {(platform, family): "same prices" for family in find_equal_models(part, first["family"])}
            standing[platform, first["family"]] = "best"
    rows["standing"] = [standing.get((row.platform, row.family), "") for row in rows.itertuples()]
    total = predicted[predicted["measured"].notna()].groupby("platform")["point"].nunique()
    rows["measured_points"] = rows["platform"].map(total).fillna(0)
    columns = columns_of("Families")
    marks = mark_best(rows, columns, {"mu_mean": 1, "abs_error_median": 1, "bias": 1}, best)
    note = "Best value of each platform marked, among families that price at least 80 % of the points. "
    note += "Shares inside the interval have no best: the widest interval would win."
    return table("Families", "How well each family predicts", columns, rows, note=note, fixed=3, marks=marks)


def tabulate_choosing(rows: pd.DataFrame, best: dict) -> Table:
    columns = columns_of("Choosing")
    merit = {"right": -1, "regret_mean": 1, "regret_max": 1, "over_library": 1, "over_fastest": 1}
    note = "What comes of picking the schedule that the family prices lowest, beside the fastest one and the library."
    marks = mark_best(rows, columns, merit, best)
    return table("Choosing", "How well each family chooses", columns, rows, note=note, fixed=3, marks=marks)


def mark_best(rows: pd.DataFrame, columns: list[Column], merit: dict[str, int], best: dict) -> frozenset:
    """Places of each platform's best values, and of the name of its best family; -1: more is better."""
    places, marks = [column.key for column in columns], set()
    for platform, part in rows.groupby("platform"):
        ranked = part[part["points"] >= COVER * part["points"].max()]
        if (first := best.get(platform)) is not None:
            marks |= {(row, places.index("family")) for row in part.index[part["family"] == first["family"]]}
        for key, sense in merit.items():
            value = (ranked[key].abs() if key == "bias" else ranked[key]) * sense
            if len(ranked) > 1 and value.min() < math.inf:
                marks |= {(row, places.index(key)) for row in value.index[value == value.min()]}
    return frozenset(marks)


def classes(ahead: pd.DataFrame, simulated: set[str]) -> Table:
    """Operation × fan-in × message size: the rows of `ranking.ahead`."""
    shown = ahead.assign(simulated=[simulation(platform in simulated) for platform in ahead["platform"]])
    shown["tied"] = [
        ", ".join(row.tied) if row.enough or not row.best else f"fewer than {FEWEST_POINTS} points"
        for row in ahead.itertuples()
    ]
    shown["same"] = [", ".join(row.same) for row in ahead.itertuples()]
    shown["mu_next"] = shown["mu_next"].astype(object).where(shown["next"] != "", None)
    shown["alone"] = [row.enough and not row.tied for row in ahead.itertuples()]
    columns = columns_of("Ahead")
    marks = frozenset((place, 6) for place, row in enumerate(shown.itertuples()) if row.alone)
    note = "Fan-in: the most messages that one rank receives in one step. Marked: ahead alone."
    return table(
        "Ahead", "Families by operation, fan-in and message size", columns, shown, note=note, fixed=5, marks=marks
    )


def errors(frame: pd.DataFrame) -> Section:
    """Family × operation, choice, size, and fan-in of an operation: matrices of mean μ."""
    blocks = []
    by = {"operation": "operation", "choice": "algorithm or topology", "bytes": "message size"}
    by |= {"fan_in": "operation and fan-in"}
    if not frame.empty:
        for key, name in by.items():
            rows = summarize(frame, [*names_of(key), "family"])
            blocks.append(matrix(places_of(frame, key), rows, families_of(frame), key, name))
    note = "Where each family is good and where it is not; n/a where it prices nothing there, or nothing was measured."
    return Section("Errors", note, tuple(blocks))


def names_of(key: str) -> list[str]:
    """The columns that tell the rows of a matrix apart: an algorithm and a topology may have one name."""
    return ["platform", *{"choice": ["kind"], "fan_in": ["operation"]}.get(key, []), key]


COUNTED = {"bytes": "bytes [B]", "fan_in": "fan-in"}


def places_of(frame: pd.DataFrame, key: str) -> pd.DataFrame:
    """The rows of matrices, with how many points were measured of each."""
    names = names_of(key)
    order = names if key == "fan_in" else ["platform", key]
    every = frame[["simulated", *names]].drop_duplicates(names).sort_values(["simulated", *order])
    points = frame[frame["measured"].notna()].groupby(names)["point"].nunique().rename("points")
    places = every.merge(points, "left", on=names)
    places["points"] = places["points"].fillna(0)
    return places


def matrix(places: pd.DataFrame, rows: pd.DataFrame, families: list[str], key: str, name: str) -> Table:
    names = names_of(key)
    wide = rows.pivot_table(index=names, columns="family", values="mu_mean").reindex(columns=families)
    wide = wide.rename(columns={family: f"= {family}" for family in families})
    shown = scale_to_shown_units(places.merge(wide, "left", on=names))
    columns = [*PLATFORM, *([Column("operation", "operation")] if key == "fan_in" else [])]
    columns.append(Column(key, COUNTED[key], "count") if key in COUNTED else Column(key, name))
    columns += [Column("kind", "kind")] if "kind" in names else []
    if key == "bytes":
        shown["label"] = [format_bytes(int(size)) for size in shown["bytes"]]
        columns.append(Column("label", "size"))
    columns.append(Column("points", "points measured", "count"))
    columns += [Column(f"= {family}", family, "ratio", scale=MU) for family in families]
    fixed = len(columns) - len(families)
    marks = mark_lowest(shown[[column.key for column in columns[fixed:]]], fixed) if families else frozenset()
    return table(f"Mean μ by {key}", f"Mean μ by {name}", columns, shown, fixed=fixed, note=LOWEST, marks=marks)


LOWEST = "Marked: the lowest of each row."


def mark_lowest(shown: pd.DataFrame, left: int) -> frozenset[tuple[int, int]]:
    """The places of the lowest value of every row, `left` columns further right."""
    values = shown.to_numpy(float)
    least = np.nanmin(np.where(np.isfinite(values), values, np.inf), axis=1, initial=np.inf)
    rows, columns = np.nonzero((values == least[:, None]) & np.isfinite(values))
    return frozenset((int(row), int(column) + left) for row, column in zip(rows, columns, strict=True))


def choices(frame: pd.DataFrame) -> tuple[Section, Section]:
    """Per job: the fastest alternative measured, what each family would have picked, and at which regret. Where no
    family had anything to choose, nothing is said of families."""
    families = families_of(frame)
    rows, alone = jobs(frame, families)
    if not any(isinstance(row[f"pick {family}"], str) for row in rows for family in families):
        families = []
    return selection_sections(rows, alone, families), picks(rows, families)


def selection_sections(rows: list[dict], alone: int, families: list[str]) -> Section:
    columns = [
        *JOB,
        *columns_of("Selection"),
        *LIBRARY_COLUMNS,
        *(Column(f"regret {family}", family, "percent", scale=REGRET) for family in families),
    ]
    note = (
        "Jobs with at least two measured alternatives, the library's own collective being one. Regret 0: the family "
        "picked the fastest schedule, of those that it prices the same the first; n/a: it had nothing to choose."
    )
    if alone:
        note += f" Left out: {count(alone, 'job')} with fewer."
    if not families and not any(pd.notna(row[column.key]) for row in rows for column in LIBRARY_COLUMNS):
        return Section("Selection", NOTHING, ())
    regrets = table("Selection", "Regret of choosing by each family [%]", columns, job_frame(rows, columns), fixed=6)
    return Section("Selection", note, (regrets,))


def picks(rows: list[dict], families: list[str]) -> Section:
    """Only picks that differ from the fastest one are named, and the jobs that have such: those a reader looks for."""
    columns = [*JOB, *(Column(f"pick {family}", family) for family in families)]
    if not families:
        return Section("Picks", NOTHING, ())
    keys = [f"pick {family}" for family in families]
    differing = [row | {key: "" for key in keys if row[key] == row["best"]} for row in rows]
    differing = [row for row in differing if any(isinstance(row[key], str) and row[key] for key in keys)]
    note = "Jobs in which a family picks another schedule than the fastest one measured. Blank: it picks that one; "
    note += "n/a: it could not choose."
    made = table("Picks", "What each family would choose instead", columns, job_frame(differing, columns), fixed=6)
    return Section("Picks", note, (made,))


NOTHING = "Nothing was to be chosen: no family prices two schedules of one job."
JOB = columns_of("Job")


COPIED = ("platform", "simulated", "operation", "place", "size", "bytes")


def jobs(frame: pd.DataFrame, families: list[str]) -> tuple[list[dict], int]:
    """A row for each job with at least two measured alternatives, one of them at least a schedule, and how many jobs
    have fewer."""
    once = select_measured_points(frame)
    once = once[once.groupby("group")["point"].transform("size") > 1]
    schedules = once[~is_library(once)]
    alone = frame["group"].nunique() - schedules["group"].nunique()
    by_group = _by_group(schedules, [*COPIED, "way", "measured", "measured_low", "measured_high"])
    chosen_by = _by_group(frame.loc[frame["chosen"], ["group", "family", "way", "regret"]], ["family", "way", "regret"])
    own = {row["group"]: row for row in compare_with_library(once).to_dict("records")}
    rows = []
    for group, part in by_group.items():
        first, *others = sorted(part, key=lambda row: (row["measured"], row["way"]))
        row = {key: first[key] for key in COPIED} | {
            "count": len(part),
            "best": first["way"],
            "measured": first["measured"] * MICRO,
            "next": None,
            "margin": None,
            "clear": None,
        }
        if others:
            row |= {"next": others[0]["way"], "margin": 100 * (others[0]["measured"] / first["measured"] - 1)}
            row |= {"clear": is_clearly_faster(first, others[0])}
        row |= library_cells(own.get(group))
        chosen = {pick["family"]: pick for pick in chosen_by.get(group, ())}
        for family in families:
            pick = chosen.get(family, {"way": np.nan, "regret": np.nan})  # no price for two of its alternatives
            row |= {f"pick {family}": pick["way"], f"regret {family}": pick["regret"] * 100}
        rows.append(row)
    return rows, alone


def _by_group(frame: pd.DataFrame, columns: list[str]) -> dict[str, list[dict]]:
    groups: dict[str, list[dict]] = {}
    for group, row in zip(frame["group"], frame[columns].to_dict("records"), strict=True):
        groups.setdefault(group, []).append(row)
    return groups


def job_frame(rows: list[dict], columns: list[Column]) -> pd.DataFrame:
    shown = pd.DataFrame(rows, columns=[column.key for column in columns])
    shown["simulated"] = shown["simulated"].map(simulation)
    return shown
