"""commodel plan: show the work of an experiment before anything runs."""

from pathlib import Path

import click

from commodel.cli._help import Verb, make_option_group
from commodel.cli._options import EXPERIMENT_ARGUMENT, format_option, out_option, verbose_option
from commodel.cli._output import print_answer, print_rows, show_waiting
from commodel.files.text_tables import format_table


@click.command(
    cls=Verb,
    examples=("commodel plan sample", "commodel plan sample --format xlsx -o sample.xlsx"),
    arguments=EXPERIMENT_ARGUMENT,
)
@click.argument("experiment")
@make_option_group(
    "Experiment",
    click.option("--only", metavar="PLATFORM", help="Plan only the points on this platform."),
    click.option("--no-survey", is_flag=True, help="Omit the survey that learns the levels of a network."),
    click.option("--learn", metavar="PLATFORM", help="Derive the levels of PLATFORM from its survey, then plan again."),
)
@make_option_group(
    "Output",
    format_option("table", "json", "csv", "xlsx", help_text="Print a table of batches, or all points as JSON or CSV."),
    out_option("Workbook to write."),
    click.option("--write", is_flag=True, help="Also write results/EXPERIMENT/plan.json, as a run does."),
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
    from commodel.plan.plan_tables import make_batch_rows, make_point_rows, summarize_plan, write_plan_workbook
    from commodel.plan.planning import make_plan, write_plan
    from commodel.results.campaign import Campaign, find_results
    from commodel.results.progress import compare_with_earlier_durations

    with show_waiting("planning"):
        experiment_plan = make_plan(experiment, Path.cwd(), only, not no_survey)
    if write:
        write_plan(experiment_plan, experiment, Path.cwd())
    if style == "table":
        remaining = Campaign(experiment_plan, find_results(experiment)).list_remaining_work()
        durations = compare_with_earlier_durations(experiment_plan, Path("results")) if remaining else []
        answer, *notes = (f"{line}." for line in summarize_plan(experiment_plan, remaining, durations, verbose))
        print_answer(answer, format_table(make_batch_rows(experiment_plan, remaining)), notes, verbose)
    elif style == "xlsx":
        path = out or Path(f"{experiment_plan.experiment}-plan.xlsx")
        write_plan_workbook(experiment_plan, path)
        click.echo(path)
    else:
        print_rows(make_point_rows(experiment_plan), style)
