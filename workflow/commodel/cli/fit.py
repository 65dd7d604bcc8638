"""The verb that fits models: to probes of a platform, to measured collectives, or to a data sheet."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commodel.cli._help import VerbGroup, make_option_group
from commodel.cli._options import PATH, STATISTIC, out_option, style_option
from commodel.cli._output import copy_output_of_model, print_answer, print_rows, show_waiting
from commodel.files.text_tables import format_table

if TYPE_CHECKING:
    import pandas as pd

    from commodel.parameters import ParameterSet


FAMILIES = click.option("--family", "families", multiple=True, required=True, help="Model to fit; repeated.")


@click.group(
    cls=VerbGroup,
    examples=(
        'commodel fit table examples/collectives.csv --family loggp --hold-out "ranks > 16"',
        "commodel fit sheet --family shares --platform fat-tree-64 --out shares.yaml",
    ),
)
def fit() -> None:
    pass


@fit.command(
    name="probes",
    examples=(
        "commodel fit probes results/sample/plan.json --platform fast-ethernet-32 --family loggp -o loggp.yaml",
        (
            "commodel fit probes results/sample/plan.json --in results/sample/observations.csv "
            "--platform fast-ethernet-32 --family loggp --family hockney -o sets"
        ),
    ),
    arguments={"PLAN": "Plan of an experiment, results/NAME/plan.json."},
)
@click.argument("plan_file", metavar="PLAN", type=PATH)
@make_option_group(
    "Probes",
    click.option("--in", "observations", type=PATH, help="Table of samples.  [default: observations.csv beside PLAN]"),
    click.option("--platform", required=True, help="Platform of the probes."),
)
@make_option_group("Models", FAMILIES)
@make_option_group(
    "Output", out_option("Parameter set (YAML) to write; a folder, also for several models.", required=True)
)
def fit_probes(plan_file: Path, observations: Path | None, platform: str, families: tuple[str, ...], out: Path) -> None:
    """Fit models to the probes of a platform, as a run does."""
    from commodel.api.stages import FitStage
    from commodel.files.parameter_sets import write_parameters
    from commodel.files.safe_paths import SafePath
    from commodel.results.stage_files import StageFiles

    observations = observations or plan_file.with_name("observations.csv")
    plan, samples, target = (SafePath.of_argument(path, plan_file.parent) for path in (plan_file, observations, out))
    is_file = len(families) == 1 and not out.is_dir()
    stage = FitStage(plan, samples, platform, StageFiles(target.parent if is_file else target))
    for family in families:
        with copy_output_of_model(f"fit.{platform}.{family}"), show_waiting(f"fitting {family}"):
            parameters = stage.make_set(family) if is_file else stage.fit(family)
            if is_file and parameters:
                write_parameters(target, parameters)
            if parameters is None:
                click.echo(f"{family}: its inputs have not changed, so the set in {out} is kept", err=True)
            elif not parameters.values:
                reason = next(iter(parameters.missing.values()))
                click.echo(f"commodel: no fit of {family} on platform '{platform}': {reason}", err=True)
    stage.files.publish()


@fit.command(
    name="table",
    examples=(
        'commodel fit table examples/collectives.csv --family loggp --hold-out "ranks > 16"',
        "commodel fit table examples/collectives.csv --family hockney --family loggp -o sets",
    ),
    arguments={"TABLE…": "CSV of operation, algorithm or topology, ranks, bytes, seconds; also several tables."},
)
@click.argument("tables", metavar="TABLE…", nargs=-1, required=True, type=PATH)
@make_option_group(
    "Models",
    click.option("--family", "families", multiple=True, required=True, help="Model to fit; repeated, or all."),
)
@make_option_group(
    "Points",
    click.option(
        "--hold-out", "where", metavar="EXPRESSION", help="Hold out points for which this is true, to measure errors."
    ),
    click.option("--setting", help="Fit this setting; others get factors.  [default: the one with most points]"),
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
    families: tuple[str, ...],
    where: str | None,
    setting: str | None,
    statistic: str | None,
    out: Path | None,
    style: str,
) -> None:
    """Fit models to measured collectives."""
    from commodel.api.fits import fit_collectives, join_names
    from commodel.records import Statistic

    wanted = Statistic(statistic) if statistic else None
    with show_waiting(f"fitting to {join_names(tables)}", plain_lines=True):
        evaluation = fit_collectives(
            tables, families, where, setting, out, lambda text: click.echo(f"commodel: {text}", err=True), wanted
        )
    if len(evaluation.rows):
        show_errors(evaluation.rows, style, evaluation.baselines, evaluation.choices)
    elif out is None:
        rows = [row for parameters in evaluation.sets for row in _list_values(parameters)]
        print_rows(rows, style)


def _list_values(parameters: ParameterSet) -> list[dict[str, Any]]:
    """Return a row for each fitted value, with its 95 % interval."""
    return [
        {
            "model": parameters.family,
            "parameter": name,
            "value": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "unit": estimate.unit,
        }
        for name, estimate in parameters.values.items()
    ]


@fit.command(
    name="sheet",
    examples=(
        "commodel fit sheet --family shares --platform fat-tree-64 --out shares.yaml",
        "commodel fit sheet --family loggp --platform fat-tree-64 --out loggp.yaml",
    ),
)
@make_option_group(
    "Model and platform",
    click.option("--family", required=True, help="Model whose values to derive."),
    click.option("--platform", required=True, help="Platform whose file describes its network."),
)
@make_option_group("Output", out_option("Parameter set (YAML) to write.", required=True))
def fit_sheet(family: str, platform: str, out: Path) -> None:
    """Derive a model's values from the data sheet of a platform, without measuring."""
    from commodel.api.fits import read_data_sheet
    from commodel.files.parameter_sets import write_parameters
    from commodel.plan.config import find_config_file

    parameters = read_data_sheet(family, find_config_file("platform", platform))
    write_parameters(out, parameters)
    click.echo(f"{out}: {parameters.source}")


ERROR_TITLES = {
    "points": "points",
    "points_valid": "valid",
    "mu_valid": "μ of valid",
    "mu_mean": "mean μ",
    "mu_median": "median μ",
    "bias": "bias [%]",
    "covered_share": "covered [%]",
}
POINT_COLUMNS = ["operation", "kind", "alternative"]
ERROR_COLUMNS = (*ERROR_TITLES, "mu_worst", "worst")
# Of choices: time over that of the fastest.
CHOICE_COLUMNS = ("workloads", "fastest", "over_fastest", "over_fastest_worst")


def show_errors(rows: pd.DataFrame, style: str, baselines: pd.DataFrame, choices: pd.DataFrame) -> None:
    """Print the errors: a row for each operation and alternative, and one for all. Several models have a row each,
    unless the format is for programs. Baselines have a table of their own."""
    if style != "table":
        records = [
            _make_plain_row(row, baseline)
            for part, baseline in ((rows, False), (baselines, True))
            for row in _summarize_errors(part, ["family", *POINT_COLUMNS])
        ]
        records += [_make_plain_row(row, row["baseline"]) for row in choices.to_dict("records")]
        print_rows(records, style)
        return
    best = min(_summarize_errors(rows, ["family"]), key=lambda row: row["mu_median"])
    count = rows["family"].nunique()
    answer = f"{f'Best of {count} models: ' if count > 1 else ''}{best['family']}, median error μ "
    answer += f"{best['mu_median']:.4g} and mean {best['mu_mean']:.4g} at {best['points']} held-out points."
    if count == 1:
        summaries = _summarize_errors(rows, POINT_COLUMNS) + _summarize_errors(rows, ["family"])
        parts = [format_table([_make_detailed_row(row) for row in summaries])]
    else:
        parts = [format_table(_make_model_rows(rows))]
    if len(evaluated := baselines.dropna(subset=["mu"])):
        lines = [_drop_range(row) for row in _make_model_rows(evaluated)]
        parts.append("Baselines:\n" + format_table(lines))
    if len(choices):
        ordered = choices.sort_values(["baseline", "over_fastest"], kind="stable").to_dict("records")
        choice_table = format_table([_make_choice_row(row) for row in ordered])
        parts.append("Alternatives chosen among held-out points, and their time over the fastest:\n" + choice_table)
    print_answer(answer, "\n\n".join(parts), NOTES)


NOTES = (
    "Error μ: measured over predicted time or its inverse, whichever is above 1.",
    "Valid: points whose prediction has no flag, such as `extrapolated`. Covered: by the 95 % interval.",
)


def _make_plain_row(row: dict, baseline: bool) -> dict:
    """Return the row for programs with all columns: model or baseline, its prediction or choice, and its error."""
    plain_row = {"family": "", "baseline": ""} | {"baseline" if baseline else "family": row["family"]}
    plain_row |= {name: row.get(name, "") for name in POINT_COLUMNS}
    for name in (*ERROR_COLUMNS, *CHOICE_COLUMNS):
        figure = row.get(name)
        plain_row[name] = None if isinstance(figure, float) and not math.isfinite(figure) else figure
    return plain_row


def _summarize_errors(rows: pd.DataFrame, group_columns: list[str]) -> list[dict]:
    from commodel.compare.held_out import tabulate_errors

    return tabulate_errors(rows, group_columns).to_dict("records")


def _make_detailed_row(row: dict) -> dict:
    named = {
        "operation": row.get("operation", "all"),
        "kind": row.get("kind", ""),
        "alternative": row.get("alternative", ""),
    }
    return named | _format_errors(row) | {"worst": f"{row['mu_worst']:.3g} at {row['worst']}"}


def _make_model_rows(rows: pd.DataFrame) -> list[dict]:
    """Return a row for each model with its errors at all held-out points and its median μ of each operation; the lowest
    median first."""
    by_operation = {
        (row["family"], row["operation"]): row["mu_median"] for row in _summarize_errors(rows, ["family", "operation"])
    }
    model_rows = []
    for row in sorted(_summarize_errors(rows, ["family"]), key=lambda row: row["mu_median"]):
        medians = {name: by_operation.get((row["family"], name), math.nan) for name in dict.fromkeys(rows["operation"])}
        texts = {operation: _format_digits(median, 3) for operation, median in medians.items()}
        model_rows.append({"model": row["family"], **_format_errors(row), **texts})
    return model_rows


def _drop_range(row: dict) -> dict:
    """Return the row of a baseline, which has neither an interval nor a range of validity."""
    shown = {name: value for name, value in row.items() if name not in ("valid", "μ of valid", "covered [%]")}
    return {"baseline": shown.pop("model"), **shown}


def _make_choice_row(row: dict) -> dict:
    chooser = f"baseline: {row['family']}" if row["baseline"] else row["family"]
    times = {"time / fastest": f"{row['over_fastest']:.4g}", "worst": f"{row['over_fastest_worst']:.4g}"}
    return {"chosen by": chooser, "workloads": row["workloads"], "fastest [%]": round(100 * row["fastest"]), **times}


def _format_errors(row: dict) -> dict:
    """Return errors as texts by their titles: μ with four digits, bias and coverage in %; counts are unchanged."""
    texts = {title: row[name] for name, title in ERROR_TITLES.items()}
    percent = {"bias [%]": f"{100 * row['bias']:+.3g}", "covered [%]": f"{100 * row['covered_share']:.0f}"}
    return texts | {title: _format_digits(texts[title], 4) for title in texts if "μ" in title} | percent


def _format_digits(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}g}"
