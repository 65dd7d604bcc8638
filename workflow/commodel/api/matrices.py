"""Predictions of a whole matrix: every point of an experiment under every parameter set, in a table on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from commodel.files.streamed_tables import make_arrow_schema, make_piece, write_stream
from commodel.files.tables import MATRIX_PREDICTIONS
from commodel.models.parameter_sets import describe_changes, read_set, replace_by_hand
from commodel.parameters import ParameterSet, describe_origins
from commodel.patterns.build import Shape
from commodel.patterns.points import PlatformResources, find_ranks
from commodel.plan.config import load_experiment
from commodel.plan.matrix import list_combinations
from commodel.plan.planning import load_resources, use_received_files
from commodel.plan.prediction_list import list_shapes
from commodel.predictions.predictions import predict_shapes


def read_named_sets(files: Sequence[Path], settings: Sequence[str]) -> dict[str, ParameterSet]:
    """Return each parameter set by the name that the column `parameters` has: its file, and the values by hand."""
    sets = replace_by_hand([read_set(file) for file in files], settings)
    return {
        f"{file}, by hand: {describe_changes(parameters)}" if describe_changes(parameters) else str(file): parameters
        for file, parameters in zip(files, sets, strict=True)
    }


@dataclass(frozen=True)
class MatrixPlacement:
    """Where the ranks of a matrix are placed, and notes about it.

    With `--platform`, all entries are placed on that platform. Without, each entry is placed on its own platform if a
    parameter set is of it, and predicted by the sets of that platform and those of none. The other entries are left
    out. If no set is of a platform of the matrix, all entries are predicted without a platform.
    """

    resources: PlatformResources | dict[str, PlatformResources]  # by platform of the entry
    notes: list[str]

    def select_sets(self, sets: Mapping[str, ParameterSet], shape: Shape) -> list[str]:
        if not isinstance(self.resources, dict):
            return list(sets)
        return [name for name, entry in sets.items() if entry.platform in ("", shape.point.platform)]


def place_matrix(path: Path, sets: Mapping[str, ParameterSet], platform: str | None) -> MatrixPlacement:
    """Return where the ranks of an experiment's matrix are placed."""
    if platform:
        resources = load_resources(platform)
        return MatrixPlacement(resources, describe_origins(list(sets.values()), resources.name))
    with use_received_files(path):
        experiment = load_experiment(path)
        blocks: dict[str, list[Mapping[str, Any]]] = {}
        for block in experiment.matrix:
            combinations = blocks.setdefault(experiment.block_platform(block), [])
            combinations += (combination for combination, _ in list_combinations(block))
        fitted = {entry.platform for entry in sets.values()}
        if not fitted.intersection(blocks):
            names = [name for name in dict.fromkeys(entry.platform for entry in sets.values()) if name]
            note = f"OF ANOTHER PLATFORM: no parameter set is of {' or '.join(blocks)}, the platform of the matrix"
            note += f"; the sets are of {', '.join(names)}" if names else ""
            note += "; ranks are placed as without a platform, one per node unless the matrix has a layout"
            return MatrixPlacement(PlatformResources.unlimited(), [note] if any(blocks) else [])
        placed = {name: _load_resources_of_entry(name, path) for name in blocks if name in fitted}
        notes = [
            f"left out: {len(blocks[name])} points of platform {name}, since no parameter set is of it; "
            "--platform NAME places all points on one platform"
            for name in blocks
            if name not in placed
        ]
        for name, resources in placed.items():
            notes += resources.describe_extension(max(map(find_ranks, blocks[name]), default=0))
    return MatrixPlacement(placed, notes)


def _load_resources_of_entry(name: str, experiment: Path) -> PlatformResources:
    """Return a platform's resources. The experiment of a results folder has the platform files beside it."""
    archived = experiment.parent.parent / "platforms" / f"{name}.yaml"
    return load_resources(str(archived) if archived.is_file() else name)


def write_matrix_predictions(
    experiment: Path,
    sets: dict[str, ParameterSet],
    out: Path,
    placement: MatrixPlacement,
    draws: int | None,
    watch: Callable[[Sequence[Any], str], Iterable[Any]],
) -> tuple[int, int]:
    """Write a row for each point and set, shape by shape, and return the numbers of rows and points.

    Memory does not grow with the matrix. `watch` passes the shapes on and may show how many of them are done.
    """
    types = make_arrow_schema(MATRIX_PREDICTIONS)
    with use_received_files(experiment):
        shapes = list_shapes(load_experiment(experiment), placement.resources)
        watched = watch(shapes, "patterns predicted")
        predictions = predict_shapes(watched, sets, draws, partial(placement.select_sets, sets))
        rows = write_stream(out, types, (make_piece(columns, types) for columns in predictions))
    return rows, sum(len(shape.sizes) for shape in shapes)
