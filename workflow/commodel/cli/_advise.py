"""Advice as people read it: the ranking, sentences under it, a decision table, and how good the advice was.

The jobs that options of advise name: every operation at every number of leaves or ranks and every size.

What a verb rests on: files of parameters, or what a run left, of which the terminal is told."""

from collections.abc import Callable, Sequence
from pathlib import Path

import click
import pandas as pd

from commodel.advice import Advice, Job
from commodel.advice.alternatives import algorithms
from commodel.advice.decision_tables import COLUMNS, GROUNDS, as_good, remarks, weights
from commodel.advice.evidence import Evidence, of_files, of_platform, only_platform
from commodel.cli._output import show
from commodel.compare.combined_prediction import picks, summary
from commodel.errors import UserError
from commodel.files.atomic import write_text
from commodel.files.quantities import expand
from commodel.files.tables import write_table
from commodel.interchange import rules
from commodel.patterns.operations import own_spelling, ranks_of, sized
from commodel.plan.planning import setting_on
from commodel.price.prediction_intervals import IntervalBasis
from commodel.units import format_seconds, parse_bytes, parse_count

SEVERAL = 6  # choices that a sentence names
TIED = 1e-9
RULES = ".conf"  # ending of a file of Open MPI's rules
LONGEST_LAYOUT = 40  # characters of a layout in a table


def show_advice(advice: Advice, top: int, style: str) -> None:
    rows = advice.rows[(advice.rows.index < top) | advice.rows["front"]] if style == "table" else advice.rows
    show([_row(row, style, place) for place, row in enumerate(rows.to_dict("records"))], style)


def _row(row: dict, style: str, place: int) -> dict:
    if style != "table":
        return {name: None if isinstance(value, float) and value != value else value for name, value in row.items()}
    behind = "not told apart" if row["as_good"] else f"+{100 * row['behind']:.0f} %"
    behind = "the same" if row["behind"] < TIED else behind
    streaming = row["period"] == row["period"]
    return {
        "choice": row["choice"],
        "layout": _short(row["layout"]),
        "ranks": row["ranks"],
        "time": format_seconds(row["seconds"]),
        "low": format_seconds(row["low"]),
        "high": format_seconds(row["high"]),
        "behind": behind if place else "best",
        "votes": f"{100 * row['votes']:.0f} %",
        "between waves": format_seconds(row["period"]) if streaming else "-",
        "front": "*" if row["front"] else "",
    }


def _short(layout: str) -> str:
    """One with the nodes of hundreds of ranks in it; the sentences have all of the best."""
    return layout if len(layout) <= LONGEST_LAYOUT else f"{layout[: LONGEST_LAYOUT - 1]}…"


def sentences(advice: Advice) -> list[str]:
    """What to use, what is as good, what streams best, and what the reader should know."""
    rows, best = advice.rows, advice.rows.iloc[0]
    lines = [f"{advice.job.text}: use {best['choice']}, {best['layout']}."]
    close = as_good(advice).split(", ") if rows["as_good"].sum() > 1 else []
    if close:
        more = f" and {len(close) - SEVERAL} more" if len(close) > SEVERAL else ""
        lines.append(f"Not told apart from it: {', '.join(map(_short, close[:SEVERAL]))}{more}.")
    fastest = rows.sort_values("period", kind="stable").iloc[0]
    if fastest["period"] == fastest["period"] and fastest["period"] < best["period"]:
        gain = best["period"] / fastest["period"]
        lines.append(
            f"For a stream of waves: {fastest['choice']} ends one every {format_seconds(fastest['period'])}, "
            f"{gain:.1f} times as many as {best['choice']}; one wave takes it {format_seconds(fastest['seconds'])}. "
            f"Of the {int(rows['front'].sum())} marked * none is beaten in both."
        )
    lines += [f"Low to high: {IntervalBasis.parse(advice.interval).sentence}.", f"Weights: {weights(advice)}."]
    return lines + [f"Note: {note}." for note in [*advice.notes, *([best["doubt"]] if best["doubt"] else [])]]


def check_out(out: Path | None) -> None:
    """Before minutes of work a name that nothing can be written to is refused."""
    if out and out.suffix not in (*WRITERS, RULES):
        raise UserError(f"found '{out.name}', wanted a file .csv, .xlsx or .conf")


def for_rules(only: Sequence[str], assumptions: rules.Assumptions) -> Callable[[Job], list[str]]:
    """Return a function that lists the choices of a job that Open MPI's rules may name under these assumptions."""

    def namable(job: Job) -> list[str]:
        if job.leaves:
            raise UserError("Open MPI's rules are of collectives: give --ranks, not --leaves")
        for spec in only:
            if not rules.has(job.operation, spec):
                raise UserError(f"Open MPI's rules cannot name '{spec}' for {job.operation}")
            if risk := rules.find_risk(job.operation, spec, assumptions):
                raise UserError(f"found --only {spec} for {job.operation}, which {risk}; {_permission(risk)}")
        specs = only or algorithms(job.operation, job.ranks, job.bytes)
        return [spec for spec in specs if rules.has(job.operation, spec, assumptions)]

    return namable


def leave_out_unsafe(jobs: Sequence[Job], choices: Callable[[Job], list[str]]) -> list[Job]:
    """Return the jobs for which a rule may name an algorithm, and say which operations are left to Open MPI."""
    safe = [job for job in jobs if choices(job)]
    for operation in dict.fromkeys(job.operation for job in jobs if job not in safe):
        specs = next(algorithms(job.operation, job.ranks, job.bytes) for job in jobs if job.operation == operation)
        risk = next(filter(None, (rules.find_risk(operation, spec) for spec in specs)), rules.DATATYPES)
        text = f"no algorithm of {operation} is safe in a rule; {_permission(risk)}"
        if not safe:
            raise UserError(text)
        click.echo(f"left to Open MPI: {text}", err=True)
    return safe


def _permission(risk: str) -> str:
    option = "--commutative" if risk == rules.ORDER else "--same-types"
    return f"wanted: {option}, if no program minds"


def write_decisions(table: pd.DataFrame, out: Path | None, style: str, assumptions: rules.Assumptions) -> None:
    if out and out.suffix == RULES:
        write_text(out, rules.rules(rules.of_frame(table), assumptions))
        click.echo(out)
        return
    if out:
        WRITERS[out.suffix](out, table)
        click.echo(out)
        return
    if style != "table":
        show(table.to_dict("records"), style)
        return
    shown = [name for name in COLUMNS if name not in GROUNDS and table[name].astype(bool).any()]
    show([_decision(row) for row in table[shown].to_dict("records")], style)
    click.echo("\n" + "\n".join(f"Note: {remark}." for remark in remarks(table)))


def _decision(row: dict) -> dict:
    return row | {name: format_seconds(row[name]) for name in ("seconds", "low", "high")}


def _workbook(out: Path, table: pd.DataFrame) -> None:
    from commodel.report.decision_workbook import write_decision_workbook  # slow to load: not for --help

    write_decision_workbook(table, remarks(table), out)


WRITERS = {
    ".csv": write_table,
    ".xlsx": _workbook,
}


def show_score(evidence: Evidence, style: str) -> None:
    if evidence.held_out.empty:
        raise UserError("nothing to score: no comparison of measured points; give --experiment of a run")
    figures = summary(picks(evidence.held_out))
    if figures.empty:
        raise UserError("nothing to score: no job has two priced and measured alternatives")
    if style != "table":
        show(figures.to_dict("records"), style)
        return
    show([_scored(row) for row in figures.to_dict("records")], style)
    click.echo("\nBest: the vote's pick is the fastest measured, or as good. Above 1 × the library takes longer.")


def _scored(row: dict) -> dict:
    where = f"{row['platform']} (simulated)" if row["simulated"] else row["platform"]
    return {
        "platform": where,
        "operation": row["operation"],
        "jobs": row["jobs"],
        "picks best": f"{100 * row['right']:.0f} %",
        "mean regret": f"{100 * row['regret_mean']:.1f} %",
        "max regret": f"{100 * row['regret_max']:.1f} %",
        "library / pick [×]": row["gain"],
        "library / fastest [×]": row["most"],
    }


MOST_JOBS = 100_000  # jobs of one operation


def jobs_of(operations, leaves, ranks, sizes) -> list[Job]:
    if not operations:
        raise UserError("--operation is missing")
    return [job for operation in operations for job in _of_operation(operation, leaves, ranks, sizes)]


def _of_operation(operation, leaves, ranks, sizes) -> list[Job]:
    name = own_spelling(operation)
    if not (leaves or ranks):
        ranks = ranks_of(name)
    if bool(leaves) == bool(ranks):
        raise UserError("give --leaves of a tree or --ranks of a collective, one of the two")
    if sized(name) and sizes is None:
        raise UserError(f"--bytes is missing; {name} needs a message size")
    lengths = _of_option("--bytes", sizes, parse_bytes) if sized(name) else [0]
    counted, least = ("--leaves", 1) if leaves else ("--ranks", 2)
    counts = _of_option(counted, leaves or ranks, lambda text: parse_count(text, least))
    if (asked := len(counts) * len(lengths)) > MOST_JOBS:
        raise UserError(f"these options mean {asked} jobs, wanted at most {MOST_JOBS}")
    over = "leaves" if leaves else "ranks"
    return [Job(name, size, **{over: count}) for count in counts for size in lengths]


def _of_option(name: str, text: str, parse: Callable[[str], int]) -> list[int]:
    try:
        return expand(text, parse)
    except UserError as error:
        raise UserError(error.found, key=name) from None


def evidence_of(files: Sequence[Path], platform: str | None, experiment: str | None) -> Evidence:
    if files:
        return of_files(files, setting_on(platform) if platform else None)
    if not (platform or experiment):
        raise UserError("give --params FILE…, or --platform or --experiment of a run")
    results = Path("results")
    setting = setting_on(platform or only_platform(experiment, results))
    evidence, folder = of_platform(setting, results, experiment)
    click.echo(f"evidence: {folder}, platform {evidence.setting.name}", err=True)
    return evidence
