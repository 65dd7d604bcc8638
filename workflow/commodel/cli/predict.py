"""commodel predict: what patterns cost under one family, or under several side by side."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commodel.cli._byhand import SET_HELP, refuse_campaign
from commodel.cli._output import show, waiting
from commodel.cli._points import pattern_options, points
from commodel.errors import UserError
from commodel.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from commodel.files.safe_paths import AnyPath
    from commodel.parameters import ParameterSet
    from commodel.price.predictions import Prediction


@click.command()
@click.option("--family", help="Model family, e.g. loggp.  [default: those of --params, side by side]")
@click.option(
    "--params",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Parameter set (YAML), fitted or published; or a report's workbook, as its calculator was changed.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help=f"{SET_HELP} Without --params: all that the family needs.",
)
@pattern_options
@click.option("--pipelined", is_flag=True, help="Time between two waves of a stream without end, not of one alone.")
@click.option("--waves", help="So many waves in a row, as `waves: 50` of a matrix: the time between two of them.")
@click.option("--platform", help="Platform whose nodes the ranks are spread over: a name or a file.")
@click.option(
    "--plan", "plan_file", type=click.Path(path_type=Path), help="Price the points of this plan.json instead."
)
@click.option("--out", type=click.Path(path_type=Path), help="With --plan: the table to write.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="JSON and CSV in seconds and bytes.",
)
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
    from commodel.files.safe_paths import SafePath
    from commodel.models.parameter_sets import by_hand, set_given
    from commodel.parameters import origins
    from commodel.plan.planning import setting_on
    from commodel.price.predictions import predict as price

    if not (params or settings):
        raise UserError(f"give --params FILE{_such_as(platform)} or --set NAME=VALUE")
    if not (params or family):
        raise UserError("--set without --params needs --family")
    files = [SafePath.given(path, plan_file.parent) for path in params] if plan_file else params
    if waves and (pipelined or plan_file):
        other = "--pipelined, which is of a stream without end" if pipelined else "--plan, whose points have their own"
        raise UserError(f"give --waves or {other}")
    if plan_file and not params:
        raise UserError("--plan takes --params, one set for each platform, not --set alone")
    read = [parameters for path in files for parameters in _read(family, path)]
    sets = by_hand(read, settings) if files else [set_given(family, settings)]
    if plan_file:
        if out and settings:
            refuse_campaign(out)
        _price_plan(sets, plan_file, out)
        return
    setting = setting_on(platform) if platform else None
    if pattern["sizes"] is None:
        pattern["sizes"] = _only_size(sets)
    chosen = points(**pattern, setting=setting, waves=waves)
    columns = []
    for parameters in sets:
        with waiting(f"pricing by {parameters.family}", aloud=True):
            columns.append(price(parameters, chosen, pipelined))
    rows = [prediction for prices in zip(*columns, strict=True) for prediction in prices]
    lines = zip(rows, cycle(_hands(sets)), strict=False)
    show([_row(prediction, style, bool(waves)) | hand for prediction, hand in lines], style)
    for line in origins(sets, setting.name if setting else ""):
        click.echo(f"{line}.", err=True)


def _hands(sets: list[ParameterSet]) -> list[dict[str, str]]:
    """Of each set a column that says what was set by hand, where any was."""
    from commodel.models.parameter_sets import BY_HAND, note

    return [{BY_HAND: note(parameters)} if any(map(note, sets)) else {} for parameters in sets]


def _such_as(platform: str | None) -> str:
    """A set that a run has left here, of that platform if one is named."""
    sets = sorted(Path("results").glob("*/judged/*/*.yaml"))
    nearest = [path for path in sets if platform in (None, path.parent.name)]
    return f", such as {nearest[0]}," if nearest else ""


def _read(family: str | None, path: AnyPath) -> list[ParameterSet]:
    """The set of a file, or those of a report's workbook as its reader has changed them: REPORT.xlsx#PLATFORM."""
    from commodel.models.parameter_sets import read_set

    file, _, platform = str(path).partition(".xlsx#") if ".xlsx#" in str(path) else (str(path), "", "")
    if platform or file.endswith(".xlsx"):
        from commodel.report.received_workbooks import sets_of

        sets = sets_of(Path(file.removesuffix(".xlsx") + ".xlsx"), platform)
    else:
        sets = [read_set(path)]
    wanted = [parameters for parameters in sets if family in (None, parameters.family)]
    if not wanted:
        names = ", ".join(sorted({parameters.family for parameters in sets}))
        raise UserError(f"found parameters of family '{names}', wanted {family}", file=path)
    return wanted


def _only_size(sets: list[ParameterSet]) -> str | None:
    """For families that are blind to size: the one size that their values were measured at."""
    from commodel.models.families import family as family_named

    if any(family_named(parameters.family).uses_bytes for parameters in sets):
        return None
    sizes = {int(parameters.bytes_range[0]) for parameters in sets if parameters.bytes_range}
    return str(sizes.pop()) if len(sizes) == 1 else "1"


def _price_plan(sets: list[ParameterSet], plan_file: Path, out: Path | None) -> None:
    """Each platform's points with that platform's parameters."""
    import pandas as pd

    from commodel.files.cache import standing_on
    from commodel.files.results_folder import Results
    from commodel.files.safe_paths import SafePath
    from commodel.files.tables import write_table
    from commodel.plan.planning import load_plan
    from commodel.price.predictions import predict as price
    from commodel.price.predictions import table as priced

    if out is None:
        raise UserError("--plan needs --out")
    plan = load_plan(SafePath.given(plan_file, plan_file.parent))
    tables = []
    with standing_on(Results.of(plan_file.parent), plan.files):
        for parameters, hand in zip(sets, _hands(sets), strict=True):
            points = [point for point in plan.points if point.platform == parameters.platform]
            with waiting(f"pricing by {parameters.family}", aloud=True):
                rows = priced(price(parameters, points, strict=False))
            tables.append(rows.assign(**hand))
    write_table(SafePath.given(out, plan_file.parent), pd.concat(tables) if tables else priced([]))


def _row(prediction: Prediction, style: str, waves: bool) -> dict:
    point = prediction.point
    names = {name: getattr(point, name) for name in ("operation", "algorithm", "topology", "layout", "ranks", "bytes")}
    names |= {"waves": point.waves} if waves else {}
    times = {name: getattr(prediction, name) for name in ("seconds", "low", "high")}
    words = {"interval": prediction.interval}
    if style == "table":
        exact = times["low"] == times["seconds"] == times["high"]  # values without intervals: so is the price
        words |= {"interval": "none"} if exact else {}
        times = {name: "-" if exact and name != "seconds" else format_seconds(t) for name, t in times.items()}
        names = {name: value for name, value in names.items() if value != ""} | {"bytes": format_bytes(point.bytes)}
    else:
        words = {name: getattr(prediction, name) for name in ("parameters_low", "parameters_high")} | words
    if style == "json":
        names |= {name: names[name] or None for name in ("algorithm", "topology")}
    return {"family": prediction.family, **names, **times, **words, "status": prediction.status}
