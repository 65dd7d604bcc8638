"""The verb that fits models: to probes of a platform, to measured collectives, or to a data
sheet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from commodel.cli._help import VerbGroup, make_option_group
from commodel.cli._options import PATH, STATISTIC, cores_option, out_option, style_option
from commodel.cli._output import (
    copy_output_of_model,
    print_rows,
    print_stage,
    show_waiting,
)

FAMILIES = click.option(
    "--model", "models", multiple=True, required=True, help="Model to fit; repeated."
)


@click.group(
    cls=VerbGroup,
    examples=(
        'commodel fit table examples/collectives.csv --model loggp --hold-out "ranks > 16"',
        "commodel fit sheet --model shares --platform fat-tree-64 --out shares.yaml",
    ),
)
def fit() -> None:
    pass


@fit.command(
    name="probes",
    examples=(
        "commodel fit probes results/sample/plan.json --platform fast-ethernet-32 --model loggp -o loggp.yaml",
        (
            "commodel fit probes results/sample/plan.json --in results/sample/observations.csv "
            "--platform fast-ethernet-32 --model loggp --model hockney -o sets"
        ),
    ),
    arguments={"PLAN": "Plan of an experiment, results/NAME/plan.json."},
)
@click.argument("plan_file", metavar="PLAN", type=PATH)
@make_option_group(
    "Probes",
    click.option(
        "--in",
        "observations",
        type=PATH,
        help="Table of samples.  [default: observations.csv beside PLAN]",
    ),
    click.option("--platform", required=True, help="Platform of the probes."),
)
@make_option_group("Models", FAMILIES)
@make_option_group(
    "Output",
    out_option("Parameter set (YAML) to write; a folder, also for several models.", required=True),
    cores_option,
)
def fit_probes(
    plan_file: Path,
    observations: Path | None,
    platform: str,
    models: tuple[str, ...],
    out: Path,
    cores: int,
) -> None:
    """Fit models to the probes of a platform, as a run does."""
    from commodel.api.probe_fits import ProbeFitRequest
    from commodel.parallel import use_processes

    @contextmanager
    def watch(model: str) -> Iterator[Callable[[str], None]]:
        with (
            copy_output_of_model(f"fit.{platform}.{model}") as show_note,
            show_waiting(f"fitting {model}"),
        ):
            yield show_note

    request = ProbeFitRequest.of(plan_file, observations, platform, models)
    with use_processes(cores):
        result = request.fit(out, watch)
    print_stage(result)


@fit.command(
    name="table",
    examples=(
        'commodel fit table examples/collectives.csv --model loggp --hold-out "ranks > 16"',
        "commodel fit table examples/collectives.csv --model hockney --model loggp -o sets",
    ),
    arguments={
        "TABLE…": "CSV of operation, algorithm or topology, ranks, bytes, seconds; also several tables."
    },
)
@click.argument("tables", metavar="TABLE…", nargs=-1, required=True, type=PATH)
@make_option_group(
    "Models",
    click.option(
        "--model",
        "models",
        multiple=True,
        help="Model to fit; repeated, or all.  [default: library, if TABLE has nothing else]",
    ),
)
@make_option_group(
    "Points",
    click.option(
        "--hold-out",
        "where",
        metavar="EXPRESSION",
        help="Hold out points for which this is true, to measure errors.",
    ),
    click.option(
        "--setting",
        help="Fit this setting; others get factors.  [default: the one with most points]",
    ),
    click.option(
        "--statistic",
        type=STATISTIC,
        help="Which ranks times are of, if the table does not say it: 'rank mean' for OSU's.",
    ),
)
@make_option_group(
    "Output",
    out_option("Parameter set (YAML) to write; a folder for several.  [default: print the values]"),
    style_option,
)
def fit_table(
    tables: tuple[Path, ...],
    models: tuple[str, ...],
    where: str | None,
    setting: str | None,
    statistic: str | None,
    out: Path | None,
    style: str,
) -> None:
    """Fit models to measured collectives."""
    from commodel.api.fits import fit_tables, join_names

    def print_note(text: str) -> None:
        click.echo(f"commodel: {text}", err=True)

    with show_waiting(f"fitting to {join_names(tables)}", plain_lines=True):
        result = fit_tables(tables, models, where, setting, statistic, out, print_note)
    is_shown = not result.held_out.empty or out is None
    if style == "table" and is_shown:
        click.echo(result.text())
        return
    for remark in result.remarks:
        print_note(remark)
    if is_shown:
        print_rows(result.rows, style)
    elif style == "table":
        click.echo(f"{out}: {result.sentence}")


@fit.command(
    name="sheet",
    examples=(
        "commodel fit sheet --model shares --platform fat-tree-64 --out shares.yaml",
        "commodel fit sheet --model loggp --platform fat-tree-64 --out loggp.yaml",
    ),
)
@make_option_group(
    "Model and platform",
    click.option("--model", required=True, help="Model whose values to derive."),
    click.option("--platform", required=True, help="Platform whose file describes its network."),
)
@make_option_group("Output", out_option("Parameter set (YAML) to write.", required=True))
def fit_sheet(model: str, platform: str, out: Path) -> None:
    """Derive a model's values from the data sheet of a platform, without measuring."""
    from commodel.api.probe_fits import fit_sheet as derive_values

    click.echo(derive_values(model, platform, out).text())
