"""The sentences a report starts with: which model predicts best, what to use, how certain this is, what is missing.

`sections` builds the sheets Summary (answers and glossary), Standings (ranking of models) and What to use."""

from collections.abc import Mapping, Sequence
from itertools import chain

import pandas as pd

from commodel.compare.alternatives import find_fastest, join_sizes
from commodel.compare.comparison import select_measured_points, summarize_choices
from commodel.compare.model_ranking import (
    FAIR,
    by_operation,
    drop_equal_models,
    find_best_model,
    find_equal_models,
    find_tied_models,
    grade,
    rank_by_class,
    rank_models,
)
from commodel.predictions.prediction_intervals import IntervalBasis
from commodel.reports.frames import scale_to_shown_units, select_salient
from commodel.reports.sections import conditions, standings
from commodel.reports.shape import (
    Answer,
    Chart,
    Remark,
    Section,
    Table,
    columns_of,
    comma,
    count,
    origin,
    percent,
    ratio,
    shortened,
    size,
    span,
    table,
)
from commodel.units import format_seconds

GOOD_SHARE = 0.9  # of medians inside
MOST_SENTENCES = 3  # to one question; the tables have the rest
MOST_LEADS = 8  # sentences
BEST_MODEL, WHAT_TO_USE, CERTAINTY = "Which model predicts best", "What to use", "How certain this is"
MISSING = "What is missing"
DETAILS = {BEST_MODEL: "Standings", WHAT_TO_USE: "What to use", CERTAINTY: "Standings", MISSING: "Not measured"}


def answers(
    comparison: pd.DataFrame,
    judged: pd.DataFrame,
    uses: pd.DataFrame,
    picked: pd.DataFrame,
    simulated: set[str],
    remarks: Mapping[str, Sequence[Remark]],
) -> list[Answer]:
    """Return the four answers of each platform, measured platforms first. Models are judged by the held-out points
    `judged`; `uses` comes from `alternatives.join_sizes`, `remarks` are further sentences by question."""
    if comparison.empty:
        return [Answer(MISSING, ("The comparison has no points: nothing was planned, or nothing was compared.",))]
    salient = select_salient(comparison)
    found = []
    for platform in sorted(set(comparison["platform"]), key=lambda platform: (platform in simulated, platform)):
        part, held_out, use, picks, brief = (
            frame[frame["platform"] == platform] for frame in (comparison, judged, uses, picked, salient)
        )
        best = find_best_model(held_out) if len(held_out) else None
        sentences = {
            BEST_MODEL: describe_best_model(held_out, best) if len(held_out) else [],
            WHAT_TO_USE: describe_uses(use, standings.compare_with_library(part)),
            CERTAINTY: describe_certainty(brief, held_out, best, picks),
            MISSING: conditions.describe_missing(part, platform in simulated),
        }
        for question, lines in sentences.items():
            lines = [remark.text for remark in remarks.get(question, ()) if remark.platform == platform] + lines
            if len(lines) > MOST_SENTENCES:
                rest = count(len(lines) - MOST_SENTENCES + 1, "more finding")
                lines = [*lines[: MOST_SENTENCES - 1], f"{rest}: see {DETAILS[question]}."]
            if lines:
                heading = f"{question}: {origin(platform, simulated)}"
                found.append(Answer(heading, tuple(lines)))
    return found


def describe_best_model(part: pd.DataFrame, best: pd.Series | None) -> list[str]:
    """Return the best model with its error, the tied and the next models, and the operations without a good model."""
    if part["mu"].notna().sum() == 0:
        return ["No point has both a prediction and a measurement."]
    if best is None:
        return ["Every model predicts 0 for some point. No model can be recommended."]
    line = f"{best['family']} predicts best: mean μ {best['mu_mean']:.2f} on {count(best['points'], 'held-out point')}"
    line += f", median |error| {percent(best['abs_error_median'])}, bias {percent(best['bias'], sign=True)} "
    lines = [f"{line}({grade(best['mu_mean'])})."]
    rows, tied, same = rank_models(part), find_tied_models(part, best), find_equal_models(part, best["family"])
    mu = dict(zip(rows["family"], rows["mu_mean"], strict=True))
    after = [f"{model} ({ratio(mu[model])})" for model in drop_equal_models(part, rows, 3)[1:] if model not in tied]
    equal = [f"{model} ({ratio(mu[model])})" for model in tied]
    line = f"Statistically tied with it: {shortened(equal)}. " if equal else ""
    line += f"Equal predictions: {shortened(same)}. " if same else ""
    line += f"Next: {comma(after)}." if after else ""
    lines += [line.strip()] if line else []
    poor = []
    for operation, some_rows in by_operation(part):
        first = find_best_model(some_rows)
        if first is None:
            poor.append(f"{operation} (no comparable point)")
        elif first["mu_mean"] > FAIR:
            poor.append(f"{operation} (best: {first['family']}, {first['mu_mean']:.2f})")
    return [*lines, f"No model predicts {comma(poor)} well."] if poor else lines


def describe_uses(uses: pd.DataFrame, rows: pd.DataFrame) -> list[str]:
    """Return how often the MPI default is the fastest, and the recommended alternatives, the most valuable first.
    `uses` is from `join_sizes`, `rows` from `compare_with_library`."""
    if rows.empty:
        if uses.empty:
            return ["No workload has two measured alternatives."]
        lines = []
        for (operation,), part in uses.groupby(["operation"]):
            row = part.loc[(part["count"] == part["count"].max())].iloc[-1]
            lines.append(f"Use {row['use']} for {operation} on {row['size']} {span(row['smallest'], row['largest'])}.")
        return lines
    recommended = standings.recommend(rows)
    if not recommended:
        return [f"Keep the MPI default: no alternative is clearly faster in {count(len(rows), 'workload')}."]
    lines = [recommendation.sentence for recommendation in recommended]
    kept = sorted(set(rows["operation"]) - {recommendation.operation for recommendation in recommended})
    last = [f"Keep the MPI default for {comma(kept)}."] if kept else []
    return [standings.describe_default(rows), *last, *lines]


def list_leads(classes: pd.DataFrame, simulated: set[str]) -> Answer | None:
    """Return the classes in which one model alone is the best; None without any."""
    lines = [
        f"{origin(platform, simulated)}: {line}."
        for platform, rows in classes.groupby("platform")
        for line in describe_leads(rows)
    ]
    return Answer("Where one model is clearly the best", tuple(lines[:MOST_LEADS])) if lines else None


def describe_certainty(
    part: pd.DataFrame, judged: pd.DataFrame, best: pd.Series | None, picked: pd.DataFrame
) -> list[str]:
    """Return how well medians are known, what the best model's intervals cover, and the regret of its choices."""
    once = select_measured_points(part)
    if once.empty:
        return []
    half = ((once["measured_high"] - once["measured_low"]) / 2 / once["measured"]).median()
    line = f"{count(len(once), 'point')} measured; a median is typically known to ±{percent(half)} (95 % confidence)."
    skewed = int((once["skew"] > 0.1 * once["measured"]).sum())
    if skewed:
        skew = format_seconds(once["skew"].median())
        line += f" The start skew (median {skew}) exceeds 10 % of the time at {count(skewed, 'point')}."
    lines = [line]
    if best is None:
        return lines
    family, inside = best["family"], best["inside_share"]
    words = judged.loc[(judged["family"] == family) & judged["mu"].notna(), "interval"]
    bases = list(map(IntervalBasis.parse, words))
    covers = f"cover {percent(inside)} of the held-out medians"
    if 2 * sum(basis.of_residuals for basis in bases) < max(len(bases), 1):
        line = f"Parameter intervals of {family} {covers}. They exclude the error of the model itself."
    else:
        verdict = "" if inside >= GOOD_SHARE else "; they are too narrow"
        line = f"Prediction intervals of {family} {covers} (target: 95 %{verdict})."
        if any(basis.is_lower_bound for basis in bases):
            line += " They rest on fewer than five allocations and may be too narrow."
    lines += [line, *conditions.describe_missing_intervals(judged, family)]
    return [*lines, *describe_choices(family, part), *standings.describe_combined_picks(picked)]


def describe_choices(family: str, part: pd.DataFrame) -> list[str]:
    """Return gain and regret of choosing by a model; empty without a choice."""
    chosen = part[(part["family"] == family) & part["chosen"]]
    if chosen.empty:
        return []
    pick = summarize_choices(part[part["family"] == family], ["family"]).iloc[0]
    line = f"{family} chooses the fastest alternative, or a tied one, in {percent(pick['right'])} of "
    line += count(pick["groups"], "workload")
    if (over := pick["over_library"]) > 0:
        line += f", {1 / over:.2f}× faster than" if over < 1 else f", {over:.2f}× slower than"
        line += " the MPI default on average"
    if not pick["regret_max"] > 0:
        return [f"{line}; regret none."]
    row = chosen.sort_values("regret", ascending=False, na_position="last").iloc[0]
    line += f"; regret {percent(pick['regret_mean'])} mean, {percent(pick['regret_max'])} worst"
    return [f"{line} ({row['way']} for {row['operation']}, {row['size']}, {size(row['bytes'])})."]


def describe_leads(rows: pd.DataFrame) -> list[str]:
    """Return, for each model that alone is the best in some class of one platform, the classes and the widest lead."""
    alone = rows[rows["enough"] & (rows["tied"].str.len() == 0)]
    lines = []
    for family, classes in sorted(alone.groupby("best"), key=lambda item: (-len(item[1]), item[0])):
        places = [
            f"{operation} at fan-in {fan_in} ({', '.join(entry['size_class'])})"
            for (operation, fan_in), entry in classes.groupby(["operation", "fan_in"], sort=False)
        ]
        gaps = classes.dropna(subset=["mu_next"])
        line = f"{family} is clearly the best for {shortened(places, 4)}"
        if len(gaps):
            widest = gaps.loc[(gaps["mu_next"] / gaps["mu"]).idxmax()]
            line += f"; widest lead: μ {ratio(widest['mu'])}, next {widest['next']} at {ratio(widest['mu_next'])}"
        lines.append(line)
    return lines


GLOSSARY = (
    ("mean μ", "mean of max(predicted, measured) / min(predicted, measured); 1: exact, 2: wrong by a factor of two"),
    ("grade", "good: mean μ up to 1.10; fair: up to 1.35; else poor. A model needs predictions of 80 % of the points"),
    ("|error|, bias", "median of |predicted − measured| / measured; the same with its sign, positive if overestimated"),
    ("statistically tied", "models whose mean log errors differ by less than 1 % or by less than their 95 % interval"),
    ("equal predictions", "equal to 0.1 % at every point: one model under two names on this platform"),
    ("fan-in", "the most messages that one rank receives in one step of the pattern"),
    ("held-out point", "a point that was not used to fit the model. Only these count in figures of merit"),
    ("measured", "median of the valid samples, with its 95 % confidence interval"),
    (
        "prediction interval",
        (
            "95 % range of a prediction, from residuals of other workloads on the platform. The column `interval` has "
            "the number of workloads and allocations (`at least`: fewer than five), or parameters only"
        ),
    ),
    ("parameter interval", "95 % range if the model were exact and only its parameters uncertain"),
    ("inside", "share of measured medians within the prediction interval (target: 95 %)"),
    ("workload", "operation, ranks and bytes for which several alternatives compete"),
    ("alternative", "an algorithm, tree or layout for a workload, measured and predicted message by message"),
    ("MPI default", "the MPI library's own collective, with the algorithm that the library selects"),
    ("regret", "time lost by a choice: its measured time over that of the fastest alternative, minus 1"),
    ("chooses best", "share of workloads in which the model's choice is the fastest alternative, or tied with it"),
    ("of ties", "share of workloads in which the model predicts equal times for several alternatives"),
    ("combined prediction", "weighted geometric mean of all models; weight: 1 / mean squared logarithm of the error"),
    ("choice / default", "measured time of the chosen alternative over that of the MPI default, geometric mean"),
    ("clear", "the 95 % intervals of the fastest and the next alternative do not overlap, and they differ by over 1 %"),
    ("skew", "time between the first and the last rank that entered a sample, median"),
)

WAVE = (
    "wave",
    (
        "a repetition of an operation, begun without waiting for other ranks. Measured and predicted is the time "
        "between two waves; the latencies of the first and last wave have columns of their own"
    ),
)
STANDINGS = "Errors of each model's predictions and regret of its choices, by platform and by class of workload."
USE = "The fastest measured alternative of each workload, and its gain over the MPI default."
TIMES = (
    "Workloads whose fastest alternative changes with the message size come first. Solid: measured median with its "
    "95 % confidence interval. Dashed: prediction of the best model of the workload."
)


def sections(
    frame: pd.DataFrame,
    judged: pd.DataFrame,
    scatters: Mapping[str, Chart],
    times: Mapping[str, Sequence[Chart]],
    simulated: set[str],
    probes: list[Remark],
    containers: list[str],
    anomalies: list[Remark],
    settings: list[Remark],
) -> list[Section]:
    """Return the sheets Summary, Standings and What to use."""
    uses, classes = (
        _measured_first(rows, simulated) for rows in (join_sizes(find_fastest(frame)), rank_by_class(judged))
    )
    picked = standings.combined_picks(frame)
    blocks = [*answers(frame, judged, uses, picked, simulated, {BEST_MODEL: anomalies, MISSING: probes})]
    if settings:
        blocks.append(Answer("Differences between allocations", tuple(remark.text for remark in settings)))
    if containers:
        blocks.append(Answer("Overhead of the container", tuple(containers)))
    blocks += [*scatters.values()]
    terms = (*GLOSSARY, *((WAVE,) if (frame["waves"] > 1).any() else ()))
    words = Answer("Terms", tuple(f"{term}: {meaning}." for term, meaning in terms))
    first = Section("Summary", "", (*blocks, words))
    if frame.empty:
        return [first]
    standing = [*standings.families(frame, judged)]
    standing += [standings.combined_overview(picked)] if len(picked) else []
    lead = list_leads(classes, simulated)
    standing += [lead] if lead is not None else []
    standing += [standings.classes(classes, simulated)]
    gains = standings.compare_with_library(frame)
    use = [_use(frame, uses), *([standings.library_overview(gains, simulated)] if len(gains) else [])]
    use += [Answer("Time over message size", (TIMES,)), *chain(*times.values())] if times else []
    return [first, Section("Standings", STANDINGS, tuple(standing)), Section("What to use", USE, tuple(use))]


def _measured_first(rows: pd.DataFrame, simulated: set[str]) -> pd.DataFrame:
    """What was measured on a machine before what was simulated; else as it was."""
    return rows.sort_values("platform", key=lambda names: names.isin(simulated), kind="stable", ignore_index=True)


def _use(frame: pd.DataFrame, uses: pd.DataFrame) -> Table:
    shown = uses.merge(frame[["platform", "simulated"]].drop_duplicates("platform"), "left", on="platform")
    shown = scale_to_shown_units(shown)
    shown["span"] = [span(row.smallest, row.largest) for row in shown.itertuples()]
    shown["clearly"] = [f"{row.clear} of {row.sizes}" for row in shown.itertuples()]
    columns = columns_of("Use")
    note = "Measured medians. Neighbouring sizes with the same fastest alternative share a row."
    marks = frozenset((row, 6) for row, winner in enumerate(shown.itertuples()) if winner.clear == winner.sizes)
    return table("Use", "What to use", columns, shown, note=note, fixed=5, marks=marks)
