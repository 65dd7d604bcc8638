"""Tables of tests: `agree` compares found and expected values and reports every wrong one;
`check_table` refuses a table that the program could not have written."""

from collections.abc import Iterable

import pandas as pd
import pytest

from commodel.files.tables import Schema, list_columns, read_table, select_fields, write_table
from commodel.predictions.interval_basis import IntervalBasis
from commodel.predictions.validity import Validity, ValidityKind


def agree(rows: Iterable[tuple[object, float, float]], **tolerance: float) -> None:
    """Check rows (name, found, wanted) and report all that differ."""
    wrong = [
        f"{name}: found {found}, wanted {wanted}"
        for name, found, wanted in rows
        if found != pytest.approx(wanted, **tolerance)
    ]
    assert not wrong, "\n".join(wrong)


def check_table(table: pd.DataFrame, schema: Schema, folder) -> None:
    """Check that all columns are in the schema, and that each cell is one that the program can
    write."""
    unknown = set(table) - set(list_columns(schema))
    assert not unknown, f"no column of the program: {', '.join(sorted(unknown))}"
    write_table(folder / "checked.csv", table)
    read_table(folder / "checked.csv", select_fields(schema, " ".join(table)))
    for text in set(table.get("validity", ())):
        assert Validity.parse(text).kind is not ValidityKind.OF_MODEL or ": " in text, text
    for text in set(table.get("basis", ())) - {""}:
        assert IntervalBasis.parse(text).text == text
