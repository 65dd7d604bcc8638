"""The verb that tunes an MPI library's own collectives by rules that are measured to pay."""

from __future__ import annotations

import click

from commodel.cli.verb_parts import (
    VerbCommand,
    commutative_option,
    experiment_option,
    make_option_group,
    make_progress_printer,
    out_option,
    params_option,
    print_rows,
    quiet_option,
    same_types_option,
    style_option,
    verbose_option,
)


@click.command(
    cls=VerbCommand,
    examples=(
        "commodel tune --platform mycluster --ranks 64 --bytes 8:1MiB:*16 --minutes 10",
        "commodel tune --platform local --ranks 2 --operation bcast --bytes 8",
    ),
)
@make_option_group(
    "Workloads",
    click.option(
        "--operation",
        "operations",
        multiple=True,
        help="Operation to tune; repeated.  [default: all]",
    ),
    click.option("--ranks", required=True, help="Number of ranks: 16, or 2,4,8, or 2:64:*2."),
    click.option(
        "--bytes",
        "sizes",
        default="8:256KiB:*8",
        show_default=True,
        help="Message sizes: 1KiB, or 8:1MiB:*4.",
    ),
    click.option(
        "--layout",
        default="block",
        show_default=True,
        help="Layout of ranks on nodes. Over nodes of several ranks, hierarchical "
        "algorithms are tried, too.",
    ),
)
@make_option_group("Models", params_option, experiment_option)
@make_option_group("Assumptions", commutative_option, same_types_option)
@make_option_group(
    "Measurement",
    click.option("--platform", required=True, help="Platform to measure on."),
    click.option(
        "--minutes",
        type=click.FloatRange(0, min_open=True),
        default=5.0,
        show_default=True,
        help="Search for at most N minutes; screening and validation follow.",
    ),
    click.option(
        "--pairs",
        type=click.IntRange(3),
        default=4,
        show_default=True,
        help="For validation, start N times with rules and N times without.",
    ),
    click.option(
        "--sync",
        type=click.Choice(["window", "barrier"]),
        default="window",
        show_default=True,
        help="Start samples by clocks or a barrier.",
    ),
)
@make_option_group(
    "Output",
    out_option("Folder of results, continued if there.  [default: results/tune-PLATFORM]"),
    quiet_option,
    style_option,
    verbose_option,
)
def tune(commutative, same_types, quiet, style, verbose, **options) -> None:
    from commodel.interchange.rules import Assumptions
    from commodel_tune.tuning import TuningRequest, tune_library

    request = TuningRequest(**options, assumptions=Assumptions(commutative, same_types))
    result = tune_library(request, make_progress_printer(quiet))
    if style == "table":
        click.echo(result.text(verbose))
    else:
        print_rows(result.rows, style)
