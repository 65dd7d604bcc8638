"""Exports from Python: `commodel.export("extrap", …)` and `commodel.export("simgrid", …)`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from commodel.api.exports import Exported, read_set
from commodel.errors import UserError
from commodel.units import parse_count
from commodel_formats import extrap, simgrid

if TYPE_CHECKING:
    from commodel.api.predictions import Source


def export_extrap(table: str | Path, out: Path | None = None, *, style: str = "text") -> Exported:
    """Write measurements for Extra-P; one file for each set of points."""
    if out is None:
        raise UserError("export extrap: out is missing, wanted a file")
    regions = extrap.group_times(extrap.read_measurements(Path(table)), Path(table))
    return Exported.of_files("extrap", str(table), extrap.write_files(regions, style, out))


def export_simgrid(parameters: Source, out: Path | None = None, *, nodes: int | str) -> Exported:
    """Write a simulated platform and its XML from parameters of LogGP or Hockney."""
    if out is None:
        raise UserError("export simgrid: out is missing, wanted a file .yaml")
    fitted = read_set(parameters)
    note = simgrid.write_platform(fitted, parse_count(nodes, 2), out)
    return Exported.of_files(
        "simgrid", fitted.source, [out, out.with_suffix(".xml")], [note] if note else []
    )
