"""commodel predict: what patterns cost under a family, for a plan or for patterns named on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commodel.cli._output import show
from commodel.cli._points import pattern_options, points
from commodel.errors import UserError
from commodel.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from commodel.files.paths import AnyPath
    from commodel.parameters import ParameterSet
    from commodel.price.predict import Prediction


@click.command()
@click.option("--family", required=True, help="Model family, e.g. loggp.")
@click.option(
    "--params", type=click.Path(path_type=Path), multiple=True, help="Parameter set (YAML), fitted or published."
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="One parameter, e.g. L=2.5us or G=6ns; with or without --params a setting, e.g. posting=list; repeated.",
)
@pattern_options
@click.option("--pipelined", is_flag=True, help="Time between two waves of a long stream, not of one alone (tan).")
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
def predict(family, params, settings, platform, pipelined, plan_file, out, style, **pattern) -> None:
    """Price patterns with a family's parameters; seconds and bytes in JSON and CSV.

    \b
    commodel predict --family loggp --set L=2.5us --set o_s=1.5us --set o_r=1.5us --set g=1us --set G=6ns \\
        --operation bcast --algorithm binomial --ranks 16 --bytes 1
    """
    from commodel.files.paths import SafePath
    from commodel.models.families import choosing, given
    from commodel.patterns.points import Setting
    from commodel.plan.config import find, load_platform
    from commodel.price.predict import predict as price

    if not (params or settings):
        raise UserError("give --params FILE or --set NAME=VALUE")
    files = [SafePath.given(path, plan_file.parent) for path in params] if plan_file else params
    if plan_file and not params:
        raise UserError("--plan takes --params, one set for each platform, not --set alone")
    sets = [choosing(_read(family, path), settings) for path in files] or [given(family, settings)]
    if plan_file:
        _price_plan(sets, plan_file, out)
        return
    setting = None
    if platform:
        file = find("platform", platform)
        setting = Setting.of(file.stem, load_platform(file))
    if pattern["sizes"] is None:
        pattern["sizes"] = _only_size(sets)
    chosen = points(**pattern, setting=setting)
    show([_row(prediction, style) for parameters in sets for prediction in price(parameters, chosen, pipelined)], style)


def _read(family: str, path: AnyPath) -> ParameterSet:
    from commodel.models.families import read_set

    parameters = read_set(path)
    if parameters.family != family:
        raise UserError(f"found parameters of family '{parameters.family}', wanted {family}", file=path)
    return parameters


def _only_size(sets: list[ParameterSet]) -> str | None:
    """For families that are blind to size: the one size that their values were measured at."""
    from commodel.models.families import family as family_named

    if any(family_named(parameters.family).uses_bytes for parameters in sets):
        return None
    known = {int(parameters.bytes_range[0]) for parameters in sets if parameters.bytes_range}
    return str(known.pop()) if len(known) == 1 else "1"


def _price_plan(sets: list[ParameterSet], plan_file: Path, out: Path | None) -> None:
    """Each platform's points with that platform's parameters."""
    from commodel.files.paths import SafePath
    from commodel.files.tables import write_table
    from commodel.plan.file import load_plan
    from commodel.price.predict import predict as price
    from commodel.price.predict import table as priced

    if out is None:
        raise UserError("--plan needs --out")
    plan = load_plan(SafePath.given(plan_file, plan_file.parent))
    predictions = []
    for parameters in sets:
        points = [point for point in plan.points if point.platform == parameters.platform]
        predictions += price(parameters, points, strict=False)
    write_table(SafePath.given(out, plan_file.parent), priced(predictions))


def _row(prediction: Prediction, style: str) -> dict:
    point = prediction.point
    names = {name: getattr(point, name) for name in ("operation", "algorithm", "topology", "layout", "ranks", "bytes")}
    times = {name: getattr(prediction, name) for name in ("seconds", "low", "high")}
    if style == "table":
        exact = times["low"] == times["seconds"] == times["high"]  # values without intervals: so is the price
        times = {name: "-" if exact and name != "seconds" else format_seconds(t) for name, t in times.items()}
        names = {name: value for name, value in names.items() if value != ""} | {"bytes": format_bytes(point.bytes)}
    elif style == "json":
        names |= {name: names[name] or None for name in ("algorithm", "topology")}
    return {"family": prediction.family, **names, **times, "status": prediction.status}
