"""commodel advise: rank the alternatives for a workload; layouts of a kernel and the score of advice by subcommands."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commodel.cli._help import VerbWithModes, make_option_group
from commodel.cli._options import (
    PATH,
    commutative_option,
    experiment_option,
    out_option,
    params_option,
    same_types_option,
    set_option,
    statistic_option,
    style_option,
    verbose_option,
)
from commodel.cli._output import make_progress_printer, print_answer, print_rows, show_waiting
from commodel.errors import UserError
from commodel.files.text_tables import format_table
from commodel.records import Statistic
from commodel.stats import NEGLIGIBLE_DIFFERENCE
from commodel.units import format_bytes, format_duration, format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from commodel.advice import Advice, Workload
    from commodel.advice.evidence import Evidence
    from commodel.interchange.rules import Assumptions

LAYOUT_HELP = (
    "Layout, e.g. block:Q, scatter:LEVEL, near; repeated.  [default: block, cyclic, and with levels scatter and near]"
)
PLATFORM = click.option("--platform", help="Platform of a run.  [default: its only one, or the one not simulated]")


@click.group(
    cls=VerbWithModes,
    examples=(
        "commodel advise --platform fast-ethernet-32 --operation bcast --ranks 16 --bytes 64KiB",
        "commodel advise --operation allreduce --ranks 2:16:*2 --bytes 8:1MiB:*8 -o rules.conf",
    ),
)
@make_option_group(
    "Workload",
    click.option("--operation", "operations", multiple=True, help="Operation (`commodel show operations`); repeated."),
    click.option("--ranks", help="Number of ranks: 16, or 2,4,8, or 2:64:*2."),
    click.option("--leaves", help="Leaves of a tree, for an overlay network, in place of --ranks."),
    click.option("--bytes", "sizes", help="Message size: 1KiB, or 8,1KiB, or 1:1MiB:*4."),
    statistic_option,
)
@make_option_group(
    "Alternatives",
    click.option("--layout", "layouts", multiple=True, help=LAYOUT_HELP),
    click.option("--only", multiple=True, metavar="NAME", help="Rank only these algorithms or topologies; repeated."),
)
@make_option_group("Models", params_option, set_option)
@make_option_group("Platform and results", PLATFORM, experiment_option)
@make_option_group(
    "For Open MPI's rules",
    click.option("--open-mpi", is_flag=True, help="Rank only what Open MPI's rules can name; implied by .conf."),
    commutative_option,
    same_types_option,
)
@make_option_group(
    "Output",
    out_option("Decision table (.csv, .xlsx, .conf)."),
    click.option("--top", type=click.IntRange(1), default=12, show_default=True, help="Alternatives to show."),
    style_option,
    verbose_option,
)
def advise(
    operations,
    ranks,
    leaves,
    sizes,
    params,
    settings,
    platform,
    experiment,
    layouts,
    only,
    open_mpi,
    commutative,
    same_types,
    out,
    top,
    style,
    verbose,
    statistic,
) -> None:
    import pandas as pd

    from commodel.advice import advise as rank
    from commodel.advice.decision_tables import decide
    from commodel.advice.evidence import replace_values
    from commodel.api.recommendations import list_workloads
    from commodel.interchange.rules import SIZE_INDEPENDENT_OPERATIONS, Assumptions

    if out and out.suffix not in OUT_SUFFIXES:
        raise UserError(f"found '{out.name}', wanted a file .csv, .xlsx or .conf")
    if not operations:
        raise UserError("give --operation NAME; `commodel show operations` lists them")
    if statistic != Statistic.COMPLETION and (out or open_mpi):
        raise UserError(f"found --statistic '{statistic}', wanted completion: decisions minimise that time")
    workloads = list_workloads(operations, leaves, ranks, sizes, Statistic(statistic))

    def choose_requested(workload: Workload) -> Sequence[str]:
        return only

    choices: Callable[[Workload], Sequence[str]] = choose_requested
    size_independent_operations: tuple[str, ...] = ()
    assumptions = Assumptions(commutative, same_types)
    if open_mpi or (out and out.suffix == RULES_SUFFIX):
        from commodel.api.library_rules import leave_out_unsafe, make_choice_lister

        if len(layouts) > 1:
            raise UserError("Open MPI's rules hold for any layout; give one --layout: that of the programs")
        layouts = layouts or ("block",)
        choices, size_independent_operations = make_choice_lister(only, assumptions), SIZE_INDEPENDENT_OPERATIONS
        workloads = leave_out_unsafe(workloads, choices, make_progress_printer(False))
    if out or len(workloads) > 1:
        with show_waiting("advising", plain_lines=True):
            tables = []
            for operation in dict.fromkeys(workload.operation for workload in workloads):
                evidence = replace_values(_find_evidence(params, platform, experiment, operation), settings)
                of_operation = [workload for workload in workloads if workload.operation == operation]
                tables.append(decide(of_operation, evidence, layouts, choices, size_independent_operations))
            decisions = pd.concat(tables, ignore_index=True)
        _write_decisions(decisions, out, style, assumptions, verbose)
        return
    with show_waiting("advising", plain_lines=True):
        evidence = replace_values(_find_evidence(params, platform, experiment, workloads[0].operation), settings)
        advice = rank(workloads[0], evidence, layouts, choices(workloads[0]))
    if style != "table":
        print_rows(advice.frame.to_dict("records"), style)
        return
    records = advice.frame[(advice.frame.index < top) | advice.frame["front"]].to_dict("records")
    answer, *notes = _describe_advice(advice, evidence, verbose)
    body = format_table([_make_alternative_row(row, records) for row in records], TIME_COLUMNS)
    print_answer(answer, body, notes, verbose)


def _find_evidence(
    params: tuple[Path, ...], platform: str | None, experiment: str | None, operation: str | None
) -> Evidence:
    """Return the evidence on an operation, and print which runs it comes from."""
    from commodel.api.recommendations import describe_evidence_folders, find_evidence

    evidence, folders = find_evidence(params, platform, experiment, operation)
    if folders:
        click.echo(describe_evidence_folders(evidence, folders), err=True)
    return evidence


MAX_NAMED = 6  # alternatives that a sentence names
RULES_SUFFIX = ".conf"  # ending of a file of Open MPI's rules
OUT_SUFFIXES = (".csv", ".xlsx", RULES_SUFFIX)
TIME_COLUMNS = ("measured", "time", "low", "high", "between waves")
MIN_STREAM_GAIN = 1.05  # waves per second over those of the best for one wave, from which on a note names it
MIN_WEIGHT = 0.01  # of a model that a note names
WARNINGS = ("EXTRAPOLATED", "NO PREDICTION INTERVAL")  # begin of the notes that follow the answer at once
MAX_LAYOUT_LENGTH = 40  # characters of a layout in a table


def _make_alternative_row(row: dict, rows: list[dict]) -> dict:
    """Return a row of the table; columns of measured times and of streams only if there are any."""
    excess = "tied" if row["as_good"] else f"{100 * row['behind']:.0f}"
    excess = "best" if row is rows[0] else excess
    has_measured = any(entry["measured"] == entry["measured"] for entry in rows)
    has_equal = any(entry["same_messages"] for entry in rows)
    has_streams = any(entry["period"] == entry["period"] for entry in rows)
    has_front = min(entry["period"] for entry in rows) * MIN_STREAM_GAIN < rows[0]["period"]
    return (
        {
            "alternative": row["alternative"],
            "layout": _shorten_layout(row["layout_name"]),
            "ranks": row["ranks"],
        }
        | ({"measured": row["measured"]} if has_measured else {})
        | {
            "time": row["seconds"],
            **{name: None if row[name] != row[name] else row[name] for name in ("low", "high")},
            "slower by [%]": excess,
            "regret [%]": float(f"{100 * row['regret']:.2g}"),
        }
        | ({"same messages": row["same_messages"]} if has_equal else {})
        | ({"between waves": row["period"]} if has_streams else {})
        | ({"front": "*" if row["front"] else ""} if has_front else {})
    )


def _shorten_layout(layout: str) -> str:
    """Return a short form of an alternative with the nodes of hundreds of ranks."""
    return layout if len(layout) <= MAX_LAYOUT_LENGTH else f"{layout[: MAX_LAYOUT_LENGTH - 1]}…"


def _describe_advice(advice: Advice, evidence: Evidence, verbose: bool) -> list[str]:
    """Return the answer, then notes: ties, the best alternative for streams, intervals, weights, and those of the
    advice."""
    from commodel.advice.decision_tables import describe_weights, list_tied
    from commodel.predictions.interval_basis import IntervalBasis

    rows, best = advice.frame, advice.frame.iloc[0]
    first_to_measure = [_name_informative_points(advice, evidence)] if advice.informative_points else []
    answer = " ".join([*first_to_measure, f"{advice.sentence}."])
    notes = [f"{note}." for note in (*advice.notes, best["doubt"]) if note]
    warnings = [note for note in notes if note.startswith(WARNINGS)]
    notes = [note for note in notes if note not in warnings]
    lines = [answer, *warnings]
    tied = list_tied(advice).split(", ") if rows["as_good"].sum() > 1 else []
    if tied:
        more_text = f" and {len(tied) - MAX_NAMED} more" if len(tied) > MAX_NAMED else ""
        names = f"{', '.join(map(_shorten_layout, tied[:MAX_NAMED]))}{more_text}"
        rule = f"the difference is within its 95 % interval, or at most {100 * NEGLIGIBLE_DIFFERENCE:g} %"
        lines.append(f"Statistically tied with {best['alternative']}: {names} ({rule}).")
    fastest = rows.sort_values("period", kind="stable").iloc[0]
    if fastest["period"] * MIN_STREAM_GAIN < best["period"]:
        gain = best["period"] / fastest["period"]
        lines.append(
            f"For a stream of waves: {fastest['alternative']} ends one every {format_seconds(fastest['period'])}, "
            f"{gain:.2f} times as many as {best['alternative']}; one wave takes {format_seconds(fastest['seconds'])}."
            " No alternative is faster both for one wave and for a stream than those marked *."
        )
    if rows["low"].notna().any():
        lines.append(f"Low to high: {IntervalBasis.parse(advice.interval).sentence}.")
    else:
        lines.append("The values have no intervals, so the predictions have none.")
    weights = [pair for of_placement in advice.weights.values() for pair in of_placement.items()]
    if verbose or len(advice.weights) > 1:
        zero_weight_reasons = [f"{text}." for text in advice.zero_weight_reasons] if verbose else []
        return [*lines, *notes, f"Weights of models: {describe_weights(advice)}.", *zero_weight_reasons]
    large_weights = sorted(
        ((name, weight) for name, weight in weights if weight > MIN_WEIGHT), key=lambda pair: -pair[1]
    )
    named = ", ".join(f"{name} {100 * weight:.0f} %" for name, weight in large_weights)
    small_weights = "; others at most 1 % each" if len(weights) > len(large_weights) else ""
    return [*lines, *notes, f"Weights of models: {named}{small_weights}."]


def _name_informative_points(advice: Advice, evidence: Evidence) -> str:
    """Return which points to measure first, and why."""
    from commodel.api.recommendations import estimate_measuring

    points = []
    for entry in advice.informative_points:
        seconds = estimate_measuring(entry.point, evidence.resources)
        duration = "" if math.isnan(seconds) else f" (in about {format_duration(seconds)})"
        points.append(f"{entry.alternative}, {_shorten_layout(entry.layout)}{duration}")
    regret = 100 * advice.frame["regret"].iloc[0]
    return (
        f"Measure first: {' and '.join(points)}. Alternatives are statistically tied, and the expected regret of the "
        f"choice is {regret:.0f} %."
    )


def _write_decisions(
    decisions: pd.DataFrame, out: Path | None, style: str, assumptions: Assumptions, verbose: bool
) -> None:
    from commodel.advice.decision_tables import BASIS_COLUMNS, COLUMNS, summarize_notes

    if out:
        if out.suffix == RULES_SUFFIX:
            from commodel.files.atomic import write_text
            from commodel.interchange import rules

            write_text(out, rules.format_rules(rules.parse_choice_frame(decisions), assumptions))
        elif out.suffix == ".csv":
            from commodel.files.tables import write_table

            write_table(out, decisions)
        else:
            from commodel.reports.workbooks import write_decision_workbook

            write_decision_workbook(decisions, summarize_notes(decisions), out)
        click.echo(out)
        for note in summarize_notes(decisions):
            click.echo(f"{note}.", err=True)
        return
    if style != "table":
        print_rows(decisions.to_dict("records"), style)
        return
    shown = [name for name in COLUMNS if name not in BASIS_COLUMNS and decisions[name].astype(bool).any()]
    named = decisions.assign(layout=decisions["layout_name"])
    chosen = [f"{name} ({count})" for name, count in decisions["algorithm"].value_counts(sort=False).items()]
    answer = f"Alternatives to use in {len(decisions)} workloads: {', '.join(chosen)}."
    body = format_table([_make_decision_row(row) for row in named[shown].to_dict("records")], TIME_COLUMNS)
    print_answer(answer, body, [f"{note}." for note in summarize_notes(decisions)], verbose)


def _make_decision_row(row: dict) -> dict:
    renamed = {"algorithm": "alternative", "seconds": "time", "as_good": "tied"}
    return {renamed.get(name, name): value for name, value in row.items()} | {"bytes": format_bytes(row["bytes"])}


@advise.command(
    name="score",
    examples=("commodel advise score --experiment sample", "commodel advise score --platform fast-ethernet-32"),
)
@make_option_group("Platform and results", PLATFORM, experiment_option)
@make_option_group("Output", style_option)
def score(platform: str | None, experiment: str | None, style: str) -> None:
    """Show the regret of the advice at the measured points."""
    from commodel.compare.combined_prediction import choose_alternatives, summarize_recommended_choices

    evidence = _find_evidence((), platform, experiment, None)
    if evidence.held_out.empty:
        raise UserError("nothing to score: no comparison of measured points; give --experiment of a run")
    figures = summarize_recommended_choices(choose_alternatives(evidence.held_out))
    if figures.empty:
        raise UserError("nothing to score: wanted three workloads or more with two predicted and measured alternatives")
    if style != "table":
        print_rows(figures.to_dict("records"), style)
        return
    workloads = figures["workloads"].sum()
    right = (figures["right"] * figures["workloads"]).sum() / workloads
    regret = (figures["regret_mean"] * figures["workloads"]).sum() / workloads
    print_answer(
        f"The advice is the fastest measured alternative, or tied with it, in {100 * right:.0f} % of {workloads} "
        f"measured workloads; its mean regret is {100 * regret:.2g} %.",
        format_table([_make_score_row(row) for row in figures.to_dict("records")]),
        ["MPI default / advised: how many times as long the MPI default takes as the advised alternative."],
    )


@advise.command(
    name="layouts",
    examples=(
        (
            "commodel advise layouts gemm --speeds params/speeds/fermi.yaml --platform fermi --blocks 128 "
            "--layout params/layouts/fermi --params params/published/taulop/fermi.yaml"
        ),
        (
            "commodel advise layouts gemm --speeds speeds.yaml --platform mycluster --blocks 8 "
            "--layout params/layouts/mine --params loggp.yaml"
        ),
    ),
    arguments={"KERNEL": "gemm (a matrix product), or wave (a stencil)."},
)
@click.argument("kernel", type=click.Choice(["gemm", "wave"]), metavar="KERNEL")
@make_option_group(
    "Matrix",
    click.option(
        "--blocks",
        type=click.IntRange(1, 1 << 20),
        required=True,
        help="Side of the matrix in blocks; for wave in cells.",
    ),
    click.option("--bytes", "sizes", help="Size of a block or cell.  [default: that of the block in --speeds]"),
    click.option("--iterations", type=click.IntRange(1, 1 << 30), help="Steps of the wave.  [default: 1]"),
)
@make_option_group(
    "Processes",
    click.option("--speeds", type=PATH, required=True, help="Speeds of each kind of process (YAML)."),
    click.option(
        "--layout", "layouts", multiple=True, help="Processes, processes:PATH, or a folder of such tables; repeated."
    ),
    click.option("--cores", help="Also rank processes of several cores on the first nodes, e.g. 2,4,6."),
)
@make_option_group(
    "Models",
    params_option,
    click.option(
        "--family",
        help="Model whose predictions rank the layouts.  [default: taulop if fitted, else the first that uses sizes]",
    ),
)
@make_option_group(
    "Platform and results",
    click.option("--platform", required=True, help="Platform of the processes."),
    experiment_option,
)
@make_option_group(
    "Measurement",
    click.option(
        "--measure",
        "count",
        type=click.IntRange(1, 1000),
        help="Also measure the best N, and the one that computes fastest.",
    ),
)
@make_option_group("Output", out_option("Folder of partitions to write."), style_option)
def advise_layouts(**options) -> None:
    """Rank layouts of processes for a kernel by computation plus communication."""
    from commodel.cli.kernels import print_layout_ranking

    print_layout_ranking(**options)


def _make_score_row(row: dict) -> dict:
    return {
        "platform": f"{row['platform']} (simulated)" if row["simulated"] else row["platform"],
        "operation": row["operation"],
        "workloads": row["workloads"],
        "fastest [%]": round(100 * row["right"]),
        "mean regret [%]": round(100 * row["regret_mean"], 2),
        "max regret [%]": round(100 * row["regret_max"], 2),
        "MPI default / advised": row["gain"],
        "MPI default / fastest": row["largest_gain"],
    }
