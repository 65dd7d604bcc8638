"""Text output of ReproMPI: `#@key=value` lines, column names, then a row for each sample, or for each case if
summarised.

Times are in seconds. `count` is in elements of `datatype_extent_bytes` each. As here, it is a block for gather,
allgather, scatter and alltoall. For both reduce-scatters it is a block too, and their vector has as many blocks as
there are ranks. If every process has its own row, the time of a sample is that of its slowest process.
"""

from pathlib import Path

from commodel.interchange import Format, Given, Readings, placed_lines, plain

TIMES = {"runtime_sec": "sample", "median_sec": "median", "mean_sec": "mean"}
PROCESS = ("process", "proc", "rank")


def times(path: Path, given: Given) -> Readings:
    about, columns = {}, []
    samples: dict[tuple, tuple] = {}  # a row each, or the slowest process's of a sample
    for place, line in placed_lines(path, given):
        cells = line.split()
        if line.startswith("#"):
            key, _, value = line.removeprefix("#@").partition("=")
            about[key.strip()] = value.strip()
        elif {"test", "count"} <= set(cells):
            columns = cells
        elif cells and columns:
            row = place.row(columns, cells, what="cells")
            kind = next((name for name in TIMES if name in row), "")
            if not kind:
                raise place.error(f"found no column {', '.join(TIMES)} among {' '.join(columns)}")
            seconds = place.number(row[kind])
            alone = not any(name in row for name in PROCESS)
            key = (row["test"], row["count"], place.line if alone else row.get("nrep", ""))
            if key not in samples or seconds > samples[key][2]:
                samples[key] = (place, row, seconds, TIMES[kind])
    readings = Readings()
    for place, row, seconds, statistic in samples.values():
        size = place.whole(row["count"]) * place.whole(about.get("datatype_extent_bytes") or "1")
        ranks = place.whole(about.get("nprocs") or "0")
        if plain(row["test"]) in ("reducescatter", "reducescatterblock"):
            size *= given.ranks or ranks or 1
        readings.take(place, row["test"], "", ranks, size, seconds, statistic)
    return readings


FORMAT = Format("reprompi", "ReproMPI", times)
