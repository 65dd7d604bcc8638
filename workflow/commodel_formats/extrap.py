"""Measured points for Extra-P (`group_times`, `write_files`): the parameters p (ranks) and bytes,
the metric time, and a call path for each operation and alternative. If an algorithm and a topology
have the same name, the path also has its kind.

A file of Extra-P has one list of points for all its call paths. Call paths with equal points share
a file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from commodel.errors import UserError
from commodel.files.atomic import write_text
from commodel.files.tables import (
    COMPARISON,
    OBSERVATIONS,
    read_column_names,
    read_table,
    select_fields,
)
from commodel.records import LIBRARY

if TYPE_CHECKING:
    import pandas as pd

PARAMETERS = {"p": "ranks", "bytes": "bytes"}
COMMON_COLUMNS = "platform alternative layout ranks bytes"
Regions = Mapping[str, Mapping[tuple[int, int], list[float]]]


def read_measurements(file: Path) -> pd.DataFrame:
    """Return a table of observations, or a comparison."""
    schema = {"kind": select_fields(OBSERVATIONS, f"kind name valid seconds {COMMON_COLUMNS}")}
    schema |= {"measured": select_fields(COMPARISON, f"point operation measured {COMMON_COLUMNS}")}
    waves = select_fields(OBSERVATIONS, "waves", optional=True)
    kind = next((name for name in schema if name in read_column_names(file)), None)
    if kind is None:
        wanted = "observations.csv or comparison.csv"
        raise UserError(f"found neither a column 'kind' nor 'measured', wanted {wanted}", file=file)
    return read_table(file, schema[kind] + waves)


def group_times(table: pd.DataFrame, file: Path) -> Regions:
    """Return times by call path and point: every valid sample of observations, or the medians of a
    comparison."""
    if "kind" in table:
        rows = table[(table["kind"] == "point") & table["valid"] & table["bytes"].notna()]
        rows = rows.rename(columns={"name": "operation"})
    else:
        rows = table.drop_duplicates("point").assign(seconds=table["measured"])
    rows = rows[rows["seconds"].notna()]
    if rows.empty:
        raise UserError("found no measured point", file=file)
    path = ["operation", "alternative"]
    rows = rows.assign(kind=_find_kinds(rows))
    if (rows.groupby(path)["kind"].nunique() > 1).any():
        path.insert(1, "kind")
    path = [name for name in ("platform", "layout") if rows[name].nunique() > 1] + path
    # times of several waves are those between two of them
    if "waves" in rows and (rows["waves"] > 1).any():
        rows = rows.assign(
            waves=[f"{waves:.0f} waves" if waves > 1 else "1 wave" for waves in rows["waves"]]
        )
        path.append("waves")
    times: dict[str, dict[tuple[int, int], list[float]]] = {}
    for names, group in rows.groupby(path, sort=False):
        points = times.setdefault("->".join(str(name).replace("->", "-") for name in names), {})
        for row in group.itertuples():
            points.setdefault((int(row.ranks), int(row.bytes)), []).append(float(row.seconds))
    return times


def _find_kinds(rows: pd.DataFrame) -> list[str]:
    """Return for each row `topology` or `algorithm`, since both may have the same name; rows of a
    topology have leaves."""
    leaves = rows["leaves"].fillna(0) if "leaves" in rows else [0] * len(rows)
    return [
        "topology" if count and choice != LIBRARY else "algorithm"
        for count, choice in zip(leaves, rows["alternative"], strict=True)
    ]


def group_equal_points(regions: Regions) -> list[Regions]:
    """Return groups of call paths, each with equal points."""
    groups: dict[frozenset, dict] = {}
    for region, times in regions.items():
        groups.setdefault(frozenset(times), {})[region] = times
    return list(groups.values())


def format_text(regions: Regions) -> str:
    points = sorted(next(iter(regions.values())))
    lines = [
        f"PARAMETER {' '.join(PARAMETERS)}",
        "POINTS " + " ".join(f"({ranks} {size})" for ranks, size in points),
    ]
    for region, times in regions.items():
        lines += ["", f"REGION {region}", "METRIC time"]
        lines += ["DATA " + " ".join(map(_format_decimal, times[point])) for point in points]
    return "\n".join(lines)


def format_json_lines(regions: Regions) -> str:
    lines = []
    for region, points in regions.items():
        for point, times in points.items():
            parameters = dict(zip(PARAMETERS, point, strict=True))
            row = {"params": parameters, "callpath": region, "metric": "time", "value": times}
            lines.append(json.dumps(row))
    return "\n".join(lines)


def _format_decimal(seconds: float) -> str:
    """Return the seconds without an exponent, since the format has none."""
    return f"{seconds:.15f}".rstrip("0").rstrip(".")


def write_files(regions: Regions, style: str, out: Path) -> list[Path]:
    """Write one file, or NAME-1, NAME-2, … if call paths have different points, and return their
    paths."""
    groups = group_equal_points(regions)
    names = (
        [out]
        if len(groups) == 1
        else [out.with_stem(f"{out.stem}-{i}") for i in range(1, len(groups) + 1)]
    )
    for name, group in zip(names, groups, strict=True):
        write_text(name, STYLES[style](group) + "\n")
    return names


STYLES = {"text": format_text, "jsonl": format_json_lines}
