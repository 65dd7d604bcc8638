"""What `commodel fit --data-sheet` writes."""

from collections.abc import Sequence
from pathlib import Path

import click

from commodel.errors import UserError
from commodel.files.sets import write_parameters
from commodel.fit.sheets import Costs, of_sheets
from commodel.parameters import ParameterSet
from commodel.plan.config import find, load_platform


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
