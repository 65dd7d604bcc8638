"""Text output of ReproMPI: `#@key=value` lines, column names, then a row for each sample, or for each case if
summarised.

Times are in seconds. `count` is in elements of `datatype_extent_bytes` each. As in commodel, it is the size of a block
for gather, allgather, scatter and alltoall. For both reduce-scatters it is a block too, and their vector has as many
blocks as there are ranks. If every process has its own row, the time of a sample is that of its slowest process.
"""

from pathlib import Path

from commodel.interchange import (
    Format,
    ImportedTimes,
    SourceRow,
    StatedProperties,
    normalize_operation,
    read_source_rows,
)

TIME_COLUMNS = {"runtime_sec": "sample", "median_sec": "median", "mean_sec": "mean"}
PROCESS_COLUMNS = ("process", "proc", "rank")


def read_file(path: Path, stated: StatedProperties) -> ImportedTimes:
    header_fields: dict[str, str] = {}
    columns: list[str] = []
    samples: dict[
        tuple[str, str, int | str], tuple[SourceRow, dict[str, str], float, str]
    ] = {}  # a row each, or the slowest process's of a sample
    for source_row, line in read_source_rows(path, stated):
        cells = line.split()
        if line.startswith("#"):
            name, _, value = line.removeprefix("#@").partition("=")
            header_fields[name.strip()] = value.strip()
        elif {"test", "count"} <= set(cells):
            columns = cells
        elif cells and columns:
            row = source_row.split(columns, cells, cell_name="cells")
            kind = next((name for name in TIME_COLUMNS if name in row), "")
            if not kind:
                raise source_row.error(f"found no column {', '.join(TIME_COLUMNS)} among {' '.join(columns)}")
            seconds = source_row.parse_number(row[kind])
            one_row_a_sample = not any(name in row for name in PROCESS_COLUMNS)
            key = (row["test"], row["count"], source_row.line if one_row_a_sample else row.get("nrep", ""))
            if key not in samples or seconds > samples[key][2]:
                samples[key] = (source_row, row, seconds, TIME_COLUMNS[kind])
    imported = ImportedTimes()
    for source_row, row, seconds, statistic in samples.values():
        size = source_row.parse_whole(row["count"]) * source_row.parse_whole(
            header_fields.get("datatype_extent_bytes") or "1"
        )
        ranks = source_row.parse_whole(header_fields.get("nprocs") or "0")
        if normalize_operation(row["test"]) in ("reducescatter", "reducescatterblock"):
            size *= source_row.choose_ranks(ranks) or 1
        imported.add_collective(source_row, row["test"], "", ranks, size, seconds, statistic)
    return imported


FORMAT = Format("reprompi", "ReproMPI", read_file)
