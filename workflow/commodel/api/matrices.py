"""Predictions of a whole matrix: every point of an experiment under every parameter set, in a table on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from commodel.errors import UserError
from commodel.files.streamed_tables import make_arrow_schema, make_piece, write_stream
from commodel.files.tables import MATRIX_PREDICTIONS
from commodel.models.parameter_sets import describe_changes, read_set, replace_by_hand
from commodel.parameters import ParameterSet
from commodel.patterns.points import PlatformResources
from commodel.plan.config import load_experiment
from commodel.plan.planning import load_resources, use_received_files
from commodel.plan.prediction_list import list_shapes, select_part
from commodel.predictions.predictions import predict_shapes

Part = tuple[int, int]  # I of N


def read_named_sets(files: Sequence[Path], settings: Sequence[str]) -> dict[str, ParameterSet]:
    """Return each parameter set by the name that the column `parameters` has: its file, and the values by hand."""
    sets = replace_by_hand([read_set(file) for file in files], settings)
    return {
        f"{file}, by hand: {describe_changes(parameters)}" if describe_changes(parameters) else str(file): parameters
        for file, parameters in zip(files, sets, strict=True)
    }


def write_matrix_predictions(
    experiment: Path,
    sets: dict[str, ParameterSet],
    out: Path,
    platform: str | None,
    draws: int | None,
    part: Part | None,
    watch: Callable[[Sequence, str], Iterable],
) -> tuple[int, int]:
    """Write a row for each point and set, shape by shape, and return the numbers of rows and points.

    Memory does not grow with the matrix. `watch` passes the shapes on and may show how many of them are done.
    """
    resources = load_resources(platform) if platform else PlatformResources.unlimited()
    types = make_arrow_schema(MATRIX_PREDICTIONS)
    with use_received_files(experiment):
        shapes = list_shapes(load_experiment(experiment), resources)
        selected = select_part(shapes, *part) if part else shapes
        predictions = predict_shapes(watch(selected, "patterns predicted"), sets, draws)
        rows = write_stream(out, types, (make_piece(columns, types) for columns in predictions))
    return rows, sum(len(shape.sizes) for shape in selected)


def parse_part(text: str) -> Part:
    """Return I and N of I/N, such as 3/16."""
    part, slash, parts = text.partition("/")
    if not (slash and part.isascii() and parts.isascii() and part.isdigit() and parts.isdigit() and len(parts) < 6):
        raise UserError(f"--part: found '{text}', wanted I/N, such as 3/16")
    if not 1 <= int(part) <= int(parts):
        raise UserError(f"--part: found '{text}', wanted 1/{parts} to {parts}/{parts}")
    return int(part), int(parts)
