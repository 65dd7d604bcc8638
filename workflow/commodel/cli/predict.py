"""commodel predict: what patterns cost under one family, or under several side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commodel.cli._options import PATH, SET_HELP, format_option, pattern_options, refuse_campaign, set_option
from commodel.cli._output import show, show_waiting
from commodel.errors import UserError
from commodel.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from commodel.parameters import ParameterSet


@click.command()
@click.option("--family", help="Model family, e.g. loggp.  [default: those of --params, side by side]")
@click.option(
    "--params",
    type=PATH,
    multiple=True,
    help="Parameter set (YAML), fitted or published; or a report's workbook, as its calculator was changed.",
)
@set_option(f"{SET_HELP} Without --params: all that the family needs.")
@pattern_options
@click.option("--pipelined", is_flag=True, help="Time between two waves of a stream without end, not of one alone.")
@click.option("--waves", help="So many waves in a row, as `waves: 50` of a matrix: the time between two of them.")
@click.option("--platform", help="Platform whose nodes the ranks are spread over: a name or a file.")
@click.option("--plan", "plan_file", type=PATH, help="Price the points of this plan.json instead.")
@click.option("--out", type=PATH, help="With --plan: the table to write.")
@format_option("table", "json", "csv", help_text="JSON and CSV in seconds and bytes.")
def predict(family, params, settings, platform, pipelined, waves, plan_file, out, style, **pattern) -> None:
    """Price patterns with a family's parameters, or with those of several families side by side; seconds and bytes in
    JSON and CSV.

    Low and high hold 95 % of what would be measured, where the set carries `errors` (results/EXPERIMENT/judged, and
    `commodel fit --points`): how far off its prices were, of how many groups and jobs the column says. Else they hold
    what the parameters leave open, and say `parameters only`.

    Of several waves a rank begins one when it is itself done with the last. Families that add up steps for
    all ranks at once, such as bsp and taulop, say nothing about the time between waves.

    \b
    commodel predict --family loggp --set L=2.5us --set o_s=1.5us --set o_r=1.5us --set g=1us --set G=6ns \\
        --operation bcast --algorithm binomial --ranks 16 --bytes 1
    commodel predict --params logp.yaml --params lop.yaml --operation bcast --algorithm linear --ranks 2:64:*2
    """
    from commodel.api.predictions import choose_sets, find_only_size, list_points, predict_sets, tabulate_predictions
    from commodel.files.safe_paths import SafePath
    from commodel.parameters import origins

    if not (params or settings):
        raise UserError(f"give --params FILE{_suggest_set(platform)} or --set NAME=VALUE")
    if not (params or family):
        raise UserError("--set without --params needs --family")
    if waves and (pipelined or plan_file):
        other = "--pipelined, which is of a stream without end" if pipelined else "--plan, whose points have their own"
        raise UserError(f"give --waves or {other}")
    if plan_file and not params:
        raise UserError("--plan takes --params, one set for each platform, not --set alone")
    files = [SafePath.given(path, plan_file.parent) for path in params] if plan_file else params
    sets = choose_sets(files, family, settings)
    if plan_file:
        _predict_plan(sets, plan_file, out, changed=bool(settings))
        return
    setting = None
    if platform:
        from commodel.plan.planning import setting_on

        setting = setting_on(platform)
    if pattern["sizes"] is None:
        pattern["sizes"] = find_only_size(sets)
    points = list_points(**pattern, setting=setting, waves=waves)
    with show_waiting("pricing", aloud=True):
        predictions = predict_sets(sets, points, pipelined)
    rows = tabulate_predictions(predictions, sets, waves=bool(waves))
    show([_shape_row(row, style) for row in rows], style)
    for line in origins(sets, setting.name if setting else ""):
        click.echo(f"{line}.", err=True)


def _suggest_set(platform: str | None) -> str:
    """Return the end of a sentence that names a set of an earlier run, of that platform if one is given."""
    sets = sorted(Path("results").glob("*/judged/*/*.yaml"))
    nearest = [path for path in sets if platform in (None, path.parent.name)]
    return f", such as {nearest[0]}," if nearest else ""


def _predict_plan(sets: list[ParameterSet], plan_file: Path, out: Path | None, changed: bool) -> None:
    """Write the predictions of each platform's points under the sets of that platform."""
    import pandas as pd

    from commodel.files.cache import standing_on
    from commodel.files.results_folder import Results
    from commodel.files.safe_paths import SafePath
    from commodel.files.tables import write_table
    from commodel.models.parameter_sets import BY_HAND, note
    from commodel.plan.planning import load_plan
    from commodel.predictions.predictions import predict as predict_points
    from commodel.predictions.predictions import tabulate

    if out is None:
        raise UserError("--plan needs --out")
    if changed:
        refuse_campaign(out)
    plan = load_plan(SafePath.given(plan_file, plan_file.parent))
    tables = []
    with standing_on(Results.of(plan_file.parent), plan.files):
        for parameters in sets:
            points = [point for point in plan.points if point.platform == parameters.platform]
            with show_waiting(f"pricing by {parameters.family}", aloud=True):
                rows = tabulate(predict_points(parameters, points, strict=False))
            tables.append(rows.assign(**{BY_HAND: note(parameters)}) if changed else rows)
    write_table(SafePath.given(out, plan_file.parent), pd.concat(tables) if tables else tabulate([]))


def _shape_row(row: dict, style: str) -> dict:
    """Return a row as the style wants it; a table for people has units, and leaves out what is empty."""
    if style == "json":
        return row | {name: row[name] or None for name in ("algorithm", "topology")}
    if style == "csv":
        return row
    exact = row["low"] == row["seconds"] == row["high"]  # values without intervals: so is the prediction
    shown = {name: value for name, value in row.items() if value != "" and not name.startswith("parameters_")}
    shown["bytes"] = format_bytes(row["bytes"])
    for name in ("seconds", "low", "high"):
        shown[name] = "-" if exact and name != "seconds" else format_seconds(row[name])
    if exact:
        shown["interval"] = "none"
    return shown
