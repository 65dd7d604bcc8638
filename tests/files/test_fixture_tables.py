"""Tables that tests make by hand have columns and cells that the program writes. The tables of a
recorded run, which `tests/results/test_edited_tables.py` checks, have the same schemas."""

import pandas as pd
import pytest

from commodel.errors import UserError
from commodel.files.tables import COMPARISON, DISTRIBUTIONS, SUMMARY
from tests.advice import test_advice
from tests.compare import pairs, test_recalibration, test_recommended
from tests.reports import study
from tests.tables import check_table

TABLES = {
    "comparison of the study": (study.make_comparison, COMPARISON),
    "summary of the study": (lambda: study.make_raw(study.make_comparison()), SUMMARY),
    "distributions of the study": (study.make_distributions, DISTRIBUTIONS),
    "pairs of nodes": (lambda: pairs.summary(test_recalibration.FLAT, 8), SUMMARY),
    "two batches": (test_recalibration.comparison, COMPARISON),
    "rows of models": (lambda: test_recommended.rows({"one": lambda *at: 0.1 * at[3]}), COMPARISON),
    "two placements": (
        lambda: test_advice.measured({"hockney": 1.1}, {"hockney": 1.2}),
        COMPARISON,
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_made_by_hand_is_one_that_the_program_can_write(name, tmp_path):
    make, schema = TABLES[name]
    check_table(make(), schema, tmp_path)


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ({"measurement": "valid"}, UserError),
        ({"stop": "enough"}, UserError),
        ({"inside": True}, AssertionError),
        ({"validity": "ok"}, AssertionError),
        ({"basis": "9 groups of bcast"}, AssertionError),
    ],
)
def test_other_columns_and_cells_are_found(columns, error, tmp_path):
    with pytest.raises(error):
        check_table(pd.DataFrame({"point": ["p"]}).assign(**columns), COMPARISON, tmp_path)
