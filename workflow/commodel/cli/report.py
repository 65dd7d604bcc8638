"""commodel report: the workbook and the page."""

import json
import re
from pathlib import Path

import click

from commodel import collect, compare, distributions
from commodel.families import family, meanings
from commodel.plan import load_plan
from commodel.records import Plan
from commodel.tables import read_json, read_parameters, read_table


@click.command()
@click.option("--in", "folder", type=click.Path(path_type=Path), required=True, help="results/<experiment>.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for the report.")
def report(folder: Path, out: Path) -> None:
    """Write the Excel workbook and the HTML page from a comparison."""
    from commodel.report import build, write_html, write_xlsx  # Bokeh takes a second to load: not for --help

    plan = load_plan(folder / "plan.json")
    made = build(
        read_table(folder / "comparison.csv", compare.TEXT),
        [
            read_parameters(folder / "fitted" / platform / f"{name}.yaml")
            for platform in plan.platforms
            for name in plan.families
        ],
        read_table(folder / "summary.csv", collect.TEXT),
        _provenance(plan, folder / "raw"),
        experiment=plan.experiment,
        title=plan.title,
        distributions=read_table(folder / "distributions.csv", distributions.TEXT),
        definitions=meanings(plan.families),
        families={name: _about(name) for name in plan.families},
    )
    out.mkdir(parents=True, exist_ok=True)
    write_xlsx(made, out / f"{plan.experiment}.xlsx")
    write_html(made, out / "index.html")
    click.echo(out / f"{plan.experiment}.xlsx")
    click.echo(out / "index.html")


def _about(name: str) -> dict[str, str]:
    return {key: getattr(family(name), key) for key in ("title", "citation", "equation", "ignores")}


def _provenance(plan: Plan, raw: Path) -> dict[str, dict]:
    """Of each batch: what the driver wrote, and what its programs wrote about themselves."""
    found = {}
    for batch in plan.batches:
        about = read_json(raw / batch.name / "provenance.json")
        programs = [read_json(path) for path in sorted((raw / batch.name).glob("*-*r-*.json"))]
        for key in ("mpi", "compiler", "flags", "clock", "clock_resolution", "clock_uncertainty"):
            about[key] = ", ".join(sorted({str(program[key]) for program in programs}))
        about["compiler"] = re.sub(
            r"\S*/", "", about["compiler"]
        )  # reports travel: whose folder it was is nobody's matter
        about["hosts"] = sorted({host for program in programs for host in program["hosts"]})
        about["measure"] = json.dumps(about["measure"], sort_keys=True)
        found[batch.name] = about
    return found
