"""A million predictions in one process: `make bench-million`. An argument limits the number of
points of the matrix.

Parameter sets are fitted to synthetic machines. They are used with and without their draws.
"""

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.measuring import print_figure, read_peak_gib
from commodel.files.streamed_tables import make_arrow_schema, make_piece, write_stream
from commodel.files.tables import MATRIX_PREDICTIONS
from commodel.patterns.build import Shape
from commodel.patterns.points import PlatformResources
from commodel.plan.config import load_experiment
from commodel.plan.prediction_list import list_shapes
from commodel.predictions.predictions import predict_shapes
from tests.models.synthetic import fitted_set

FAMILIES = (
    "hockney",
    "logp",
    "loggp",
    "loggops",
    "plogp",
    "tan",
    "bsp",
    "pmnf",
    "lop",
    "cluster",
    "mlognp",
    "postal",
)
# with draws, one of so many shapes is predicted, and the time is extrapolated to all
SHAPES_PER_SAMPLE = 50
SIZES = "{from: 0, to: 1MiB, step: 4800}"
RANKS = "{from: 2, to: 1024, step: 22}"
BROADCASTS = ["binomial", "binomial-near", "linear", "binomial:64KiB"]
TREES = (
    "flat:32 flat:128 flat:512 flat:1000 kary:2^4 kary:2^6 kary:2^8 kary:4^4 kary:8^3 kary:32^2 "
    "balanced:8x8"
)
TREES += (
    " balanced:16x16 balanced:4x64 balanced:64x4 balanced:4x8x16 binomial:6 binomial:8 "
    "binomial:10 chain:64"
)
MATRIX = f"""
platform: none
matrix:
  - axes: {{operation: bcast, algorithm: {BROADCASTS}, ranks: {RANKS}, bytes: {SIZES}}}
  - axes: {{operation: gather, algorithm: [binomial, linear], ranks: {RANKS}, bytes: {SIZES}}}
  - axes: {{operation: allreduce, algorithm: recursive-doubling, ranks: {RANKS}, bytes: {SIZES}}}
  - axes: {{operation: [bcast, reduce], topology: {TREES.split()}, bytes: {SIZES}}}
  - axes: {{operation: [allgather, allreduce], algorithm: ring, ranks: [2, 4, 8, 16, 32, 64, 96, 128], bytes: {SIZES}}}
"""


def list_matrix_shapes(folder: Path) -> list[Shape]:
    file = folder / "million.yaml"
    file.write_text(MATRIX)
    return list_shapes(load_experiment(file), PlatformResources.unlimited())


def predict_shapes_of_sets(
    title: str, shapes: list[Shape], sets: dict, out: Path, whole: float
) -> None:
    types = make_arrow_schema(MATRIX_PREDICTIONS)
    start, used = time.perf_counter(), time.process_time()
    rows = write_stream(
        out, types, (make_piece(columns, types) for columns in predict_shapes(shapes, sets))
    )
    spent, used = time.perf_counter() - start, time.process_time() - used
    print_figure(
        title,
        f"{rows:,} predictions in {spent:.0f} s ({used:.0f} s of processor), {read_peak_gib():.2f} GiB at most so far",
    )
    if whole > 1:
        print_figure("  all shapes, extrapolated", f"{used * whole:.0f} s of processor")


def main(points: int | None) -> None:
    drawn = {name: fitted_set(name, noise=0.03) for name in FAMILIES}
    exact = {name: replace(parameters, draws={}) for name, parameters in drawn.items()}
    with tempfile.TemporaryDirectory() as folder:
        chosen, out = list_matrix_shapes(Path(folder)), Path(folder) / "predictions.parquet"
        if points:
            every = max(sum(len(shape.sizes) for shape in chosen) // points, 1)
            chosen = chosen[::every]
        print_figure(
            "the matrix",
            f"{len(chosen)} shapes, {sum(len(shape.sizes) for shape in chosen):,} points, {len(drawn)} sets",
        )
        predict_shapes_of_sets("without draws", chosen, exact, out, 1)
        few = chosen[SHAPES_PER_SAMPLE // 2 :: SHAPES_PER_SAMPLE] or chosen[:1]
        predict_shapes_of_sets(
            "with 200 draws each, one shape of fifty", few, drawn, out, len(chosen) / len(few)
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
