"""Parts of `commodel fit`: models fitted to a table of measured collectives, their errors on held-out points (one model
in detail, or several side by side), resumption of a fit that was stopped, and `--data-sheet`."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
import pandas as pd

from commodel import sources
from commodel.cli._output import show, waiting
from commodel.compare.baselines import choices, judged_baselines
from commodel.compare.held_out import errors, fit_seen, judged, split
from commodel.errors import UserError
from commodel.files.atomic import MAX_FILE
from commodel.files.parameter_sets import read_parameters, write_parameters
from commodel.files.safe_reading import read_bytes
from commodel.fit.data_sheets import Costs, of_sheets
from commodel.fit.measured_tables import read_points
from commodel.fit.settings import fit_in_settings, in_setting, paces_in_words, reference_of
from commodel.fit.table_fits import from_collectives, remarks
from commodel.models.families import family
from commodel.parameters import ParameterSet
from commodel.plan.config import find, load_platform

FITTED_TO = "fitted_to"


def digest_of(table: Path, family: str, *how: str | None) -> str:
    """Of the table and of all that a set fitted to it rests on: how, the family's code, and what algorithms send."""
    hashed = hashlib.sha256(read_bytes(table, MAX_FILE, "a smaller table"))
    for word in how:
        hashed.update(f"\0{word or ''}".encode())
    named = {Path(path) for path in sources.sources("fit.settings", f"models.families.{family}")}
    for path in sorted(named.union((sources.HERE / "patterns").rglob("*.py"))):  # a registry finds these by the folder
        hashed.update(b"\0%b\0%b" % (path.relative_to(sources.HERE).as_posix().encode(), path.read_bytes()))
    return hashed.hexdigest()


def finished(path: Path, digest: str) -> ParameterSet | None:
    """The set that lies there, if it is of this very fit."""
    if not path.is_file():
        return None
    try:
        parameters = read_parameters(path)
    except UserError:  # whatever it is, it is not ours
        return None
    return parameters if parameters.provenance.get(FITTED_TO) == digest else None


def signed(parameters: ParameterSet, digest: str) -> ParameterSet:
    return replace(parameters, provenance={**parameters.provenance, FITTED_TO: digest})


FIGURES = {
    "points": "points",
    "points_reached": "points ok",
    "mu_reached": "μ where ok",
    "mu_mean": "mean μ",
    "mu_median": "median μ",
    "bias": "bias",
    "inside_share": "inside",
}
FULL = (*FIGURES, "mu_worst", "worst")
CHOSEN = ("jobs", "fastest", "over_fastest", "over_fastest_worst")  # of choices: time over that of the fastest


def show_errors(rows: pd.DataFrame, style: str, baselines: pd.DataFrame, choices: pd.DataFrame) -> None:
    """A row for each operation and choice, and one for all; of several families a row each, unless it is for
    programs. What knows no model stands apart."""
    if style != "table":
        by = ["family", "operation", "kind", "choice"]
        plain = [
            _plain(row, baseline) for table, baseline in ((rows, False), (baselines, True)) for row in _rows(table, by)
        ]
        plain += [_plain(row, row["baseline"]) for row in choices.to_dict("records")]
        show(plain, style)
        return
    _show_families(rows, style)
    if len(judged := baselines.dropna(subset=["mu"])):
        click.echo("\nBaselines, which know no model of communication:")
        show([_without_range(row) for row in _side_by_side(judged)], style)
    if len(choices):
        click.echo("\nChoices among what was held out, beside the fastest:")
        ordered = choices.sort_values(["baseline", "over_fastest"], kind="stable")
        show([_choice(row) for row in ordered.to_dict("records")], style)


def _show_families(rows: pd.DataFrame, style: str) -> None:
    if rows["family"].nunique() == 1:
        show([_detailed(row) for by in (["operation", "kind", "choice"], ["family"]) for row in _rows(rows, by)], style)
    else:
        show(_side_by_side(rows), style)


def _plain(row: dict, baseline: bool) -> dict:
    """All rows for programs have all columns: who is off, or chooses, at what, and how far; else None."""
    what = {name: row.get(name, "") for name in ("operation", "kind", "choice")}
    figures = {name: row.get(name) for name in (*FULL, *CHOSEN)}
    finite = {
        name: None if isinstance(figure, float) and not math.isfinite(figure) else figure
        for name, figure in figures.items()
    }
    return {"family": "" if baseline else row["family"], "baseline": row["family"] if baseline else ""} | what | finite


def _rows(rows: pd.DataFrame, by: list[str]) -> list[dict]:
    return errors(rows, by).to_dict("records")


def _detailed(row: dict) -> dict:
    named = {"operation": row.get("operation", "all"), "kind": row.get("kind", ""), "choice": row.get("choice", "")}
    return named | _figures(row) | {"worst": f"{row['mu_worst']:.3g} at {row['worst']}"}


def _side_by_side(rows: pd.DataFrame) -> list[dict]:
    """All held-out points, then the median μ of each operation; the family that is nearest first."""
    by_operation = errors(rows, ["family", "operation"]).set_index(["family", "operation"])["mu_median"]
    operations = list(dict.fromkeys(rows["operation"]))
    return [
        {"family": row["family"], **_figures(row)}
        | {operation: _digits(by_operation.get((row["family"], operation), math.nan), 3) for operation in operations}
        for row in errors(rows, ["family"]).sort_values("mu_median").to_dict("records")
    ]


def _without_range(row: dict) -> dict:
    """A baseline has no interval, and no range of its own."""
    shown = {name: value for name, value in row.items() if name not in ("points ok", "μ where ok", "inside")}
    return {"baseline": shown.pop("family"), **shown}


def _choice(row: dict) -> dict:
    by = f"baseline: {row['family']}" if row["baseline"] else row["family"]
    times = {"time / fastest": f"{row['over_fastest']:.4g}", "worst": f"{row['over_fastest_worst']:.4g}"}
    return {"chosen by": by, "jobs": row["jobs"], "fastest": f"{100 * row['fastest']:.0f} %", **times}


def _figures(row: dict) -> dict:
    """Numbers as text of three digits, counts as they are."""
    texts = {title: row[name] for name, title in FIGURES.items()}
    percent = {"bias": f"{100 * row['bias']:+.3g} %", "inside": f"{100 * row['inside_share']:.0f} %"}
    return texts | {title: _digits(texts[title], 4) for title in texts if "μ" in title} | percent


def _digits(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}g}"


def fit_table(
    table: Path, families: tuple[str, ...], where: str | None, setting: str | None, out: Path | None, style: str
) -> None:
    """Each family's set into the file, or where there are several into a folder; the errors on the screen."""
    names = from_collectives() if "all" in families else [family(name).name for name in dict.fromkeys(families)]
    if len(names) > 1 and out and out.is_file():
        raise UserError(f"found a file, wanted a folder for the sets of {len(names)} families", file=out)
    with waiting(f"reading {table.name}"):
        measured = read_points(table)
    if measured.unpriced:
        click.echo(f"commodel: left out {measured.unpriced} rows of algorithm 'library': no price", err=True)
    if measured.streams:
        click.echo(f"commodel: left out {measured.streams} rows of several waves: one wave is fitted", err=True)
    parts = split(measured, where) if where else None
    seen = parts.seen if parts else measured
    reference = reference_of(seen, setting)
    fit = partial(fit_seen, parts) if parts else partial(fit_in_settings, measured)
    rows = []
    for number, name in enumerate(names, 1):
        digest = digest_of(table, name, where, reference)
        try:
            if out and len(names) > 1 and (fitted := finished(out / f"{name}.yaml", digest)):
                kept = "fitted to this table before, kept; remove the set to fit again"
                click.echo(f"commodel: {name}: {kept}", err=True)
            else:
                title = f"{name}, family {number} of {len(names)}" if len(names) > 1 else name
                with waiting(f"fitting {title}", aloud=True):
                    fitted = fit(name, table.name, setting)
        except UserError as error:
            if len(names) == 1:
                raise
            click.echo(f"commodel: {error.message}", err=True)
            continue
        if out and FITTED_TO not in fitted.provenance:
            write_parameters(out / f"{name}.yaml" if len(names) > 1 else out, signed(fitted, digest))
        for remark in (*paces_in_words(fitted), *remarks(fitted, in_setting(seen, reference), table.name)):
            click.echo(f"commodel: {name}: {remark}", err=True)
        if parts:
            with waiting(f"pricing what {name} has not seen"):
                rows.append(judged(fitted, parts.unseen))
    if rows:
        together = pd.concat(rows, ignore_index=True)
        baselines = judged_baselines(parts, reference)
        show_errors(together, style, baselines, choices(pd.concat([together, baselines]), parts.seen, parts.unseen))


def of_platform(family: str, file: Path) -> ParameterSet:
    """What a platform's file says of its network, as a family's parameters."""
    loaded = load_platform(file)
    if (sheet := loaded.data_sheet) is None:
        raise UserError("found no section data_sheet, wanted the links of its network", file=file)
    alone, shared = sheet.costs(loaded.hierarchy)
    return of_sheets(family, file.stem, Costs(loaded.hierarchy, alone, shared, sheet.overhead or 0.0, sheet.eager))


def write_sheets(families: Sequence[str], platform: str | None, out: Path | None) -> None:
    if len(families) != 1 or not platform or out is None:
        raise UserError("--data-sheet wants one --family, --platform and --out")
    parameters = of_platform(families[0], find("platform", platform))
    write_parameters(out, parameters)
    click.echo(f"{out}: {parameters.source}")
