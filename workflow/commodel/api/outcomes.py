"""What a campaign has found: the errors of the recommended prediction and of the models on each
platform, and anomalies of the measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from commodel.compare.comparison import summarize_choices, summarize_errors
from commodel.compare.recommended import split_recommended
from commodel.files.text_tables import format_table
from commodel.records import RECOMMENDED

if TYPE_CHECKING:
    import pandas as pd

    from commodel.files.results_folder import Results

MAX_USEFUL_ERROR = 2.0  # highest mean μ of a prediction to use
MAX_SHOWN_MODELS = 5  # of a platform, besides the recommended prediction
SCORE_COLUMNS = [
    "platform",
    "simulated",
    "model",
    "points",
    "mu_mean",
    "points_valid",
    "mu_valid",
    "right",
    "workloads",
]


def tabulate_scores(comparison: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows by platform and model, measured platforms first, and the recommended prediction
    before models: mean proportional error over all points and over the valid ones, and the share of
    workloads in which the chosen alternative is the fastest."""
    group_columns = ["platform", "simulated", "model"]
    rows = summarize_errors(comparison, group_columns).merge(
        summarize_choices(comparison, group_columns), on=group_columns, how="left"
    )
    rows = rows.assign(model=rows["model"], is_model=rows["model"] != RECOMMENDED)
    rows = rows.sort_values(["simulated", "platform", "is_model", "mu_mean", "model"])
    return rows[SCORE_COLUMNS].to_dict("records")


def describe_scores(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the prediction to use on each platform, with its mean error."""
    from commodel.reports.elements import format_error  # slow to load

    best_rows = list({row["platform"]: row for row in reversed(rows) if row["points"]}.values())[
        ::-1
    ]
    useful: list[str] = []
    useless: list[str] = []
    for row in best_rows:
        is_useful = row["mu_mean"] <= MAX_USEFUL_ERROR
        text = f"{row['model']}, mean error {format_error(row['mu_mean'])} on {_name_platform(row)}"
        (useful if is_useful else useless).append(text)
    answers = [f"Prediction to use: {'; '.join(useful)}."] if useful else []
    if useless:
        best = "; ".join(useless)
        answers.append(
            f"No prediction is within a factor of {MAX_USEFUL_ERROR:g} on average: best {best}."
        )
    return " ".join(answers) or "No point has both a prediction and a measurement."


def format_best_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of the recommended prediction and the best models of each platform, and a
    line that counts the others."""
    rows_of_platform: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        rows_of_platform.setdefault(_name_platform(row), []).append(row)
    shown = [row for group in rows_of_platform.values() for row in group[: MAX_SHOWN_MODELS + 1]]
    hidden = [
        f"{len(group) - MAX_SHOWN_MODELS - 1} on {platform}"
        for platform, group in rows_of_platform.items()
        if len(group) > MAX_SHOWN_MODELS + 1
    ]
    count_text = (
        f"\nother models, with higher errors: {', '.join(hidden)}; the report has all"
        if hidden
        else ""
    )
    return format_table([_make_cells(row) for row in shown]) + count_text


def _make_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "platform": _name_platform(row),
        "model": row["model"],
        "points": int(row["points"]),
        "mean error μ": _format_score(row["mu_mean"]),
        "valid points": int(row["points_valid"]),
        "μ of these": _format_score(row["mu_valid"]),
        "fastest found without default": f"{100 * row['right']:.0f} % of {int(row['workloads'])}"
        if row["workloads"] > 0
        else "-",
    }


def _name_platform(row: Mapping[str, Any]) -> str:
    return f"{row['platform']} (simulated)" if row["simulated"] else row["platform"]


def _format_score(value: float) -> float | str:
    return "∞" if math.isinf(value) else "-" if math.isnan(value) else round(value, 3)


def find_anomalies(results: Results, comparison: pd.DataFrame) -> list[str]:
    """Return the anomalies of the measurements, each with its platform."""
    from commodel.reports import list_anomalies  # slow to load

    of_models, _ = split_recommended(comparison)
    return [f"{remark.platform}: {remark.text}" for remark in list_anomalies(results, of_models)]
