"""Predictions of the MPI default at the largest number of ranks of each operation, from all smaller
ones: `make bench-default DATA=FOLDER`.

FOLDER has measured collectives of real machines, as `archer2/imb.csv`, `cirrus/imb.csv`,
`cloud/osu_allreduce-*.csv`, `dane/alltoall-dane.csv`, `lassen/allgather-lassen.csv` and
`summit/points.csv`. A file that is absent is left out. IMB's times are those of the last rank
(`t_max`). Of repetitions the median counts. Held out are points on several nodes.

- μ: max(prediction, time) / min(prediction, time).
- covered: share of the times inside the prediction intervals.
- high/low: median ratio of the ends of the intervals.
- interpolation: a line in log–log through the two largest measured numbers of nodes of the same
  size, extrapolated.
- log–log line: the same through all of them.

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


def extrapolate_lines(fitted: pd.DataFrame, held_out: pd.DataFrame, most: int) -> np.ndarray:
    """Return the seconds of each held-out point by a line through the times of the largest numbers
    of nodes, at most so many; NaN with fewer than two."""
    between = fitted[fitted["nodes"] > 1].sort_values("ranks")
    curves = dict(iter(between.groupby(["operation", "bytes"])))
    times = []
    for row in held_out.to_dict("records"):
        curve = curves.get((row["operation"], row["bytes"]), between.iloc[:0]).tail(most)
        if curve["ranks"].nunique() < 2:
            times.append(np.nan)
            continue
        line = np.polyfit(np.log(curve["ranks"]), np.log(curve["seconds"]), 1)
        times.append(np.exp(np.polyval(line, np.log(row["ranks"]))))
    return np.array(times)


def score(rows: pd.DataFrame) -> tuple[dict[str, object], pd.DataFrame]:
    """Return the scores of a machine, and its held-out points with their predictions."""
    is_largest = rows["ranks"] == rows.groupby("operation")["ranks"].transform("max")
    fitted = rows[~is_largest]
    held_out = rows[is_largest & (rows["nodes"] > 1)]
    begin = time.process_time()
    parameters = fit_default(make_points(fitted), fitted["seconds"].tolist(), "the bench")
    default = MpiDefault.of_set(parameters)
    predictions = default.predict(make_points(held_out))
    held_out = held_out.assign(
        predicted=[entry.seconds for entry in predictions],
        low=[entry.low for entry in predictions],
        high=[entry.high for entry in predictions],
        interpolated=extrapolate_lines(fitted, held_out, 2),
        line=extrapolate_lines(fitted, held_out, len(fitted)),
    )
    seconds = f"{time.process_time() - begin:.1f}"
    return summarize(str(rows["machine"].iloc[0]), held_out) | {"CPU [s]": seconds}, held_out


def summarize(name: str, rows: pd.DataFrame) -> dict[str, object]:
    covered = (rows["low"] <= rows["seconds"]) & (rows["seconds"] <= rows["high"])
    scores: dict[str, object] = {"machine": name, "points": len(rows)}
    for title, column in (("", "predicted"), ("interpolation ", "interpolated"), ("line ", "line")):
        errors = np.exp(np.abs(np.log(rows["seconds"] / rows[column]).dropna()))
        scores[f"{title}median μ"] = f"{errors.median():.3f}"
        scores[f"{title}mean μ"] = f"{errors.mean():.2f}"
        if column == "predicted":
            scores["worst"] = f"{errors.max():.1f}"
            scores["covered [%]"] = round(100 * covered.mean())
            scores["high/low"] = f"{(rows['high'] / rows['low']).median():.2f}"
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    lines, parts = [], []
    for rows in read_tables(parser.parse_args().folder):
        scores, held_out = score(rows)
        lines.append(scores)
        parts.append(held_out)
    if not parts:
        parser.error("found no measured times in this folder")
    lines.append(summarize("all", pd.concat(parts)) | {"CPU [s]": ""})
    print(format_table(lines))


if __name__ == "__main__":
    main()
