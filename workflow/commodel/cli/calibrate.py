"""commodel calibrate: adapt fitted models to this allocation by a few points that are measured here."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commodel.cli._help import Verb, make_option_group
from commodel.cli._options import PATH, out_option, quiet_option, style_option
from commodel.cli._output import make_progress_printer, print_answer, print_rows
from commodel.errors import UserError
from commodel.files.text_tables import format_table
from commodel.units import format_count, format_seconds

if TYPE_CHECKING:
    from commodel.compare.recalibration import RecalibratedSet


@click.command(
    cls=Verb,
    examples=(
        "commodel calibrate --experiment sample",
        'commodel calibrate --platform mycluster --setting "transport=tcp"',
    ),
)
@make_option_group(
    "Models and points",
    click.option(
        "--experiment", help="Experiment whose fitted models to use.  [default: the last one on the platform]"
    ),
    click.option("--params", type=PATH, multiple=True, help="Adapt these sets, or folders of sets, instead; repeated."),
    click.option(
        "--points",
        "count",
        type=click.IntRange(2, 6),
        default=6,
        show_default=True,
        help="Measure N points for the factors.",
    ),
    click.option(
        "--held-out",
        "held_out_count",
        type=click.IntRange(0, 100),
        default=6,
        show_default=True,
        help="Measure N held-out points for errors.",
    ),
)
@make_option_group(
    "Allocation",
    click.option("--platform", help="Platform of this allocation.  [default: the experiment's]"),
    click.option(
        "--setting",
        help="Name of this allocation.  [default: $COMMODEL_SETTING, the platform's, Slurm's job, the date]",
    ),
    click.option("--nodes", type=click.IntRange(1), help="Use at most N nodes.  [default: all of the allocation]"),
)
@make_option_group(
    "Output",
    out_option(
        "Folder of the sets.  [default: results/EXPERIMENT/calibrated/SETTING, with --params calibrated-SETTING]"
    ),
    quiet_option,
    style_option,
)
def calibrate(platform, experiment, params, setting, count, held_out_count, nodes, out, quiet, style) -> None:
    from commodel.api.calibration import (
        RecalibrationRequest,
        choose_folder,
        measure_calibration_points,
        read_source,
        write_recalibration,
    )
    from commodel.compare.recalibration import recalibrate_sets as recalibrate

    source = read_source(Path("results"), platform, experiment, params)
    if source.results:
        click.echo(f"predictions: {source.results.folder}, platform {source.platform}", err=True)
    request = RecalibrationRequest.of(source, platform, setting, count, held_out_count, nodes)
    folder = choose_folder(source, request, out)
    fit_times, held_out_times = measure_calibration_points(source, request, make_progress_printer(quiet))
    calibrations, reasons = recalibrate(source.sets, fit_times, held_out_times, request.setting, source.residuals)
    for reason in reasons.values():
        click.echo(f"commodel: left out: {reason}", err=True)
    if not calibrations:
        raise UserError("no parameter set could be recalibrated to this allocation")
    if style == "table":
        seconds = sum(entry.seconds for entry in (*fit_times, *held_out_times))
        best = min(calibrations, key=lambda entry: entry.after if entry.after == entry.after else inf)
        errors = f" (mean error μ {best.before:.3g} before, {best.after:.3g} after)" if best.checked else ""
        points = f"factors from {format_count(len(fit_times), 'point')}"
        points += f", errors at {format_count(len(held_out_times), 'held-out point')}"
        notes = [f"{points}; to run each once takes {format_seconds(seconds)}."]
        adapted = f"{format_count(len(calibrations), 'model')} adapted to this allocation"
        answer = f"{adapted}; best: {best.parameters.model}{errors}."
        print_answer(answer, format_table([_make_factor_row(entry, style) for entry in calibrations]), notes)
    else:
        print_rows([_make_factor_row(entry, style) for entry in calibrations], style)
    write_recalibration(source, request, fit_times, held_out_times, calibrations, folder)
    click.echo(f"sets: {folder}", err=True)


def _make_factor_row(entry: RecalibratedSet, style: str) -> dict[str, Any]:
    if style == "table":
        has_one_factor = entry.factors.together
        per_byte = "as latency: estimated together" if has_one_factor else entry.factors.per_byte.text
        errors = {"μ before": entry.before, "μ after": entry.after, "held-out points": entry.checked}
        factors = {"latency factor": entry.factors.latency.text, "time per byte factor": per_byte}
        return {"model": entry.parameters.model, **factors, **errors}
    from commodel.api.calibration import record_factors

    record = record_factors(entry)
    factor_columns = {
        f"{name}_{end}": getattr(factor, end) if factor.known else None
        for name, factor in (("latency", record.latency), ("per_byte", record.per_byte))
        for end in ("value", "low", "high")
    }
    columns = {name: getattr(record, name) for name in ("together", "points", "scatter", "before", "after", "checked")}
    return {"model": entry.parameters.model, **factor_columns, **columns}
