"""The sentences a report starts with: whom to trust, what to use, how sure that is, what is missing."""

import math

import pandas as pd

from commodel.compare import selection, summarize
from commodel.report.shape import Answer
from commodel.report.words import comma, count, gain, percent, size, span, tally
from commodel.units import format_seconds

GOOD, FAIR = 1.10, 1.35  # mean μ up to which a family is called so
COVER = 0.8  # a family that prices fewer of the points than this share of the others is not compared with them
MOST = 8  # sentences to one question; the tables have the rest


def origin(platform: str, simulated: set[str]) -> str:
    return f"{platform} (simulated)" if platform in simulated else platform


def answers(comparison: pd.DataFrame, uses: pd.DataFrame, simulated: set[str]) -> list[Answer]:
    """The four answers; `uses` comes from `recommend.favoured`."""
    if comparison.empty:
        return [
            Answer(
                "What is missing", ("The comparison holds no points: nothing was planned, or nothing was compared.",)
            )
        ]
    trusted = {platform: best_family(part) for platform, part in comparison.groupby("platform")}
    found = {
        "Which model to trust": [
            line
            for platform, part in comparison.groupby("platform")
            for line in trust(part, trusted[platform], origin(platform, simulated))
        ],
        "What to use": choices(uses, simulated),
        "How sure this is": [
            line
            for platform, part in comparison.groupby("platform")
            for line in certainty(part, trusted[platform], origin(platform, simulated))
        ],
        "What is missing": missing(comparison, simulated),
    }
    return [Answer(question, tuple(lines)) for question, lines in found.items() if lines]


def best_family(part: pd.DataFrame) -> pd.Series | None:
    """The row of `summarize` with the lowest mean μ among the families that price most of the points."""
    if part["mu"].notna().sum() == 0:
        return None
    rows = summarize(part, ["family"])
    rows = rows[(rows["points"] >= COVER * rows["points"].max()) & rows["mu_mean"].notna()]
    return rows.sort_values(["mu_mean", "family"], ascending=[True, True]).iloc[0] if len(rows) else None


def tied_families(part: pd.DataFrame, best: pd.Series) -> list[str]:
    """Families whose μ differs from the best one's by less than the 95 % interval of the paired mean difference."""
    wide = part.pivot_table(index="point", columns="family", values="mu").replace(math.inf, math.nan)
    tied = []
    for family in wide.columns:
        both = (wide[family] - wide[best["family"]]).dropna()
        enough = len(both) > max(2, COVER * best["points"])
        if family != best["family"] and enough and both.mean() <= 1.96 * both.std() / math.sqrt(len(both)):
            tied.append(family)
    return tied


def grade(mu: float) -> str:
    return "good" if mu <= GOOD else "fair" if mu <= FAIR else "poor"


def trust(part: pd.DataFrame, best: pd.Series | None, where: str) -> list[str]:
    if best is None:
        return [f"{where}: no point has both a price and a measurement."]
    tied = tied_families(part, best)
    line = (
        f"{where}: {best['family']} predicts best (mean μ {best['mu_mean']:.2f} over {count(best['points'], 'point')}, "
        f"median |error| {percent(best['abs_error_median'])}, bias {percent(best['bias'], sign=True)}): "
        f"{grade(best['mu_mean'])}."
    )
    if tied:
        line += f" {comma(tied)} cannot be told apart from it."
    operations, lines = [], [line]
    for operation, some in part.groupby("operation"):
        first = best_family(some)
        if first is None:
            operations.append(f"{operation}: no comparable point")
        elif first["mu_mean"] > FAIR:
            operations.append(f"{operation}: none (best is {first['family']} at μ {first['mu_mean']:.2f})")
        else:
            operations.append(f"{operation}: {first['family']} ({first['mu_mean']:.2f}, {grade(first['mu_mean'])})")
    if len(operations) > 1:
        lines.append(f"{where}, by operation (mean μ): {'; '.join(operations)}.")
    return lines


def choices(uses: pd.DataFrame, simulated: set[str]) -> list[str]:
    """One sentence for the largest job of every platform and operation."""
    if uses.empty:
        return ["No job has two measured alternatives, so there is nothing to choose between."]
    lines = []
    for (platform, operation), part in uses.groupby(["platform", "operation"]):
        largest = max(part["size"], key=lambda job: int(job.split()[0]))
        job = part[part["size"] == largest]
        job = job[job["layout"] == job["layout"].iloc[0]]
        runs = [f"{row.use} {span(row.first, row.last)} ({gain(row)})" for row in job.itertuples()]
        lines.append(
            f"{origin(platform, simulated)}, {operation} over {largest}, {job['layout'].iloc[0]}: {'; '.join(runs)}."
        )
    if len(lines) > MOST:
        lines = [*lines[:MOST], f"{len(lines) - MOST} more operations: see the table."]
    return lines


def certainty(part: pd.DataFrame, best: pd.Series | None, where: str) -> list[str]:
    once = part[part["measured"].notna()].drop_duplicates("point")
    if once.empty:
        return []
    half = ((once["measured_high"] - once["measured_low"]) / 2 / once["measured"]).median()
    known = f"each median known to ±{percent(half)} within its own run (95 %, typical)"
    line = f"{where}: {count(len(once), 'point')} measured, {known}."
    loud = int((once["skew"] > 0.1 * once["measured"]).sum())
    if loud:
        skew = format_seconds(once["skew"].median())
        line += f" Start skew (typically {skew}) exceeds 10 % of the time at {count(loud, 'point')}: doubt those."
    lines = [line]
    if best is None:
        return lines
    family, inside = best["family"], best["inside_share"]
    verdict = "as it should" if inside >= 0.9 else "95 % expected: its intervals are too narrow"
    lines.append(f"{where}: the 95 % interval of {family} holds {percent(inside)} of the measured medians ({verdict}).")
    return lines + [f"{where}: {choosing}." for choosing in choosing_by(family, part)]


def choosing_by(family: str, part: pd.DataFrame) -> list[str]:
    """What it brings and costs to choose by this family; empty where it had nothing to choose."""
    mine = part[(part["family"] == family) & part["chosen"]]
    if mine.empty:
        return []
    pick = selection(part[part["family"] == family], ["family"]).iloc[0]
    right, jobs = percent(pick["right"]), count(pick["groups"], "job")
    line = f"choosing by {family} finds the fastest alternative (or a tie) in {right} of {jobs}"
    if not pick["regret_max"] > 0:
        return [f"{line}; the choice costs nothing"]
    line += f"; the choice costs {percent(pick['regret_mean'])} on average, {percent(pick['regret_max'])} at worst"
    row = mine.sort_values("regret", ascending=False, na_position="last").iloc[0]
    return [f"{line} ({row['choice']} for {row['operation']}, {row['size']}, {size(row['bytes'])})"]


def missing(comparison: pd.DataFrame, simulated: set[str]) -> list[str]:
    once, lines = comparison.drop_duplicates("point"), []
    for platform in sorted(simulated & set(once["platform"])):
        lines.append(f"{platform} is simulated: its measurements come from a simulator, not from hardware.")
    unmeasured = once[once["measured"].isna()]
    if len(unmeasured):
        reasons = [reason.removeprefix("not measured").lstrip(": ") for reason in unmeasured["measurement"]]
        named = zip(unmeasured["platform"], reasons, strict=True)
        why = tally(f"{platform}, {reason}:" if reason else f"{platform}:" for platform, reason in named)
        lines.append(f"{len(unmeasured)} of {count(len(once), 'point')} not measured ({why}).")
    short = once[once["measured"].notna() & ~once["stop"].isin(["precision", ""])]
    if len(short):
        why = tally(short["stop"])
        lines.append(f"{count(len(short), 'point')} stopped before the asked precision was reached (limit hit: {why}).")
    discarded = once["invalid"].sum()
    if discarded:
        lines.append(
            f"{int(discarded)} of {int(discarded + once['samples'].sum())} samples discarded: a rank started late."
        )
    lacking = comparison[comparison["predicted"].isna()]
    if len(lacking):
        lines.append(f"{len(lacking)} of {count(len(comparison), 'price')} missing ({tally(lacking['family'])}).")
    doubtful = comparison[comparison["predicted"].notna() & ~comparison["status"].isin(["ok", ""])]
    if len(doubtful):
        kinds = doubtful["family"] + " " + doubtful["status"].str.split(":").str[0]
        lines.append(
            f"{len(doubtful)} of {count(len(comparison), 'price')} doubtful ({tally(kinds)}); their status says why."
        )
    return lines or ["Nothing: every point was measured to the asked precision and priced by every family."]
