"""commodel calibrate: a few points measured in this job move the prices of another one to it."""

from pathlib import Path

import click

from commodel.cli._output import style_option

PATH = click.Path(path_type=Path)


@click.command()
@click.option("--platform", help="Where to measure: this job's platform.  [default: the experiment's]")
@click.option("--experiment", help="Whose prices to move.  [default: the last one on the platform]")
@click.option("--params", type=PATH, multiple=True, help="Move these sets, or folders of sets, instead; repeated.")
@click.option("--setting", help="What to call this job.  [default: $COMMODEL_SETTING, the platform's, Slurm's job]")
@click.option(
    "--points", "count", type=click.IntRange(2, 6), default=6, show_default=True, help="To take factors from."
)
@click.option("--aside", type=click.IntRange(0, 100), default=6, show_default=True, help="Points to judge them by.")
@click.option("--nodes", type=click.IntRange(1), help="At most so many.  [default: the job's, else the platform's]")
@click.option("--out", type=PATH, help="Folder for the sets.  [default: results/EXPERIMENT/calibrated/SETTING]")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@style_option
def calibrate(platform, experiment, params, setting, count, aside, nodes, out, quiet, style) -> None:
    """Measure two to six points here, in seconds, and move a campaign's prices to this job.

    A job is not like the last one: other nodes, another transport, other users. A factor of latency and
    one of time per byte are told by short and long messages over every distance of the platform, each
    compared with its time in the campaign; with --params with its price. The moved sets, a file a
    family, are for every --params; how far off prices are before and after is told by points kept aside.

    \b
    commodel calibrate --experiment demo --setting "transport=tcp"
    commodel predict --params "results/demo/calibrated/transport-tcp/loggp.yaml" \\
        --operation bcast --algorithm binomial --ranks 16 --bytes 64KiB
    """
    from commodel.cli._calibrate import Asked, folder_of, measured, sets_of, tell, write
    from commodel.compare.recalibration import calibrate as moved

    source = sets_of(Path("results"), platform, experiment, params)
    asked = Asked.of(source, platform, setting, count, aside, nodes)
    folder = folder_of(source, asked, out)
    used, kept = measured(source, asked, quiet)
    calibrations, complaints = moved(source.sets, used, kept, asked.setting, source.errors)
    tell(calibrations, complaints, used, kept, style)
    write(source, asked, used, kept, calibrations, folder)
    click.echo(f"sets: {folder}", err=True)
