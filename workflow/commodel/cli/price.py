"""The verbs that price a whole matrix without measuring anything, and that join the parts of such a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commodel.cli._options import PATH, refuse_campaign, set_option
from commodel.cli._output import count_progress, show_waiting
from commodel.errors import UserError

if TYPE_CHECKING:
    from commodel.parameters import ParameterSet


@click.command()
@click.argument("experiment")
@click.option("--params", type=PATH, multiple=True, required=True, help="Parameter set (YAML); repeated.")
@set_option()
@click.option("--out", type=PATH, required=True, help="The table to write: .parquet or .csv.")
@click.option("--platform", help="Platform whose nodes limit the matrix.  [default: no limits, one rank a node]")
@click.option("--draws", type=click.IntRange(0), help="At most so many draws for an interval; 0: none.  [default: all]")
@click.option("--part", metavar="I/N", help="Only part I of N of about equal cost; `commodel join` puts them together.")
@click.option("--jobs", type=click.IntRange(1, 10_000), help="Price in so many jobs of Snakemake, and join them.")
@click.option("--profile", help="With --jobs: Snakemake profile, e.g. slurm.")
def price(experiment, params, settings, out, platform, draws, part, jobs, profile) -> None:
    """Price every point of the matrix of EXPERIMENT with every parameter set, and measure nothing.

    The rows come shape by shape: all sizes under the first set, all under the next. Memory does not
    grow with the matrix. Intervals take most of the time: --draws 0 prices twenty times as fast.
    An EXPERIMENT inside a folder of results (FOLDER/inputs/experiments/NAME.yaml) takes the files
    that it names from there. Prices with --set say so in the column `parameters`, and are not written
    among the results of a campaign.
    """
    from commodel.api.snakemake_runs import snakemake_command, wait
    from commodel.files.streams import arrow, check_suffix, piece, write_stream
    from commodel.files.tables import PRICES
    from commodel.models.parameter_sets import by_hand, read_set
    from commodel.patterns.points import Setting
    from commodel.plan.config import find, load_experiment
    from commodel.plan.planning import received, setting_on
    from commodel.plan.prediction_list import part as part_of
    from commodel.plan.prediction_list import shapes
    from commodel.predictions.predictions import price as price_shapes

    if (part and jobs) or (profile and not jobs):
        raise UserError("--part and --jobs exclude each other, and --profile needs --jobs")
    check_suffix(out)
    if settings:
        refuse_campaign(out)
    fraction = _fraction(part) if part else None
    if part and out.suffix != ".parquet":
        raise UserError(f"--part: found '{out.name}', wanted a file .parquet, which `commodel join` puts together")
    path = find("experiment", experiment)
    if jobs:
        config = {"experiment": path, "params": [str(file) for file in params], "out": out, "parts": jobs}
        config |= ({"set": list(settings)} if settings else {}) | {"on": platform, "draws": draws}
        command = snakemake_command("workflow/rules/price.smk", config, None, profile)
        raise SystemExit(wait([*command, "--quiet", "host", "reason"]))
    setting = setting_on(platform) if platform else Setting.unlimited()
    read = by_hand([read_set(file) for file in params], settings)
    sets = {_called(file, parameters): parameters for file, parameters in zip(params, read, strict=True)}
    types = arrow(PRICES)
    with received(path):
        wanted = shapes(load_experiment(path), setting)
        chosen = part_of(wanted, *fraction) if fraction else wanted
        prices = price_shapes(count_progress(chosen, "patterns priced"), sets, draws)
        rows = write_stream(out, types, (piece(columns, types) for columns in prices))
    click.echo(f"{out}: {rows:,} prices of {sum(len(shape.sizes) for shape in chosen):,} points", err=True)


def _called(file: Path, parameters: ParameterSet) -> str:
    from commodel.models.parameter_sets import note

    return f"{file}, by hand: {note(parameters)}" if note(parameters) else str(file)


def _fraction(text: str) -> tuple[int, int]:
    part, slash, parts = text.partition("/")
    if not (slash and part.isascii() and parts.isascii() and part.isdigit() and parts.isdigit() and len(parts) < 6):
        raise UserError(f"--part: found '{text}', wanted I/N, such as 3/16")
    if not 1 <= int(part) <= int(parts):
        raise UserError(f"--part: found '{text}', wanted 1/{parts} to {parts}/{parts}")
    return int(part), int(parts)


@click.command()
@click.argument("parts", nargs=-1, required=True, type=PATH)
@click.option("--out", type=PATH, required=True, help="The table to write: .parquet or .csv.")
def join(parts: tuple[Path, ...], out: Path) -> None:
    """Put the Parquet files PARTS, such as `commodel price --part` writes, one after the other into one table."""
    from commodel.files.streams import read_stream, write_stream

    with show_waiting("joining"):
        write_stream(out, *read_stream(parts))
