"""commodel plan: show the work of an experiment before anything runs."""

from pathlib import Path

import click

from commodel.cli._help import Verb, make_option_group
from commodel.cli._options import EXPERIMENT_ARGUMENT, PATH, format_option, out_option, verbose_option
from commodel.cli._output import print_answer, print_rows, show_waiting
from commodel.errors import UserError
from commodel.files.text_tables import format_table


@click.command(
    cls=Verb,
    examples=("commodel plan sample", "commodel plan sample --format xlsx -o sample.xlsx"),
    arguments=EXPERIMENT_ARGUMENT,
)
@click.argument("experiment", required=False)
@make_option_group(
    "Experiment",
    click.option("--only", metavar="PLATFORM", help="Plan only the points on this platform."),
    click.option("--from", "edited", type=PATH, help="Turn an edited workbook of --format xlsx into an experiment."),
    click.option("--no-survey", is_flag=True, help="Omit the survey that learns the levels of a network."),
    click.option("--learn", metavar="PLATFORM", help="Derive the levels of PLATFORM from its survey, then plan again."),
)
@make_option_group(
    "Output",
    format_option("table", "json", "csv", "xlsx", help_text="Print a table of batches, or all points as JSON or CSV."),
    out_option("Workbook to write; with --from the experiment (YAML)."),
    click.option("--write", is_flag=True, help="Also write results/EXPERIMENT/plan.json, as a run does."),
    verbose_option,
)
def plan(
    experiment: str | None,
    only: str | None,
    style: str,
    out: Path | None,
    edited: Path | None,
    no_survey: bool,
    learn: str | None,
    write: bool,
    verbose: bool,
) -> None:
    if edited is not None:
        _read_edited_workbook(edited, experiment, out)
        return
    if experiment is None:
        raise UserError("found neither an experiment nor --from, wanted one of the two")
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
        from commodel.plan import editable_matrix
        from commodel.plan.config import find_config_file
        from commodel.plan.planning import use_received_files

        path, file = out or Path(f"{experiment_plan.experiment}-plan.xlsx"), find_config_file("experiment", experiment)

        def write_sheets(book) -> None:
            editable_matrix.write_sheets(book, file, Path.cwd(), experiment_plan)

        with use_received_files(file):
            is_editable = editable_matrix.is_editable(file)
            write_plan_workbook(experiment_plan, path, write_sheets if is_editable else None)
        click.echo(path)
        if not is_editable:
            limit = f"{editable_matrix.MAX_ROWS:,}"
            click.echo(f"commodel: more than {limit} combinations: without a sheet to edit the matrix", err=True)
    else:
        print_rows(make_point_rows(experiment_plan), style)


def _read_edited_workbook(workbook: Path, experiment: str | None, out: Path | None) -> None:
    """Write the experiment of an edited workbook to a new file."""
    from commodel.files.atomic import write_text
    from commodel.plan import editable_matrix
    from commodel.plan.planning import make_plan
    from commodel.reports.received_workbooks import open_received, read_sheet_rows

    if experiment is not None or out is None:
        raise UserError("--from needs -o FILE.yaml and takes no EXPERIMENT")
    if out.exists():
        raise UserError("exists already; name another file, or remove it", file=out)
    with open_received(workbook) as book:
        sheets, max_rows = {}, editable_matrix.MAX_ROWS + editable_matrix.SPARE_ROWS + editable_matrix.HEADER_ROWS
        widths = {editable_matrix.MATRIX_SHEET: len(editable_matrix.COLUMNS), editable_matrix.EXPERIMENT_SHEET: 1}
        for name, width in widths.items():
            if name not in book.sheetnames:
                raise UserError(f"found no sheet {name}, wanted a workbook of plan --format xlsx", file=workbook)
            sheets[name] = list(read_sheet_rows(book[name], max_rows, width, workbook))
    write_text(out, editable_matrix.convert_to_text(sheets, workbook, Path.cwd()) + "\n")
    try:
        experiment_plan = make_plan(str(out), Path.cwd())
    except UserError:
        out.unlink()
        raise
    click.echo(f"{out}: {len(experiment_plan.points)} points, including those of the MPI default")
