"""Predictions of a whole matrix: every point of an experiment under every parameter set, in a table
on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commodel.api.result import Answer, describe_sources
from commodel.files.streamed_tables import check_suffix, make_arrow_schema, make_piece, write_stream
from commodel.files.tables import MATRIX_PREDICTIONS
from commodel.models.parameter_sets import describe_changes, read_set, replace_by_hand
from commodel.parameters import ParameterSet, describe_origins
from commodel.patterns.build import Shape
from commodel.patterns.points import PlatformResources, find_ranks
from commodel.plan.config import find_config_file, load_experiment
from commodel.plan.matrix import list_combinations
from commodel.plan.planning import load_resources, use_received_files
from commodel.plan.prediction_list import list_shapes
from commodel.predictions.predictions import predict_shapes
from commodel.units import format_count

if TYPE_CHECKING:
    import pandas as pd


Watch = Callable[[Sequence[Any], str], Iterable[Any]]


@dataclass(frozen=True, eq=False, repr=False)
class MatrixPredictions(Answer):
    """Predictions of a matrix, in a file. `rows` has the file with its numbers of points and
    predictions."""

    file: Path

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """The predictions in the file: a row for each point and parameter set."""
        import pandas as pd  # the command line does not read them

        read = pd.read_parquet if self.file.suffix == ".parquet" else pd.read_csv
        return read(self.file)

    def text(self, verbose: bool = True) -> str:
        """Return the sentence and the notes."""
        return "\n".join([self.sentence, *self.notes])


def predict_matrix(
    experiment: str | Path,
    parameters: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    values: Mapping[str, str] | None = None,
    platform: str | None = None,
    draws: int | None = None,
) -> MatrixPredictions:
    """Predict every point of an experiment's matrix under sets of `parameters`, and write a table,
    .csv or .parquet. Printed, the result is what `commodel predict matrix` prints.

    `values` replace fitted ones, `platform` is that of the nodes. Without `draws` (0), predictions
    have no intervals.

    >>> predict_matrix("demo", "loggp.yaml", "demo.parquet").predictions  # doctest: +SKIP
    """
    files = [parameters] if isinstance(parameters, str | Path) else parameters
    settings = [f"{name}={value}" for name, value in (values or {}).items()]
    sets = read_named_sets([Path(file) for file in files], settings)
    return predict_named_sets(str(experiment), sets, Path(out), platform, draws)


def predict_named_sets(
    experiment: str,
    sets: dict[str, ParameterSet],
    out: Path,
    platform: str | None,
    draws: int | None,
    watch: Watch = lambda shapes, activity: shapes,
) -> MatrixPredictions:
    """Write the predictions of an experiment's matrix under named sets. `watch` passes the shapes
    on, and may show how many of them are done."""
    check_suffix(out)
    path = find_config_file("experiment", experiment)
    placement = place_matrix(path, sets, platform)
    rows, points = write_matrix_predictions(path, sets, out, placement, draws, watch)
    sentence = f"{out}: {format_count(rows, 'prediction')} of {format_count(points, 'point')}."
    notes = [f"{note}." for note in placement.notes]
    counts = [{"file": str(out), "points": points, "predictions": rows}]
    return MatrixPredictions(counts, sentence, notes, describe_sources(sets.values()), out)


def read_named_sets(files: Sequence[Path], settings: Sequence[str]) -> dict[str, ParameterSet]:
    """Return each parameter set by the name that the column `parameters` has: its file, and the
    values by hand."""
    sets = replace_by_hand([read_set(file) for file in files], settings)
    return {
        f"{file}, by hand: {describe_changes(parameters)}"
        if describe_changes(parameters)
        else str(file): parameters
        for file, parameters in zip(files, sets, strict=True)
    }


@dataclass(frozen=True)
class MatrixPlacement:
    """Where the ranks of a matrix are placed, and notes about it.

    With `--platform`, all entries are placed on that platform. Without, each entry is placed on its
    own platform if a parameter set is of it, and predicted by the sets of that platform and those
    of none. The other entries are left out. If no set is of a platform of the matrix, all entries
    are predicted without a platform.
    """

    resources: PlatformResources | dict[str, PlatformResources]  # by platform of the entry
    notes: list[str]

    def select_sets(self, sets: Mapping[str, ParameterSet], shape: Shape) -> list[str]:
        if not isinstance(self.resources, dict):
            return list(sets)
        return [
            name for name, fitted in sets.items() if fitted.platform in ("", shape.point.platform)
        ]


def place_matrix(
    path: Path, sets: Mapping[str, ParameterSet], platform: str | None
) -> MatrixPlacement:
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
        fitted_platforms = [fitted.platform for fitted in sets.values()]
        if not set(fitted_platforms).intersection(blocks):
            names = [name for name in dict.fromkeys(fitted_platforms) if name]
            note = (
                f"OF ANOTHER PLATFORM: no parameter set is of {' or '.join(blocks)}, the platform "
                "of the matrix"
            )
            note += f"; the sets are of {', '.join(names)}" if names else ""
            note += (
                "; ranks are placed as without a platform, one per node unless the matrix has a "
                "layout"
            )
            return MatrixPlacement(PlatformResources.unlimited(), [note] if any(blocks) else [])
        placed = {
            name: _load_resources_of_entry(name, path)
            for name in blocks
            if name in fitted_platforms
        }
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
    """Return a platform's resources. The experiment of a results folder has the platform files
    beside it."""
    archived = experiment.parent.parent / "platforms" / f"{name}.yaml"
    return load_resources(str(archived) if archived.is_file() else name)


def write_matrix_predictions(
    experiment: Path,
    sets: dict[str, ParameterSet],
    out: Path,
    placement: MatrixPlacement,
    draws: int | None,
    watch: Watch,
) -> tuple[int, int]:
    """Write a row for each point and set, shape by shape, and return the numbers of rows and
    points.

    Memory does not grow with the matrix. `watch` passes the shapes on and may show how many of them
    are done.
    """
    types = make_arrow_schema(MATRIX_PREDICTIONS)
    with use_received_files(experiment):
        shapes = list_shapes(load_experiment(experiment), placement.resources)
        watched = watch(shapes, "patterns predicted")
        predictions = predict_shapes(watched, sets, draws, partial(placement.select_sets, sets))
        rows = write_stream(out, types, (make_piece(columns, types) for columns in predictions))
    return rows, sum(len(shape.sizes) for shape in shapes)
