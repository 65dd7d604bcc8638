"""Generate the reference of tables and columns from their schemas, for the site's page of
tables."""

import csv
from collections.abc import Iterator
from pathlib import Path

from commodel.files import tables
from commodel.files.tables import Field, Schema
from commodel.models.probes.plans import PROBES

MEANINGS = Path(__file__).parent / "columns.csv"
TABLES = {  # by file: the meaning of a row, and the schema
    "observations.csv": ("a sample", tables.OBSERVATIONS),
    "summary.csv": ("a measured case: all its samples", tables.SUMMARY),
    "distributions.csv": ("a bin of the histogram of a latency survey", tables.DISTRIBUTIONS),
    "unmeasured.csv": ("a case that was not measured", tables.UNMEASURED),
    "predictions/MODEL.csv": ("a point", tables.PREDICTIONS),
    "comparison.csv": ("a point and a model", tables.COMPARISON),
    "predict matrix": ("a point of the matrix and a parameter set", tables.MATRIX_PREDICTIONS),
}
TYPES = {str: "text", bool: "yes or no", int: "whole number", float: "number"}


def read_meanings() -> dict[str, str]:
    """Return the meaning of each column by its name, the same in every table."""
    with MEANINGS.open(encoding="utf-8", newline="") as stream:
        return {row["column"]: row["meaning"] for row in csv.DictReader(stream)}


def list_probe_settings() -> set[str]:
    """Return the names of the settings that probes write into their samples."""
    return {name for probe in PROBES.values() for name in probe.columns}


def describe_tables() -> str:
    """Return a section for each table."""
    return "\n".join(
        line
        for name, (row, schema) in TABLES.items()
        for line in _describe_table(name, row, schema)
    )


def _describe_table(name: str, row: str, schema: Schema) -> Iterator[str]:
    meanings = read_meanings()
    yield from (
        f"## `{name}`",
        "",
        f"A row is {row}.",
        "",
        "| column | type | meaning |",
        "|---|---|---|",
    )
    for field in schema:
        if field.name in meanings:
            yield f"| `{field.name}` | {_describe_type(field)} | {meanings[field.name]} |"
    settings = [f"`{field.name}`" for field in schema if field.name not in meanings]
    if settings:
        yield f"| {', '.join(settings)} | | settings of probes: each probe has some of them |"
    yield ""


def _describe_type(field: Field) -> str:
    unit = {"s": "seconds", "B": "bytes"}.get(field.unit) or TYPES[field.type]
    properties = [
        unit,
        *(["may be blank"] if field.blank else []),
        *(["optional"] if field.optional else []),
    ]
    return ", ".join(properties)
