"""The MPI default at the measured points of a comparison, and its prediction from these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from commodel.compare.comparison import is_library_default
from commodel.errors import UserError
from commodel.files.results_folder import Results
from commodel.files.tables import COMPARISON, add_default_columns
from commodel.fits.mpi_default_fits import fit_default
from commodel.predictions.mpi_default import MpiDefault
from commodel.records import LIBRARY, Point
from commodel.results.provenance import read_program


def fit_measured_defaults(measured: pd.DataFrame, operation: str) -> MpiDefault | None:
    """Return the prediction of the MPI default for an operation, from rows of a comparison with
    measured times; None if there are too few. For a tree, the MPI default is the collective of its
    front end and its leaves."""
    rows = add_default_columns(measured, COMPARISON)
    is_used = is_library_default(rows) & rows["operation"].eq(operation)
    is_used &= rows["waves"].eq(1) & (rows["measured"] > 0)
    rows = rows[is_used].drop_duplicates("point")
    points = [_make_point(row) for row in rows.to_dict("records")]
    try:
        return MpiDefault.of_set(fit_default(points, rows["measured"].tolist(), "the results"))
    except UserError:
        return None


def read_library(results: Results, rows: pd.DataFrame) -> str:
    """Return the version text of the MPI library that measured the MPI default in a run; empty if it
    is unknown, or if there are several."""
    texts: set[str] = set()
    batches = rows.loc[is_library_default(rows), "batch"].unique().tolist()
    for batch in filter(None, batches):
        texts.update(read_program(path).mpi for path in results.programs(batch))
    return texts.pop() if len(texts) == 1 else ""


def _make_point(row: Mapping[str, Any]) -> Point:
    ranks = int(row["ranks"])
    nodes = int(row["nodes"]) if row["nodes"] > 0 else ranks
    return Point(
        platform="",
        operation=row["operation"],
        algorithm=LIBRARY,
        topology="",
        layout=row["layout"],
        ranks=ranks,
        bytes=int(row["bytes"]),
        nodes=nodes,
        per_node=-(-ranks // nodes),
    )
