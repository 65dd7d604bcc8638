"""commodel advise: which tree, layout or algorithm for a job, by the vote of all fitted families."""

from pathlib import Path

import click

from commodel.cli._byhand import SET_HELP
from commodel.cli._output import commutative_option, same_types_option, style_option
from commodel.errors import UserError

LAYOUT_HELP = (
    "block:Q, scatter:LEVEL, …; near: ranks that send each other much near each other; repeated.  "
    "[default: block and cyclic; where the platform has levels, also scatter and near]"
)


@click.command()
@click.option("--operation", "operations", multiple=True, help="bcast, reduce, … (`commodel algorithms`); repeated.")
@click.option("--leaves", help="Of a tree overlay network.")
@click.option("--ranks", help="For a collective: number of ranks; 16, or 2,4,8, or 2:64:*2.")
@click.option("--bytes", "sizes", help="Message size: 1KiB, or 8,1KiB, or 1:1MiB:*4.")
@click.option("--layout", "layouts", multiple=True, help=LAYOUT_HELP)
@click.option("--only", multiple=True, metavar="CHOICE", help="Only these algorithms or topologies; repeated.")
@click.option("--open-mpi", is_flag=True, help="Only algorithms that Open MPI's rules can name; .conf implies it.")
@commutative_option
@same_types_option
@click.option("--params", type=click.Path(path_type=Path), multiple=True, help="Parameter sets of one platform.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help=SET_HELP)
@click.option("--platform", help="Whose fitted values and measured errors to use: a platform that was run on.")
@click.option("--experiment", help="Which experiment's results.  [default: the last one on that platform]")
@click.option("--score", is_flag=True, help="What following the vote would have cost at the points measured.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Decision table to write: .csv, .xlsx, or .conf (Open MPI)."
)
@click.option("--top", type=click.IntRange(1), default=12, show_default=True, help="How many choices to show.")
@style_option
def advise(
    params,
    settings,
    platform,
    experiment,
    layouts,
    only,
    open_mpi,
    commutative,
    same_types,
    score,
    out,
    top,
    style,
    **asked,
) -> None:
    """Rank all ways to do a job: latency and, for streams of waves, the time between them.

    \b
    commodel advise --operation reduce --leaves 128 --bytes 1KiB --platform tree-256
    commodel advise --operation allreduce --ranks 2:64:*2 --bytes 8:1MiB:*4 --platform mine --out rules.conf
    """
    from commodel.advice import advise as rank
    from commodel.advice.decision_tables import decide
    from commodel.advice.evidence import what_if
    from commodel.cli._advise import (
        check_out,
        evidence_of,
        for_rules,
        jobs_of,
        leave_out_unsafe,
        sentences,
        show_advice,
        show_score,
        write_decisions,
    )
    from commodel.cli._output import waiting
    from commodel.interchange.rules import ONE_FOR_ALL_SIZES, Assumptions

    check_out(out)
    if score and settings:
        raise UserError("--score is about what was fitted: leave --set out")
    evidence = evidence_of(params, platform, experiment)
    if score:
        show_score(evidence, style)
        return
    evidence = what_if(evidence, settings)
    jobs, choices, together = jobs_of(**asked), lambda job: only, ()
    assumptions = Assumptions(commutative, same_types)
    if open_mpi or (out and out.suffix == ".conf"):
        if len(layouts) > 1:
            raise UserError("Open MPI's rules hold for any layout; give one --layout, of the jobs that they are for")
        layouts, choices, together = layouts or ("block",), for_rules(only, assumptions), ONE_FOR_ALL_SIZES
        jobs = leave_out_unsafe(jobs, choices)
    if out or len(jobs) > 1:
        with waiting("advising", aloud=True):
            decisions = decide(jobs, evidence, layouts, choices, together)
        write_decisions(decisions, out, style, assumptions)
        return
    with waiting("advising", aloud=True):
        advice = rank(jobs[0], evidence, layouts, choices(jobs[0]))
    show_advice(advice, top, style)
    if style == "table":
        click.echo("\n" + "\n".join(sentences(advice)))
