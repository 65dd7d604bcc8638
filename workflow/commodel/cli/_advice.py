"""Advice as people read it: the ranking, sentences under it, a decision table, and how good the advice was."""

from pathlib import Path

import click
import pandas as pd

from commodel.advise import Advice, Evidence
from commodel.cli._output import show
from commodel.decisions import as_good
from commodel.errors import UserError
from commodel.scoring import picks, summary
from commodel.tables import write_table, write_text
from commodel.units import format_seconds

SEVERAL = 6  # choices that a sentence names


def show_advice(advice: Advice, top: int, style: str) -> None:
    rows = advice.rows.head(top) if style == "table" else advice.rows
    show([_row(row, style) for row in rows.to_dict("records")], style)


def _row(row: dict, style: str) -> dict:
    if style != "table":
        return {name: None if isinstance(value, float) and value != value else value for name, value in row.items()}
    behind = "not told apart" if row["as_good"] else f"+{100 * row['behind']:.0f} %"
    streaming = row["period"] == row["period"]
    return {
        "choice": row["choice"],
        "layout": row["layout"],
        "ranks": row["ranks"],
        "time": format_seconds(row["seconds"]),
        "low": format_seconds(row["low"]),
        "high": format_seconds(row["high"]),
        "behind": "best" if row["behind"] == 0 else behind,
        "votes": f"{100 * row['votes']:.0f} %",
        "between waves": format_seconds(row["period"]) if streaming else "-",
        "front": "*" if row["front"] else "",
    }


def sentences(advice: Advice) -> list[str]:
    """What to use, what is as good, what streams best, and what the reader should know."""
    rows, best = advice.rows, advice.rows.iloc[0]
    lines = [f"{advice.job.text}: use {best['choice']}, {best['layout']}."]
    close = as_good(advice).split(", ") if rows["as_good"].sum() > 1 else []
    if close:
        more = f" and {len(close) - SEVERAL} more" if len(close) > SEVERAL else ""
        lines.append(f"Not told apart from it: {', '.join(close[:SEVERAL])}{more}.")
    fastest = rows.sort_values("period", kind="stable").iloc[0]
    if fastest["period"] == fastest["period"] and fastest["period"] < best["period"]:
        gain = best["period"] / fastest["period"]
        lines.append(
            f"For a stream of waves: {fastest['choice']} ends one every {format_seconds(fastest['period'])}, "
            f"{gain:.1f} times as many as {best['choice']}; one wave takes it {format_seconds(fastest['seconds'])}. "
            f"Nothing beats both in both of the {int(rows['front'].sum())} marked *."
        )
    weights = sorted(advice.trust.items(), key=lambda entry: -entry[1].weight)
    said = [f"{name} {100 * trust.weight:.0f} %{_error(trust)}" for name, trust in weights if trust.weight > 0]
    lines.append(f"Weights: {', '.join(said)}.")
    return lines + [f"Note: {note}." for note in [*advice.notes, *([best["doubt"]] if best["doubt"] else [])]]


def _error(trust) -> str:
    return f" (off by {100 * trust.error:.0f} % at {trust.points} points)" if trust.points else ""


def write_decisions(table: pd.DataFrame, out: Path | None, style: str) -> None:
    if out is None:
        show(table.to_dict("records"), style)
        return
    if out.suffix == ".csv":
        write_table(out, table)
    elif out.suffix == ".xlsx":
        from commodel.report.decisions import write_decision_workbook

        write_decision_workbook(table, out)
    elif out.suffix == ".conf":
        from commodel.interchange.rules import rules

        write_text(out, rules(table))
    else:
        raise UserError(f"found '{out.name}', wanted a file .csv, .xlsx or .conf")
    click.echo(out)


def show_score(evidence: Evidence, style: str) -> None:
    if evidence.held_out.empty:
        raise UserError("nothing to score: no comparison of measured points; give --experiment of a run")
    found = summary(picks(evidence.held_out))
    if found.empty:
        raise UserError("nothing to score: no job has two priced and measured alternatives")
    show(found.to_dict("records"), style)
