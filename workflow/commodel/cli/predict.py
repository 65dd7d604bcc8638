"""commodel predict: patterns; a matrix and the points of a plan by subcommands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import click

from commodel.cli._help import VerbWithModes, make_option_group
from commodel.cli._options import (
    EXPERIMENT_ARGUMENT,
    PATH,
    WORKBOOK_STYLES,
    choose_style,
    cores_option,
    experiment_option,
    out_option,
    params_option,
    pattern_options,
    platform_option,
    refuse_campaign,
    set_option,
    statistic_option,
    verbose_option,
    workbook_style_option,
)
from commodel.cli._output import (
    copy_output_of_model,
    count_progress,
    print_rows,
    print_stage,
    show_waiting,
)
from commodel.errors import UserError

REQUIRED_PARAMS = click.option(
    "--params",
    type=PATH,
    multiple=True,
    required=True,
    help="Parameter set (YAML) or workbook of a report; repeated.",
)
PLATFORM = make_option_group("Platform", platform_option)


@click.group(
    cls=VerbWithModes,
    examples=(
        (
            "commodel predict --params results/sample/validated/fast-ethernet-32/loggp.yaml "
            "--operation bcast --algorithm binomial --ranks 16 --bytes 8:64KiB:*8"
        ),
        "commodel predict --platform fast-ethernet-32 --operation bcast --ranks 16 --bytes 64KiB",
    ),
)
@pattern_options
@make_option_group("Predicted quantity", statistic_option)
@make_option_group(
    "Models",
    params_option,
    click.option("--model", help="Model, e.g. loggp.  [default: all of --params]"),
    set_option,
)
@make_option_group("Platform and results", platform_option, experiment_option)
@make_option_group(
    "Streams of a pattern",
    click.option(
        "--waves", help="Repetitions in a row, e.g. 50: predict the time between two of them."
    ),
    click.option(
        "--pipelined", is_flag=True, help="Predict the time between two waves of an endless stream."
    ),
)
@make_option_group(
    "Output",
    out_option("File to write.  [default: the screen]"),
    workbook_style_option,
    verbose_option,
)
def predict(
    params: tuple[Path, ...],
    model: str | None,
    settings: tuple[str, ...],
    platform: str | None,
    experiment: str | None,
    style: str | None,
    out: Path | None,
    verbose: bool,
    waves: str | None,
    pipelined: bool,
    statistic: str,
    **pattern,
) -> None:
    from commodel.api.predictions import NoSourceError, PredictedQuantity, predict_patterns

    style = choose_style(style, out, WORKBOOK_STYLES)
    quantity = PredictedQuantity.of(waves, pipelined, statistic)
    if not pattern["operation"]:
        raise UserError("give --operation NAME; `commodel show operations` lists them")
    if model and not (params or settings):
        raise UserError(f"give --params FILE{_suggest_set(platform)} or --set NAME=VALUE")
    try:
        with show_waiting("predicting", plain_lines=True):
            result = predict_patterns(
                pattern, params, model, settings, platform, experiment, quantity
            )
    except NoSourceError:
        advice = f"give --params FILE{_suggest_set(platform)} or --set NAME=VALUE"
        raise UserError("--set without --params needs --model" if settings else advice) from None
    if result.folders:
        click.echo(result.folders, err=True)
    if style == "table" and not out:
        click.echo(result.text(verbose))
        return
    if style == "xlsx" and out:
        result.to_excel(out)
    else:
        print_rows(result.rows, style, out)
    for line in result.origins:
        click.echo(line, err=True)


def _suggest_set(platform: str | None) -> str:
    """Return the end of a sentence that names a set of an earlier run, of that platform if one is
    given."""
    sets = sorted(Path("results").glob("*/validated/*/*.yaml"))
    nearest = [path for path in sets if platform in (None, path.parent.name)]
    return f", such as {nearest[0]}," if nearest else ""


@predict.command(
    name="plan",
    examples=(
        "commodel predict plan results/sample/plan.json --params loggp.yaml -o predicted.csv",
        (
            "commodel predict plan results/sample/plan.json --model loggp "
            "--params results/sample/fitted/fast-ethernet-32/loggp.yaml -o loggp.csv"
        ),
    ),
    arguments={"PLAN": "Plan of an experiment, results/NAME/plan.json."},
)
@click.argument("plan_file", metavar="PLAN", type=PATH)
@make_option_group(
    "Models",
    REQUIRED_PARAMS,
    click.option("--model", help="Predict by this model only."),
    set_option,
)
@make_option_group(
    "Output",
    out_option("Table to write, or a folder for a table of each model.", required=True),
    cores_option,
)
def predict_plan(
    plan_file: Path,
    params: tuple[Path, ...],
    model: str | None,
    settings: tuple[str, ...],
    out: Path,
    cores: int,
) -> None:
    """Predict the points of a plan, as a run does."""
    from commodel.api.plan_predictions import ModelFailedError, PlanRequest
    from commodel.parallel import use_processes

    if settings:
        refuse_campaign(out)
    request = PlanRequest.of(plan_file, params, model, settings)
    try:
        waiting = nullcontext() if out.is_dir() else show_waiting("predicting", plain_lines=True)
        with waiting, use_processes(cores):
            result = request.predict(out, _watch_model)
    except ModelFailedError as failure:  # its message is on the screen already
        raise SystemExit(failure.exit_code) from None
    print_stage(result)


@contextmanager
def _watch_model(name: str) -> Iterator[Callable[[str], None]]:
    """Copy the output of a model to its log, and print its error."""
    with (
        copy_output_of_model(f"predict.{name}") as show_note,
        show_waiting(f"predicting by {name}", plain_lines=True),
    ):
        try:
            yield show_note
        except UserError as error:
            error.show()
            raise


@predict.command(
    name="matrix",
    examples=(
        (
            "commodel predict matrix sample --out sample.csv "
            "--params results/sample/validated/fast-ethernet-32/loggp.yaml"
        ),
        "commodel predict matrix sample --params loggp.yaml --draws 0 --out sample.parquet",
    ),
    arguments=EXPERIMENT_ARGUMENT,
)
@click.argument("experiment")
@make_option_group("Models", REQUIRED_PARAMS, set_option)
@PLATFORM
@make_option_group(
    "Amount of work",
    click.option(
        "--draws",
        type=click.IntRange(0),
        help="Draws for an interval; 0 omits it, 20 times as fast.",
    ),
)
@make_option_group("Output", out_option("Table to write: .csv or .parquet.", required=True))
def predict_matrix(
    experiment: str,
    params: tuple[Path, ...],
    settings: tuple[str, ...],
    out: Path,
    platform: str | None,
    draws: int | None,
) -> None:
    """Predict every point of an experiment's matrix."""
    from commodel.api.matrices import predict_named_sets, read_named_sets
    from commodel.files.streamed_tables import check_suffix

    check_suffix(out)
    if settings:
        refuse_campaign(out)
    sets = read_named_sets(params, settings)
    result = predict_named_sets(experiment, sets, out, platform, draws, count_progress)
    click.echo(result.text(), err=True)
