"""How far off prices of held-out points are, as people read it: one family in detail, or several beside each other."""

import math

import click
import pandas as pd

from commodel.cli._output import show
from commodel.compare.heldout import errors

FIGURES = {
    "points": "points",
    "points_reached": "points ok",
    "mu_reached": "μ where ok",
    "mu_mean": "mean μ",
    "mu_median": "median μ",
    "bias": "bias",
    "inside_share": "inside",
}
FULL = (*FIGURES, "mu_worst", "worst")
CHOSEN = ("jobs", "fastest", "over_fastest", "over_fastest_worst")  # of choices: time over that of the fastest


def show_errors(rows: pd.DataFrame, style: str, baselines: pd.DataFrame, choices: pd.DataFrame) -> None:
    """A row for each operation and choice, and one for all; of several families a row each, unless it is for
    programs. What knows no model stands apart."""
    if style != "table":
        by = ["family", "operation", "kind", "choice"]
        plain = [
            _plain(row, baseline) for table, baseline in ((rows, False), (baselines, True)) for row in _rows(table, by)
        ]
        plain += [_plain(row, row["baseline"]) for row in choices.to_dict("records")]
        show(plain, style)
        return
    _show_families(rows, style)
    if len(judged := baselines.dropna(subset=["mu"])):
        click.echo("\nBaselines, which know no model of communication:")
        show([_without_range(row) for row in _side_by_side(judged)], style)
    if len(choices):
        click.echo("\nChoices among what was held out, beside the fastest:")
        ordered = choices.sort_values(["baseline", "over_fastest"], kind="stable")
        show([_choice(row) for row in ordered.to_dict("records")], style)


def _show_families(rows: pd.DataFrame, style: str) -> None:
    if rows["family"].nunique() == 1:
        show([_detailed(row) for by in (["operation", "kind", "choice"], ["family"]) for row in _rows(rows, by)], style)
    else:
        show(_side_by_side(rows), style)


def _plain(row: dict, baseline: bool) -> dict:
    """All rows for programs have all columns: who is off, or chooses, at what, and how far; else None."""
    what = {name: row.get(name, "") for name in ("operation", "kind", "choice")}
    figures = {name: row.get(name) for name in (*FULL, *CHOSEN)}
    finite = {
        name: None if isinstance(figure, float) and not math.isfinite(figure) else figure
        for name, figure in figures.items()
    }
    return {"family": "" if baseline else row["family"], "baseline": row["family"] if baseline else ""} | what | finite


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
        | {operation: _digits(by_operation.get((row["family"], operation), math.nan), 3) for operation in operations}
        for row in errors(rows, ["family"]).sort_values("mu_median").to_dict("records")
    ]


def _without_range(row: dict) -> dict:
    """A baseline has no interval, and no range of its own."""
    shown = {name: value for name, value in row.items() if name not in ("points ok", "μ where ok", "inside")}
    return {"baseline": shown.pop("family"), **shown}


def _choice(row: dict) -> dict:
    by = f"baseline: {row['family']}" if row["baseline"] else row["family"]
    times = {"time / fastest": f"{row['over_fastest']:.4g}", "worst": f"{row['over_fastest_worst']:.4g}"}
    return {"chosen by": by, "jobs": row["jobs"], "fastest": f"{100 * row['fastest']:.0f} %", **times}


def _figures(row: dict) -> dict:
    """Numbers as text of three digits, counts as they are."""
    texts = {title: row[name] for name, title in FIGURES.items()}
    percent = {"bias": f"{100 * row['bias']:+.3g} %", "inside": f"{100 * row['inside_share']:.0f} %"}
    return texts | {title: _digits(texts[title], 4) for title in texts if "μ" in title} | percent


def _digits(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}g}"
