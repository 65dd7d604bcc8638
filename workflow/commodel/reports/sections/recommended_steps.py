"""How the recommended predictions were computed: the rule, an example with numbers, and the weights
of the models."""

from __future__ import annotations

import math

import pandas as pd

from commodel.compare.recommended import MAX_DISAGREEMENT
from commodel.reports.elements import AnsweredQuestion, Block, Table, format_size, make_table
from commodel.units import format_count, format_seconds

TITLE = "How the recommended prediction is computed"
STACK_RULE = (
    "Stack: the weighted geometric mean of the models' predictions, exp(Σ weight · ln predicted). Each model is "
    f"limited to a factor of {MAX_DISAGREEMENT:g} around the one with the largest weight."
)
CORRECTION_RULE = (
    "Predicted = stack × correction. The correction comes from points measured nearby."
)
INTERVAL_RULE = (
    "Interval: predicted ÷ F to predicted × F. F = exp(f·σ) is the interval factor. σ is the standard deviation of "
    "ln(measured/predicted): small near measured points, large far from them. f standard deviations cover 95 % of "
    "workloads that were left out. f is at least 1.96, and large if few workloads or not this size were measured."
)
WHY_RECOMMENDED = (
    "A single model may have a lower mean error here, but which one is known only after the measurement. The "
    "recommended prediction of a point never uses its workload, and its interval covers new workloads."
)


def explain(recommended_rows: pd.DataFrame, frame: pd.DataFrame) -> list[Block]:
    """Return the rule with an example, and a table of weights; nothing without a recommended
    prediction. `frame` has the models' predictions at the same points."""
    rows = recommended_rows[recommended_rows["weights"] != ""]
    if rows.empty:
        return []
    sentences = [STACK_RULE, CORRECTION_RULE, INTERVAL_RULE]
    example = _choose_example(rows)
    if example is not None:
        sentences.append(_describe_example(example, frame))
    sentences.append(WHY_RECOMMENDED)
    return [AnsweredQuestion(TITLE, tuple(sentences)), _tabulate_weights(rows, frame)]


def _choose_example(rows: pd.DataFrame) -> pd.Series | None:
    """Return a measured point with an interval: the first of several models in the stack, if there
    is one."""
    usable = rows[rows["measured"].notna() & rows["interval_factor"].notna()]
    if usable.empty:
        return None
    of_several = usable[usable["weights"].str.contains(" + ", regex=False)]
    return (of_several if len(of_several) else usable).iloc[0]


def _describe_example(row: pd.Series, frame: pd.DataFrame) -> str:
    predicted = frame[frame["point"] == row["point"]].groupby("model")["seconds"].first()
    parts = [
        f"{weight:g} {model} ({format_seconds(predicted[model])})"
        for weight, model in _parse_weights(row["weights"])
    ]
    low, high = format_seconds(row["low"]), format_seconds(row["high"])
    return (
        f"Example: {row['operation']}, {row['alternative']}, {row['size']}, {format_size(row['bytes'])}, on "
        f"{row['platform']}. Stack: {' + '.join(parts)} = {format_seconds(row['stack'])}. Correction "
        f"{row['correction']:.3f}: {format_seconds(row['seconds'])}. F = exp({row['deviations']:.2f} × "
        f"{row['deviation']:.3f}) = {row['interval_factor']:.3f}: {low} to {high}. Measured: "
        f"{format_seconds(row['measured'])}."
    )


def _tabulate_weights(rows: pd.DataFrame, frame: pd.DataFrame) -> Table:
    """Return the weights of each model in the stack on each platform, and why others have none."""
    shown: list[dict] = []
    for platform, part in rows.groupby("platform", sort=False):
        weights: dict[str, list[float]] = {}
        for text in part["weights"]:
            for weight, model in _parse_weights(text):
                weights.setdefault(model, []).append(weight)
        place = {"platform": platform, "simulated": part["simulated"].any()}
        means = {model: math.fsum(values) / len(part) for model, values in weights.items()}
        for model in sorted(means, key=lambda name: (-means[name], name)):
            values = weights[model]
            smallest = min(values) if len(values) == len(part) else 0.0
            cells = {"mean": means[model], "min": smallest, "max": max(values), "points": len(part)}
            shown.append(place | {"model": model, "why": ""} | cells)
        predicted = frame[frame["point"].isin(part["point"]) & (frame["model"] != "")]
        for model, of_model in predicted.groupby("model"):
            if model not in means:
                count = int(of_model["seconds"].notna().sum())
                why = _explain_no_weight(count, len(part))
                cells = dict.fromkeys(("mean", "min", "max"), 0.0)
                shown.append(place | {"model": model, "points": count, "why": why} | cells)
    note = (
        "Over the points of Comparison, where the rows of recommended have the weights of each "
        "point."
    )
    return make_table("Weights", "Weights of the models in the stack", shown, note=note, fixed=3)


def _explain_no_weight(predicted: int, points: int) -> str:
    """Return why a model that predicts some of the points has no weight."""
    if predicted == points:
        return "the stack is as accurate without it"
    return f"it predicts {predicted:,} of {format_count(points, 'point')}"


def _parse_weights(text: str) -> list[tuple[float, str]]:
    """Return the weights and models of the text of a row, such as `0.7 plogp + 0.3 loggp`."""
    weights = []
    for part in text.split(" + "):
        weight, model = part.split(" ", 1)
        weights.append((float(weight), model))
    return weights
