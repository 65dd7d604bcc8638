"""A reader can compute the recommended prediction again from the sheet Comparison."""

import numpy as np
import pandas as pd
import pytest

from commodel.compare.recommended import MAX_DISAGREEMENT
from commodel.records import RECOMMENDED
from commodel.reports.elements import AnsweredQuestion
from commodel.reports.xlsx.layout import FIRST_ROW
from tests.reports.reading import make_report

STEPS = "How the recommended prediction is computed"


@pytest.fixture(scope="module")
def sheet(workbook):
    return pd.read_excel(
        workbook, sheet_name="Comparison", header=FIRST_ROW, na_values=["n/a", "∞"]
    )


@pytest.fixture(scope="module")
def recommended(sheet):
    return sheet[sheet["model"] == RECOMMENDED]


def compute_stack(models, weights):
    """Return the weighted geometric mean as the sheet describes it; `models` are predictions by
    model."""
    parts = [part.split(" ", 1) for part in weights.split(" + ")]
    heaviest = models[parts[0][1]]
    low, high = heaviest / MAX_DISAGREEMENT, heaviest * MAX_DISAGREEMENT
    return np.exp(
        sum(float(weight) * np.log(np.clip(models[model], low, high)) for weight, model in parts)
    )


def test_the_stack_follows_from_the_weights_and_the_rows_of_the_models(sheet, recommended):
    models = sheet[sheet["model"] != RECOMMENDED].set_index(["point", "model"])["predicted [µs]"]
    assert recommended["weights"].str.contains(" + ", regex=False).any()
    for row in recommended.to_dict("records"):
        assert compute_stack(models[row["point"]], row["weights"]) == pytest.approx(
            row["stack [µs]"], rel=1e-4
        )


def test_prediction_and_interval_follow_from_the_stack(recommended):
    predicted, factor = recommended["predicted [µs]"], recommended["interval factor [×]"]
    np.testing.assert_allclose(
        recommended["stack [µs]"] * recommended["correction [×]"], predicted, rtol=1e-9
    )
    np.testing.assert_allclose(predicted / factor, recommended["predicted low [µs]"], rtol=1e-9)
    np.testing.assert_allclose(predicted * factor, recommended["predicted high [µs]"], rtol=1e-9)
    exponent = recommended["f [σ]"] * recommended["σ [%]"] / 100
    np.testing.assert_allclose(np.exp(exponent), factor, rtol=1e-9)
    assert (recommended["f [σ]"] >= 1.959).all()


def test_rows_of_models_have_no_steps(sheet):
    models = sheet[sheet["model"] != RECOMMENDED]
    assert (
        models[["weights", "stack [µs]", "correction [×]", "interval factor [×]", "σ [%]", "f [σ]"]]
        .isna()
        .all(axis=None)
    )


def test_the_weights_of_a_platform_are_summarized(report, sheet, recommended):
    (table,) = [table for table in report.tables if table.name == "Weights"]
    for platform, rows in recommended.groupby("platform"):
        columns = [table.column(key) for key in ("platform", "model", "mean", "why")]
        shown = [row[1:] for row in zip(*columns, strict=True) if row[0] == platform]
        assert sum(mean for _, mean, _ in shown) == pytest.approx(1, abs=1e-3)
        weighted = {part.split(" ")[1] for text in rows["weights"] for part in text.split(" + ")}
        assert {model for model, mean, _ in shown if mean} == weighted
        assert all(bool(why) == (mean == 0) for _, mean, why in shown)
        of_platform = sheet.loc[sheet["platform"] == platform, "model"].dropna()
        others = set(of_platform) - weighted - {RECOMMENDED}
        assert {model for model, _, why in shown if why} == others


def test_an_example_has_the_numbers_of_a_row(report):
    answers = [
        block for block in report.section("Standings").blocks if isinstance(block, AnsweredQuestion)
    ]
    (lines,) = [answer.sentences for answer in answers if answer.question == STEPS]
    (example,) = [line for line in lines if line.startswith("Example: ")]
    assert all(word in example for word in ("Stack: ", "Correction ", "F = exp(", "Measured: "))


def test_without_a_recommended_prediction_there_are_no_steps(fewer):
    some = fewer["workload"].drop_duplicates().iloc[:2]
    report = make_report(fewer[fewer["workload"].isin(some)], experiment="few")
    assert not [table for table in report.tables if table.name == "Weights"]
    assert "weights" not in [
        column.key for column in report.section("Comparison").tables[0].columns
    ]
