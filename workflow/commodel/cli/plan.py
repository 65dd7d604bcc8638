"""commodel plan: show the work of an experiment before anything runs."""

from pathlib import Path

import click

from commodel.cli._help import VerbCommand, make_option_group
from commodel.cli._options import EXPERIMENT_ARGUMENT, format_option, out_option, verbose_option
from commodel.cli._output import show_waiting, write_answer


@click.command(
    cls=VerbCommand,
    examples=("commodel plan sample", "commodel plan sample --format xlsx -o sample.xlsx"),
    arguments=EXPERIMENT_ARGUMENT,
)
@click.argument("experiment")
@make_option_group(
    "Experiment",
    click.option("--only", metavar="PLATFORM", help="Plan only the points on this platform."),
    click.option(
        "--no-survey", is_flag=True, help="Omit the survey that learns the levels of a network."
    ),
    click.option(
        "--learn",
        metavar="PLATFORM",
        help="Derive the levels of PLATFORM from its survey, then plan again.",
    ),
)
@make_option_group(
    "Output",
    format_option(
        "table",
        "json",
        "csv",
        "xlsx",
        help_text="Print a table of batches, or all points as JSON or CSV.",
    ),
    out_option("Workbook to write."),
    click.option(
        "--write", is_flag=True, help="Also write results/EXPERIMENT/plan.json, as a run does."
    ),
    verbose_option,
)
def plan(
    experiment: str,
    only: str | None,
    style: str,
    out: Path | None,
    no_survey: bool,
    learn: str | None,
    write: bool,
    verbose: bool,
) -> None:
    if learn is not None:
        from commodel.api.surveys import learn_network

        click.echo(learn_network(experiment, learn, only))
        return
    from commodel.api.plans import plan_ as plan_work

    with show_waiting("planning"):
        result = plan_work(experiment, only=only, survey=not no_survey, write=write)
    if style == "table":
        click.echo(result.text(verbose))
        return
    path = out or Path(f"{result.plan.experiment}-plan.xlsx")
    write_answer(result, style, path if style == "xlsx" else None)
    if style == "xlsx":
        click.echo(path)
