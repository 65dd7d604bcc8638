"""How far off prices of held-out points are, as people read it: one family in detail, or several beside each other."""

import math

import pandas as pd

from commodel.cli._output import show
from commodel.compare.heldout import errors

FIGURES = {
    "points": "points",
    "points_reached": "in range",
    "mu_reached": "mean μ in range",
    "mu_mean": "mean μ",
    "mu_median": "median μ",
    "bias": "bias",
    "inside_share": "inside",
}
FULL = (*FIGURES, "mu_worst", "worst")


def show_errors(rows: pd.DataFrame, style: str) -> None:
    """A row for each operation and choice, and one for all; of several families a row each, unless it is for
    programs."""
    if style != "table":
        show([_plain(row) for row in _rows(rows, ["family", "operation", "kind", "choice"])], style)
    elif rows["family"].nunique() == 1:
        show([_detailed(row) for by in (["operation", "kind", "choice"], ["family"]) for row in _rows(rows, by)], style)
    else:
        show(_side_by_side(rows), style)


def _plain(row: dict) -> dict:
    names = ("family", "operation", "kind", "choice", *FULL)
    return {
        name: None if isinstance(row[name], float) and not math.isfinite(row[name]) else row[name] for name in names
    }


def _rows(rows: pd.DataFrame, by: list[str]) -> list[dict]:
    return errors(rows, by).to_dict("records")


def _detailed(row: dict) -> dict:
    named = {"operation": row.get("operation", "all"), "kind": row.get("kind", ""), "choice": row.get("choice", "")}
    return named | _figures(row) | {"worst": f"{row['mu_worst']:.3g} at {row['worst']}"}


def _side_by_side(rows: pd.DataFrame) -> list[dict]:
    """All held-out points, then the median μ of each operation; the family that is nearest first."""
    by_operation = errors(rows, ["family", "operation"]).set_index(["family", "operation"])["mu_median"]
    operations = list(dict.fromkeys(rows["operation"]))
    return [
        {"family": row["family"], **_figures(row)}
        | {operation: f"{by_operation.get((row['family'], operation), math.nan):.3g}" for operation in operations}
        for row in errors(rows, ["family"]).sort_values("mu_median").to_dict("records")
    ]


def _figures(row: dict) -> dict:
    """Numbers as text of three digits, counts as they are."""
    texts = {title: row[name] for name, title in FIGURES.items()}
    percent = {"bias": f"{100 * row['bias']:+.3g} %", "inside": f"{100 * row['inside_share']:.0f} %"}
    return texts | {title: f"{texts[title]:.4g}" for title in texts if "μ" in title} | percent
