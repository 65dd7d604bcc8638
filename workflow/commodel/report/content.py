"""Builds the one `Report` that every writer renders. Owns its first two sections: the summary and the comparison."""

from collections.abc import Mapping, Sequence

import pandas as pd

from commodel.compare import selection, summarize
from commodel.records import ParameterSet
from commodel.report import charts, evidence, verdicts
from commodel.report.answers import COVER, answers, best_family
from commodel.report.frames import PLATFORM, prepare, scaled
from commodel.report.recommend import favoured
from commodel.report.shape import MU, Answer, Column, Report, Section, Table, plain, table
from commodel.report.words import span

GLOSSARY = (
    (
        "mean μ",
        "mean of max(predicted, measured) / min(predicted, measured): 1 is exact, 2 a factor of two off, either way",
    ),
    (
        "grade",
        "good to a mean μ of 1.10, fair to 1.35, else poor; pricing under 80 % of the points, a family is not ranked",
    ),
    (
        "|error|, bias",
        "median of |predicted − measured| / measured; the same with its sign: positive is too slow a price",
    ),
    ("measured", "median of the valid samples, with its 95 % interval"),
    ("inside", "share of measured medians that lie in the family's 95 % interval; 95 % would be right"),
    (
        "picks best",
        "share of jobs for which the family's cheapest alternative is the fastest one measured, or tied with it",
    ),
    ("regret", "measured time of the picked alternative over the fastest one measured, minus 1"),
    (
        "clear",
        "the 95 % intervals of the fastest and the next alternative do not overlap, and they are more than 1 % apart",
    ),
    ("job", "points that do the same work and differ in algorithm or topology only"),
    ("skew", "how far apart the ranks entered a sample, median"),
)

TIMES = (
    "Jobs whose fastest alternative changes with the size come first. Solid: measured median with its 95 % interval. "
    "Dashed: price by the family that predicts this job best."
)


def build(
    comparison: pd.DataFrame,
    parameter_sets: Sequence[ParameterSet] = (),
    raw: pd.DataFrame | None = None,
    provenance: Mapping[str, Mapping] | None = None,
    *,
    experiment: str,
    title: str = "",
    definitions: Mapping[tuple[str, str], str] | None = None,
) -> Report:
    """`definitions` says what a parameter means, by (family, parameter); every other argument is a stage's output."""
    frame = prepare(comparison)
    simulated = set(frame.loc[frame["simulated"], "platform"]) | {
        each.platform for each in parameter_sets if each.simulated
    }
    simulated = {plain(name) for name in simulated}
    sections = (
        summary(frame, simulated),
        Section(
            "Comparison", "One row per point and family: the price beside the measurement.", (comparison_table(frame),)
        ),
        verdicts.errors(frame),
        verdicts.selection(frame),
        evidence.parameters(parameter_sets, definitions or {}),
        evidence.fits(parameter_sets),
        evidence.raw_summary(raw, simulated),
        evidence.provenance(provenance or {}, simulated),
    )
    names = ", ".join(sorted(simulated))
    banner = f"SIMULATED: every measurement on {names} comes from a simulator, not from hardware." if simulated else ""
    return Report(plain(experiment), plain(title or experiment), banner, sections)


def comparison_table(frame: pd.DataFrame) -> Table:
    shown = scaled(frame)
    # Blank where a family made no choice or nothing can be compared; n/a is for what is missing and has a reason.
    shown["regret"] = shown["regret"].astype(object).where(frame["chosen"], None)
    shown["inside"] = shown["inside"].astype(object).where(frame["mu"].notna(), None)
    times = [
        Column(f"{key}{end}", f"{key}{end.replace('_', ' ')} [µs]", "number")
        for key in ("measured", "predicted")
        for end in ("", "_low", "_high")
    ]
    columns = [
        *PLATFORM,
        *(Column(key, key) for key in ("operation", "choice", "kind", "layout")),
        Column("ranks", "ranks", "count"),
        Column("leaves", "leaves", "count", "of the topology; 0 for an algorithm"),
        Column("bytes", "bytes [B]", "count"),
        Column("family", "family"),
        *times,
        Column("relative_error", "relative error [%]", "signed"),
        Column("mu", "μ", "ratio", scale=MU),
        Column("inside", "inside", "flag", "the measured median lies in the predicted interval"),
        Column("chosen", "chosen", "flag", "the family would choose this alternative"),
        Column("best", "best", "flag", "fastest measured in its job"),
        Column("regret", "regret [%]", "percent"),
        Column("status", "price status"),
        Column("measurement", "measurement"),
        Column("samples", "samples", "count"),
        Column("invalid", "invalid", "count", "samples discarded because a rank started late"),
        Column("stop", "stopped by"),
        Column("skew", "skew [µs]", "number"),
        Column("group", "job"),
        Column("point", "point"),
    ]
    return table("Comparison", "Predicted and measured", columns, shown, fixed=4)


def summary(frame: pd.DataFrame, simulated: set[str]) -> Section:
    uses = favoured(frame)
    blocks = [*answers(frame, uses, simulated)]
    if not frame.empty:
        blocks += [family_table(frame), *charts.predicted_measured(frame), use_table(frame, uses)]
        if lines := charts.time_over_bytes(frame):
            blocks += [Answer("Time over message size", (TIMES,)), *lines]
    words = Answer("How to read this", tuple(f"{term}: {meaning}." for term, meaning in GLOSSARY))
    return Section("Summary", "", (*blocks, words))


def family_table(frame: pd.DataFrame) -> Table:
    """Family × figures of merit, the best one of each platform marked, the best family first."""
    by = ["platform", "family"]
    every = frame.loc[frame["family"] != "", [*by, "simulated"]].drop_duplicates(by)
    rows = every.merge(summarize(frame, by), "left", on=by).merge(selection(frame, by), "left", on=by)
    rows = scaled(rows.assign(points=rows["points"].fillna(0), groups=rows["groups"].fillna(0)))
    rows = rows.sort_values(["platform", "mu_mean", "family"]).reset_index(drop=True)
    total = frame[frame["measured"].notna()].groupby("platform")["point"].nunique()
    rows["measured_points"] = rows["platform"].map(total).fillna(0)
    columns = [
        *PLATFORM,
        Column("family", "family"),
        Column("points", "points compared", "count"),
        Column("measured_points", "points measured", "count"),
        Column("mu_mean", "mean μ", "ratio", "1 is exact"),
        Column("mu_reached", "mean μ in range", "ratio", "of the prices whose status is ok: within what was probed"),
        Column("abs_error_median", "median |error| [%]", "percent"),
        Column("bias", "bias [%]", "signed", "median signed error; positive: priced too slow"),
        Column("inside_share", "inside interval [%]", "percent"),
        Column("groups", "jobs", "count", "with at least two alternatives"),
        Column("right", "picks best [%]", "percent"),
        Column("regret_mean", "mean regret [%]", "percent"),
        Column("regret_max", "max regret [%]", "percent"),
    ]
    merit = {"mu_mean": 1, "abs_error_median": 1, "inside_share": -1, "right": -1, "regret_mean": 1, "regret_max": 1}
    places, marks = [column.key for column in columns], set()
    for platform, part in rows.groupby("platform"):
        ranked = part[part["points"] >= COVER * part["points"].max()]
        best = best_family(frame[frame["platform"] == platform])
        if best is not None:
            marks |= {(row, places.index("family")) for row in part.index[part["family"] == best["family"]]}
        for key, sense in [*merit.items(), ("bias", 1)]:
            value = (ranked[key].abs() if key == "bias" else ranked[key]) * sense
            if len(ranked) > 1 and value.notna().any():
                marks |= {(row, places.index(key)) for row in value.index[value == value.min()]}
    note = "Best value of each platform marked, among families that price at least 80 % of the points."
    return table("Families", "How well each family predicts", columns, rows, note=note, fixed=3, marks=frozenset(marks))


def use_table(frame: pd.DataFrame, uses: pd.DataFrame) -> Table:
    shown = uses.merge(frame[["platform", "simulated"]].drop_duplicates("platform"), "left", on="platform")
    shown = scaled(shown)
    shown["span"] = [span(row.first, row.last) for row in shown.itertuples()]
    shown["clearly"] = [f"{row.clear} of {row.sizes}" for row in shown.itertuples()]
    columns = [
        *PLATFORM,
        *(Column(key, key) for key in ("operation", "layout", "size")),
        Column("span", "message sizes"),
        Column("use", "fastest"),
        Column("next", "next best"),
        Column("gain_low", "next / fastest, min [×]", "times"),
        Column("gain_high", "next / fastest, max [×]", "times"),
        Column("slowest", "slowest / fastest, max [×]", "times"),
        Column("clearly", "clear at (sizes)"),
    ]
    note = "Measured medians; neighbouring sizes with the same winner share a row. Between rows nothing was measured."
    marks = frozenset((row, 6) for row, one in enumerate(shown.itertuples()) if one.clear == one.sizes)
    return table("Use", "What to use", columns, shown, note=note, fixed=5, marks=marks)
