"""A campaign in which the fit of one model ends with an error of the program."""

import openpyxl
import pandas as pd

from tests.workflow.conftest import SMALL

BREAK = """
from dataclasses import replace

from commodel.models.families import loggops


def fail(observed):
    raise ArithmeticError("broken on purpose")


loggops.FAMILY = replace(loggops.FAMILY, fit=fail)
"""
REASON = (
    "error of the program: ArithmeticError: broken on purpose; log: "
    "results/small/logs/fit.loggp-64.loggops.log"
)


def test_a_model_that_cannot_be_fitted_does_not_stop_the_others(finished):
    (finished.folder / "broken").mkdir()
    # Python runs it at its start
    (finished.folder / "broken" / "sitecustomize.py").write_text(BREAK)
    finished.environment["PYTHONPATH"] = str(finished.folder / "broken")
    finished.experiment("small", SMALL.replace("[loggp]", "[loggp, loggops]"))
    before = finished.raw_files()
    run = finished.commodel("run", "small", code=1)
    assert finished.raw_files() == before
    assert (
        f"commodel: no fit of loggops on platform 'loggp-64': {REASON}" in run.stderr.splitlines()
    )
    assert "Prediction to use: recommended, mean error" in run.stdout
    assert f"1. loggp-64: No fit of loggops: {REASON}." in run.stdout.splitlines()
    log = (finished.folder / "results/small/logs/fit.loggp-64.loggops.log").read_text()
    assert '  Traceback (most recent call last):\n    File "' in log
    assert "in fail\n" in log

    comparison = pd.read_csv(finished.folder / "results/small/comparison.csv")
    assert comparison.loc[comparison["model"] == "loggp", "seconds"].notna().all()
    assert set(comparison.loc[comparison["model"] == "loggops", "validity"]) == {
        f"no fit: {REASON}"
    }
    assert REASON in (finished.folder / "reports/small/index.html").read_text()
    book = openpyxl.load_workbook(finished.folder / "reports/small/small.xlsx", read_only=True)
    parameters = [
        row for row in book["Models"].iter_rows(values_only=True) if "loggops" in row and "G" in row
    ]
    assert REASON in parameters[0]

    del finished.environment["PYTHONPATH"]  # the cause is mended
    again = finished.commodel("run", "small", "--retry")
    assert "No fit" not in again.stdout
    assert finished.raw_files() == before
