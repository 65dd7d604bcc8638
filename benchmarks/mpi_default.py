"""Predictions of the MPI default at held-out points of real machines: `make bench-default
DATA=FOLDER`.

FOLDER has measured collectives, as `archer2/imb.csv`, `cirrus/imb.csv`,
`cloud/osu_allreduce-*.csv`, `dane/alltoall-dane.csv`, `lassen/allgather-lassen.csv` and
`summit/points.csv`. A file that is absent is left out. IMB's times are those of the last rank
(`t_max`). Of repetitions the median counts. Points on several nodes are held out:

- largest: the largest number of ranks of each operation, predicted from all smaller ones;
- next: each number of nodes, from the smaller ones, at least two;
- after next: the same, without the number of nodes before it;
- between: each number of nodes between others, from these;
- sizes: every second size.

The columns:

- μ: max(prediction, time) / min(prediction, time);
- covered: share of the times inside the prediction intervals;
- high/low: median ratio of the ends of the intervals;
- interpolation: a line in log–log between the two neighbours in nodes or size; beyond them through
  the last two numbers of nodes of the same size;
- line: a line in log–log through all numbers of nodes of the same size.

Both simple rules have no interval, and no prediction of a size that was measured at fewer than two
numbers of nodes."""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from commodel.files.text_tables import format_table
from commodel.fits.mpi_default_fits import fit_default
from commodel.predictions.mpi_default import MpiDefault
from commodel.records import LIBRARY, Point

MESSAGES = ("PingPong",)  # benchmarks of IMB that are no collectives
# Operations that commodel lacks have the name of another one here: a fit uses names as labels alone.
LABELS = {"allgatherv": "gather", "alltoallv": "scatter", "sendrecv": "reduce"}
CORES = {"summit": 42, "dane": 112}
CLOUD_CORES = 56
MACHINE = ["machine", "operation", "nodes", "ranks", "bytes"]


def read_imb(path: Path) -> pd.DataFrame:
    table = pd.read_csv(path)
    table = table[(table["t_max_us"] > 0) & ~table["benchmark"].isin(MESSAGES)]
    names = {"system_library": "machine", "benchmark": "operation", "nodes_of_job": "nodes"}
    renamed = table.rename(columns=names | {"processes": "ranks"})
    return renamed.assign(seconds=renamed["t_max_us"] * 1e-6)


def read_cloud(paths: list[Path]) -> pd.DataFrame:
    table = pd.concat([pd.read_csv(path) for path in paths])
    cores = table["env"].map(CORES).fillna(CLOUD_CORES).astype(int)
    return table.assign(
        machine="allreduce on " + table["env"],
        operation="allreduce",
        ranks=table["nodes"] * cores,
        bytes=table["size"].astype(int),
        seconds=table["avg_latency_us"] * 1e-6,
    )


def read_variants(path: Path, default: str, size: str) -> pd.DataFrame:
    """Return the times of the MPI default, which the file calls `default`."""
    table = pd.read_csv(path)
    table = table[table["algorithm"] == default]
    operation = path.stem.partition("-")[0]
    return table.rename(columns={size: "bytes"}).assign(operation=operation)


def read_summit(path: Path) -> pd.DataFrame:
    table = pd.read_csv(path)
    table = table[table["algorithm"] == LIBRARY]
    nodes = -(-table["ranks"] // CORES["summit"])
    return table.assign(machine="summit", nodes=nodes)


def read_tables(folder: Path) -> Iterator[pd.DataFrame]:
    """Yield the median times of each machine and library."""
    found = [read_imb(path) for path in sorted(folder.glob("*/imb.csv"))]
    clouds = sorted(folder.glob("cloud/*.csv"))
    found += [read_cloud(clouds)] if clouds else []
    for path, default, size in (
        (folder / "dane/alltoall-dane.csv", LIBRARY, "bytes_per_pair"),
        (folder / "lassen/allgather-lassen.csv", "PMPI_Allgather", "bytes_per_rank"),
    ):
        found += [read_variants(path, default, size)] if path.exists() else []
    summit = folder / "summit/points.csv"
    found += [read_summit(summit)] if summit.exists() else []
    for table in found:
        medians = table.groupby(MACHINE)["seconds"].median().reset_index()
        yield from (rows for _, rows in medians.groupby("machine"))


def make_points(rows: pd.DataFrame) -> list[Point]:
    points = []
    for row in rows.to_dict("records"):
        per_node = -(-row["ranks"] // row["nodes"])
        name = row["operation"].lower()
        points.append(
            Point(
                platform="",
                operation=LABELS.get(name, name),
                algorithm=LIBRARY,
                topology="",
                layout=f"block:{per_node}",
                ranks=row["ranks"],
                bytes=row["bytes"],
                nodes=row["nodes"],
                per_node=per_node,
            )
        )
    return points


def interpolate(fitted: pd.DataFrame, held_out: pd.DataFrame) -> np.ndarray:
    """Return the seconds of each held-out point by its two neighbours, NaN without two."""
    between = fitted[fitted["nodes"] > 1]
    by_nodes = dict(iter(between.groupby(["operation", "nodes"])))
    by_size = dict(iter(between.groupby(["operation", "bytes"])))
    times = []
    for row in held_out.to_dict("records"):
        curve = by_nodes.get((row["operation"], row["nodes"]))
        axis = "bytes"
        if curve is None:
            curve = by_size.get((row["operation"], row["bytes"]), between.iloc[:0])
            axis = "ranks"
        curve = curve.sort_values(axis)
        first = int(np.searchsorted(curve[axis], row[axis])) - 1
        first = max(min(first, len(curve) - 2), 0)
        times.append(extend_line(curve.iloc[first : first + 2], row, axis))
    return np.array(times)


def draw_lines(fitted: pd.DataFrame, held_out: pd.DataFrame) -> np.ndarray:
    """Return the seconds of each held-out point by a line through all numbers of nodes."""
    between = fitted[fitted["nodes"] > 1]
    curves = dict(iter(between.groupby(["operation", "bytes"])))
    return np.array(
        [
            extend_line(
                curves.get((row["operation"], row["bytes"]), between.iloc[:0]), row, "ranks"
            )
            for row in held_out.to_dict("records")
        ]
    )


def extend_line(curve: pd.DataFrame, row: dict[str, object], axis: str) -> float:
    """Return the seconds at a place by a line in log–log through a curve; NaN with fewer than two
    different places."""
    if curve[axis].nunique() < 2:
        return float("nan")
    # IMB also measures 0 bytes
    offset = 1 if axis == "bytes" else 0
    line = np.polyfit(np.log(curve[axis] + offset), np.log(curve["seconds"]), 1)
    return float(np.exp(np.polyval(line, np.log(float(row[axis]) + offset))))


def split_largest(rows: pd.DataFrame) -> Iterator[np.ndarray]:
    is_largest = rows["ranks"] == rows.groupby("operation")["ranks"].transform("max")
    yield np.where(
        is_largest & (rows["nodes"] > 1), HELD_OUT, np.where(is_largest, OMITTED, FITTED)
    )


def split_next(rows: pd.DataFrame, ahead: int = 1) -> Iterator[np.ndarray]:
    counts = sorted(set(rows["nodes"]) - {1})
    for number in range(2, len(counts) - ahead + 1):
        is_fitted = rows["nodes"] < counts[number]
        known = rows[is_fitted & (rows["nodes"] > 1)].groupby("operation")["nodes"].nunique()
        is_known = rows["operation"].isin(known.index[known >= 2])
        is_held_out = is_known & (rows["nodes"] == counts[number + ahead - 1])
        yield np.where(is_held_out, HELD_OUT, np.where(is_fitted, FITTED, OMITTED))


def split_between(rows: pd.DataFrame) -> Iterator[np.ndarray]:
    for count in sorted(set(rows["nodes"]) - {1})[1:-1]:
        yield np.where(rows["nodes"] == count, HELD_OUT, FITTED)


def split_sizes(rows: pd.DataFrame) -> Iterator[np.ndarray]:
    number = rows.groupby("operation")["bytes"].rank(method="dense")
    is_second = number % 2 == 0
    is_held_out = is_second & (rows["nodes"] > 1)
    yield np.where(is_held_out, HELD_OUT, np.where(is_second, OMITTED, FITTED))


FITTED, HELD_OUT, OMITTED = range(3)
SPLITS = {
    "largest": split_largest,
    "next": split_next,
    "after next": lambda rows: split_next(rows, 2),
    "between": split_between,
    "sizes": split_sizes,
}


def predict_held_out(rows: pd.DataFrame, use: np.ndarray) -> pd.DataFrame:
    """Return the held-out points with their predictions."""
    fitted, held_out = rows[use == FITTED], rows[use == HELD_OUT]
    parameters = fit_default(make_points(fitted), fitted["seconds"].tolist(), "the bench")
    predictions = MpiDefault.of_set(parameters).predict(make_points(held_out))
    return held_out.assign(
        predicted=[entry.seconds for entry in predictions],
        low=[entry.low for entry in predictions],
        high=[entry.high for entry in predictions],
        interpolation=interpolate(fitted, held_out),
        line=draw_lines(fitted, held_out),
    ).dropna(subset="predicted")


def summarize(name: str, rows: pd.DataFrame) -> dict[str, object]:
    covered = (rows["low"] <= rows["seconds"]) & (rows["seconds"] <= rows["high"])
    scores: dict[str, object] = {"machine": name, "points": len(rows)}
    for column in ("predicted", "interpolation", "line"):
        errors = np.exp(np.abs(np.log(rows["seconds"] / rows[column]).dropna()))
        if column == "predicted":
            scores |= {"μ": f"{errors.median():.3f}", "mean": f"{errors.mean():.2f}"}
            scores |= {"worst": f"{errors.max():.1f}", "covered": f"{100 * covered.mean():.0f} %"}
            scores["high/low"] = f"{(rows['high'] / rows['low']).median():.2f}"
        elif len(errors):
            scores[column] = f"{errors.median():.3f}, {errors.mean():.2f}"
        else:
            scores[column] = "-"
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--split", choices=[*SPLITS, "all"], default="largest")
    options = parser.parse_args()
    tables = list(read_tables(options.folder))
    if not tables:
        parser.error("found no measured times in this folder")
    for name in SPLITS if options.split == "all" else [options.split]:
        begin = time.process_time()
        parts, lines = [], []
        for rows in tables:
            of_machine = [
                predict_held_out(rows, use) for use in SPLITS[name](rows) if HELD_OUT in use
            ]
            if of_machine:
                parts += of_machine
                lines.append(summarize(str(rows["machine"].iloc[0]), pd.concat(of_machine)))
        lines.append(summarize("all", pd.concat(parts)))
        print(
            f"{name}, {time.process_time() - begin:.0f} s of CPU; of simple rules: median, mean μ"
        )
        print(format_table(lines), end="\n\n")


if __name__ == "__main__":
    main()
