"""commodel plan: what an experiment will do, before anything runs."""

from pathlib import Path

import click

from commodel.cli._output import show, table
from commodel.plan import make_plan, write_plan
from commodel.planview import batch_rows, point_rows, totals, write_plan_workbook


@click.command()
@click.argument("experiment")
@click.option("--only", metavar="PLATFORM", help="Only the part that runs on this platform.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json", "csv", "xlsx"]),
    default="table",
    show_default=True,
    help="The table shows batches; the others every point.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="With --format xlsx: the workbook.  [default: EXPERIMENT-plan.xlsx]"
)
@click.option("--write", is_flag=True, help="Also write results/EXPERIMENT/plan.json, as a run does.")
def plan(experiment: str, only: str | None, style: str, out: Path | None, write: bool) -> None:
    """Show the points and batches of EXPERIMENT, who needs which probe, and an estimate of time and node-hours.

    EXPERIMENT is the name of a file in params/experiments, or a path. A table shows the
    batches; json, csv and xlsx hold every point.
    """
    made = make_plan(experiment, Path.cwd(), only)
    if write:
        write_plan(made, experiment, Path.cwd())
    if style == "table":
        click.echo(table(batch_rows(made)))
        click.echo("\n" + "\n".join(totals(made)))
    elif style == "xlsx":
        path = out or Path(f"{made.experiment}-plan.xlsx")
        write_plan_workbook(made, path)
        click.echo(path)
    else:
        show(point_rows(made), style)
