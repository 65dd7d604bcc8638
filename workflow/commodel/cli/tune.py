"""commodel tune: rules for the MPI library's own collectives, measured where it decides, and proven to pay."""

from pathlib import Path

import click

from commodel.cli._output import commutative_option, same_types_option, style_option


@click.command()
@click.option("--operation", "operations", multiple=True, help="bcast, reduce, …; repeated.  [default: all there are]")
@click.option("--ranks", required=True, help="Number of ranks; 16, or 2,4,8, or 2:64:*2.")
@click.option("--bytes", "sizes", default="8:256KiB:*8", show_default=True, help="Message sizes: 1KiB, or 8:1MiB:*4.")
@click.option("--platform", required=True, help="Where to measure.")
@click.option("--layout", default="block", show_default=True, help="How ranks are laid out.")
@click.option("--params", type=click.Path(path_type=Path), multiple=True, help="Parameter sets to price with.")
@click.option("--experiment", help="Whose fitted values to price with.  [default: the last one on that platform]")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), default=5.0, show_default=True, help="To measure.")
@click.option(
    "--pairs", type=click.IntRange(3), default=4, show_default=True, help="Starts with rules and without, in the proof."
)
@click.option("--sync", type=click.Choice(["window", "barrier"]), default="window", help="How ranks start a sample.")
@commutative_option
@same_types_option
@click.option("--out", type=click.Path(path_type=Path), help="Folder of results.  [default: results/tune-PLATFORM]")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@style_option
def tune(
    operations,
    ranks,
    sizes,
    platform,
    layout,
    params,
    experiment,
    minutes,
    pairs,
    sync,
    commutative,
    same_types,
    out,
    quiet,
    style,
) -> None:
    """Find out which algorithms the MPI library should use, write its rules, and prove that they pay.

    \b
    commodel tune --platform mine --ranks 64 --bytes 8:1MiB:*8 --minutes 10

    What is in the folder of results is not measured again: call it once more after it was stopped.
    """
    from commodel.cli._output import progress
    from commodel.cli._tune import report, tuned
    from commodel.interchange.rules import Assumptions

    say = progress(quiet)
    assumed = Assumptions(commutative, same_types)
    asked = operations, ranks, sizes, platform, layout, params, experiment, minutes, pairs, sync, out
    outcome = tuned(*asked, assumed, say)
    report(outcome, style)
