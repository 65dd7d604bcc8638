"""commodel advise: rank the alternatives for a workload; the score of advice by a subcommand."""

from __future__ import annotations

import click

from commodel.cli._help import VerbWithModes, make_option_group
from commodel.cli._options import (
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
from commodel.cli._output import make_progress_printer, print_rows, show_waiting, write_answer
from commodel.errors import UserError
from commodel.records import Statistic

LAYOUT_HELP = (
    "Layout, e.g. block:Q, scatter:LEVEL, near; repeated.  [default: block, cyclic, and with "
    "levels scatter and near]"
)
PLATFORM = click.option(
    "--platform", help="Platform of a run.  [default: its only one, or the one not simulated]"
)


@click.group(
    cls=VerbWithModes,
    examples=(
        "commodel advise --platform fast-ethernet-32 --operation bcast --ranks 16 --bytes 64KiB",
        "commodel advise --operation allreduce --ranks 2:16:*2 --bytes 8:1MiB:*8 -o rules.conf",
    ),
)
@make_option_group(
    "Workload",
    click.option(
        "--operation",
        "operations",
        multiple=True,
        help="Operation (`commodel show operations`); repeated.",
    ),
    click.option("--ranks", help="Number of ranks: 16, or 2,4,8, or 2:64:*2."),
    click.option("--leaves", help="Leaves of a tree, in place of --ranks."),
    click.option("--bytes", "sizes", help="Message size: 1KiB, or 8,1KiB, or 1:1MiB:*4."),
    statistic_option,
)
@make_option_group(
    "Alternatives",
    click.option("--layout", "layouts", multiple=True, help=LAYOUT_HELP),
    click.option(
        "--only",
        multiple=True,
        metavar="NAME",
        help="Rank only these algorithms or topologies; repeated.",
    ),
)
@make_option_group("Models", params_option, set_option)
@make_option_group("Platform and results", PLATFORM, experiment_option)
@make_option_group(
    "For Open MPI's rules",
    click.option(
        "--open-mpi",
        is_flag=True,
        help="Rank only what Open MPI's rules can name; implied by .conf.",
    ),
    commutative_option,
    same_types_option,
)
@make_option_group(
    "Output",
    out_option("Decision table (.csv, .xlsx, .conf)."),
    click.option(
        "--top", type=click.IntRange(1), default=12, show_default=True, help="Alternatives to show."
    ),
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
    from commodel.api.advice import RULES_SUFFIX, Advice, check_decision_file
    from commodel.api.recommendations import (
        Candidates,
        EvidenceSource,
        advise_workload,
        decide_workloads,
        list_workloads,
        select_for_rules,
    )
    from commodel.interchange.rules import Assumptions

    if out:
        check_decision_file(out)
    if not operations:
        raise UserError("give --operation NAME; `commodel show operations` lists them")
    if statistic != Statistic.COMPLETION and (out or open_mpi):
        raise UserError(
            f"found --statistic '{statistic}', wanted completion: decisions minimise that time"
        )
    workloads = list_workloads(operations, leaves, ranks, sizes, Statistic(statistic))
    source = EvidenceSource(
        params, platform, experiment, settings, print_note=make_progress_printer(False)
    )
    for_rules = open_mpi or (out and out.suffix == RULES_SUFFIX)
    candidates = Candidates(
        layouts, only, Assumptions(commutative, same_types) if for_rules else None
    )
    if for_rules:
        workloads, candidates = select_for_rules(
            workloads, candidates, make_progress_printer(False)
        )
    if out:
        with show_waiting("advising", plain_lines=True):
            decisions = decide_workloads(workloads, source, candidates)
        decisions.save(out)
        click.echo(out)
        for note in decisions.notes:
            click.echo(note, err=True)
        return
    with show_waiting("advising", plain_lines=True):
        answer = (
            advise_workload(workloads[0], source, candidates)
            if len(workloads) == 1
            else decide_workloads(workloads, source, candidates)
        )
    if style != "table":
        print_rows(answer.rows, style)
    elif isinstance(answer, Advice):
        click.echo(answer.text(verbose, top))
    else:
        click.echo(answer.text(verbose))


@advise.command(
    name="score",
    examples=(
        "commodel advise score --experiment sample",
        "commodel advise score --platform fast-ethernet-32",
    ),
)
@make_option_group("Platform and results", PLATFORM, experiment_option)
@make_option_group("Output", style_option)
def score(platform: str | None, experiment: str | None, style: str) -> None:
    """Show the regret of the advice at the measured points."""
    from commodel.api.advice_scores import score_advice
    from commodel.api.recommendations import EvidenceSource

    source = EvidenceSource((), platform, experiment, print_note=make_progress_printer(False))
    write_answer(score_advice(source), style)
