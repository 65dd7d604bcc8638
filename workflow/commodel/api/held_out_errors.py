"""Errors of fitted models, and of baselines, at points that were held out, as rows and as tables
for people."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from commodel.compare.held_out import tabulate_errors
from commodel.files.text_tables import format_table

ERROR_TITLES = {
    "points": "points",
    "points_valid": "valid",
    "mu_valid": "μ of valid",
    "mu_mean": "mean μ",
    "mu_median": "median μ",
    "bias": "bias [%]",
    "covered_share": "covered [%]",
}
POINT_COLUMNS = ["operation", "kind", "alternative"]
ERROR_COLUMNS = (*ERROR_TITLES, "mu_worst", "worst")
# Of choices: time over that of the fastest.
CHOICE_COLUMNS = ("workloads", "fastest", "over_fastest", "over_fastest_worst")


def list_plain_rows(
    rows: pd.DataFrame, baselines: pd.DataFrame, choices: pd.DataFrame
) -> list[dict[str, Any]]:
    """Return a row for programs of each model or baseline and alternative, and of each one's
    choices."""
    plain_rows = [
        _make_plain_row(row, is_baseline)
        for part, is_baseline in ((rows, False), (baselines, True))
        for row in _summarize_errors(part, ["model", *POINT_COLUMNS])
    ]
    return plain_rows + [
        _make_plain_row(row, row["baseline"]) for row in choices.to_dict("records")
    ]


def describe_best(rows: pd.DataFrame) -> str:
    """Return the model with the lowest median error, and its errors."""
    best = min(_summarize_errors(rows, ["model"]), key=lambda row: row["mu_median"])
    count = rows["model"].nunique()
    answer = f"{f'Best of {count} models: ' if count > 1 else ''}{best['model']}, median error μ "
    return (
        answer
        + f"{best['mu_median']:.4g} and mean {best['mu_mean']:.4g} at {best['points']} held-out points."
    )


def format_errors(rows: pd.DataFrame, baselines: pd.DataFrame, choices: pd.DataFrame) -> str:
    """Return tables of errors: a row for each operation and alternative of one model, or for each
    of several; then the baselines and what each one chooses."""
    if rows["model"].nunique() == 1:
        summaries = _summarize_errors(rows, POINT_COLUMNS) + _summarize_errors(rows, ["model"])
        parts = [format_table([_make_detailed_row(row) for row in summaries])]
    else:
        parts = [format_table(_make_model_rows(rows))]
    if len(evaluated := baselines.dropna(subset=["mu"])):
        lines = [_drop_range(row) for row in _make_model_rows(evaluated)]
        parts.append("Baselines:\n" + format_table(lines))
    if len(choices):
        ordered = choices.sort_values(["baseline", "over_fastest"], kind="stable").to_dict(
            "records"
        )
        choice_table = format_table([_make_choice_row(row) for row in ordered])
        parts.append(
            "Alternatives chosen among held-out points, and their time over the fastest:\n"
            + choice_table
        )
    return "\n\n".join(parts)


NOTES = (
    "Error μ: measured over predicted time or its inverse, whichever is above 1.",
    "Valid: points whose prediction has no flag, such as `extrapolated`. Covered: by the 95 % interval.",
)


def _make_plain_row(row: Mapping[str, Any], baseline: bool) -> dict[str, Any]:
    """Return the row for programs with all columns: model or baseline, its prediction or choice,
    and its error."""
    plain_row = {"model": "", "baseline": ""} | {"baseline" if baseline else "model": row["model"]}
    plain_row |= {name: row.get(name, "") for name in POINT_COLUMNS}
    for name in (*ERROR_COLUMNS, *CHOICE_COLUMNS):
        figure = row.get(name)
        plain_row[name] = (
            None if isinstance(figure, float) and not math.isfinite(figure) else figure
        )
    return plain_row


def _summarize_errors(rows: pd.DataFrame, group_columns: list[str]) -> list[dict[str, Any]]:
    return tabulate_errors(rows, group_columns).to_dict("records")


def _make_detailed_row(row: Mapping[str, Any]) -> dict[str, Any]:
    named = {
        "operation": row.get("operation", "all"),
        "kind": row.get("kind", ""),
        "alternative": row.get("alternative", ""),
    }
    return named | _format_errors(row) | {"worst": f"{row['mu_worst']:.3g} at {row['worst']}"}


def _make_model_rows(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a row for each model with its errors at all held-out points and its median μ of each
    operation; the lowest median first."""
    by_operation = {
        (row["model"], row["operation"]): row["mu_median"]
        for row in _summarize_errors(rows, ["model", "operation"])
    }
    model_rows = []
    for row in sorted(_summarize_errors(rows, ["model"]), key=lambda row: row["mu_median"]):
        medians = {
            name: by_operation.get((row["model"], name), math.nan)
            for name in dict.fromkeys(rows["operation"])
        }
        texts = {operation: _format_digits(median, 3) for operation, median in medians.items()}
        model_rows.append({"model": row["model"], **_format_errors(row), **texts})
    return model_rows


def _drop_range(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a baseline, which has neither an interval nor a range of validity."""
    shown = {
        name: value
        for name, value in row.items()
        if name not in ("valid", "μ of valid", "covered [%]")
    }
    return {"baseline": shown.pop("model"), **shown}


def _make_choice_row(row: Mapping[str, Any]) -> dict[str, Any]:
    chooser = f"baseline: {row['model']}" if row["baseline"] else row["model"]
    times = {
        "time / fastest": f"{row['over_fastest']:.4g}",
        "worst": f"{row['over_fastest_worst']:.4g}",
    }
    return {
        "chosen by": chooser,
        "workloads": row["workloads"],
        "fastest [%]": round(100 * row["fastest"]),
        **times,
    }


def _format_errors(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return errors as texts by their titles: μ with four digits, bias and coverage in %; counts
    are unchanged."""
    texts = {title: row[name] for name, title in ERROR_TITLES.items()}
    percent = {
        "bias [%]": f"{100 * row['bias']:+.3g}",
        "covered [%]": f"{100 * row['covered_share']:.0f}",
    }
    return (
        texts
        | {title: _format_digits(texts[title], 4) for title in texts if "μ" in title}
        | percent
    )


def _format_digits(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}g}"
