"""commodel calibrate: adapt fitted models to this allocation by a few points that are measured
here."""

from __future__ import annotations

from pathlib import Path

import click

from commodel.cli._help import VerbCommand, make_option_group
from commodel.cli._options import PATH, out_option, quiet_option, style_option
from commodel.cli._output import make_progress_printer, write_answer


@click.command(
    cls=VerbCommand,
    examples=(
        "commodel calibrate --experiment sample",
        'commodel calibrate --platform mycluster --setting "transport=tcp"',
    ),
)
@make_option_group(
    "Models and points",
    click.option(
        "--experiment",
        help="Experiment whose fitted models to use.  [default: the last one on the platform]",
    ),
    click.option(
        "--params",
        type=PATH,
        multiple=True,
        help="Adapt these sets, or folders of sets, instead; repeated.",
    ),
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
    click.option(
        "--nodes",
        type=click.IntRange(1),
        help="Use at most N nodes.  [default: all of the allocation]",
    ),
)
@make_option_group(
    "Output",
    out_option(
        "Folder of the sets.  [default: results/EXPERIMENT/calibrated/SETTING, with --params calibrated-SETTING]"
    ),
    quiet_option,
    style_option,
)
def calibrate(
    platform, experiment, params, setting, count, held_out_count, nodes, out, quiet, style
) -> None:
    from commodel.api.calibration import RecalibrationRequest, read_source, recalibrate

    source = read_source(Path("results"), platform, experiment, params)
    if source.results:
        click.echo(f"predictions: {source.results.folder}, platform {source.platform}", err=True)
    request = RecalibrationRequest.of(source, platform, setting, count, held_out_count, nodes)
    result = recalibrate(source, request, out, make_progress_printer(quiet))
    for reason in result.left_out:
        click.echo(f"commodel: left out: {reason}", err=True)
    write_answer(result, style)
    click.echo(f"sets: {result.folder}", err=True)
