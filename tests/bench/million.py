"""A million predictions in one process: `make bench-million`. With an argument, so many points of the matrix only.

Parameter sets are fitted to synthetic machines, once as they are and once without their draws.
"""

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from commodel.files.streamed_tables import make_arrow_schema, make_piece, write_stream
from commodel.files.tables import MATRIX_PREDICTIONS
from commodel.patterns.build import Shape
from commodel.patterns.points import Setting
from commodel.plan.config import load_experiment
from commodel.plan.prediction_list import list_shapes
from commodel.predictions.predictions import predict_shapes
from tests.bench.measuring import peak_gib, show
from tests.models.synthetic import fitted_set

FAMILIES = ("hockney", "logp", "loggp", "loggops", "plogp", "tan", "bsp", "pmnf", "lop", "cluster", "mlognp", "postal")
WITH_DRAWS = 50  # one shape of so many, evenly: its time says what all would take
SIZES = "{from: 0, to: 1MiB, step: 4800}"
RANKS = "{from: 2, to: 1024, step: 22}"
BROADCASTS = ["binomial", "binomial-near", "linear", "binomial:64KiB"]
TREES = "flat:32 flat:128 flat:512 flat:1000 kary:2^4 kary:2^6 kary:2^8 kary:4^4 kary:8^3 kary:32^2 balanced:8x8"
TREES += " balanced:16x16 balanced:4x64 balanced:64x4 balanced:4x8x16 binomial:6 binomial:8 binomial:10 chain:64"
MATRIX = f"""
platform: none
matrix:
  - axes: {{operation: bcast, algorithm: {BROADCASTS}, ranks: {RANKS}, bytes: {SIZES}}}
  - axes: {{operation: gather, algorithm: [binomial, linear], ranks: {RANKS}, bytes: {SIZES}}}
  - axes: {{operation: allreduce, algorithm: recursive-doubling, ranks: {RANKS}, bytes: {SIZES}}}
  - axes: {{operation: [bcast, reduce], topology: {TREES.split()}, bytes: {SIZES}}}
  - axes: {{operation: [allgather, allreduce], algorithm: ring, ranks: [2, 4, 8, 16, 32, 64, 96, 128], bytes: {SIZES}}}
"""


def matrix(folder: Path) -> list[Shape]:
    file = folder / "million.yaml"
    file.write_text(MATRIX)
    return list_shapes(load_experiment(file), Setting.unlimited())


def predicted(what: str, chosen: list[Shape], sets: dict, out: Path, whole: float) -> None:
    types = make_arrow_schema(MATRIX_PREDICTIONS)
    start, used = time.perf_counter(), time.process_time()
    rows = write_stream(out, types, (make_piece(columns, types) for columns in predict_shapes(chosen, sets)))
    spent, used = time.perf_counter() - start, time.process_time() - used
    show(
        what, f"{rows:,} predictions in {spent:.0f} s ({used:.0f} s of processor), {peak_gib():.2f} GiB at most so far"
    )
    if whole > 1:
        show("  all of them would take, extrapolated", f"{used * whole:.0f} s of processor")


def main(points: int | None) -> None:
    drawn = {name: fitted_set(name, noise=0.03) for name in FAMILIES}
    exact = {name: replace(parameters, draws={}) for name, parameters in drawn.items()}
    with tempfile.TemporaryDirectory() as folder:
        chosen, out = matrix(Path(folder)), Path(folder) / "predictions.parquet"
        if points:
            every = max(sum(len(shape.sizes) for shape in chosen) // points, 1)
            chosen = chosen[::every]
        show(
            "the matrix",
            f"{len(chosen)} shapes, {sum(len(shape.sizes) for shape in chosen):,} points, {len(drawn)} sets",
        )
        predicted("without draws", chosen, exact, out, 1)
        few = chosen[WITH_DRAWS // 2 :: WITH_DRAWS]
        predicted("with 200 draws each, one shape of fifty", few, drawn, out, len(chosen) / len(few))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
