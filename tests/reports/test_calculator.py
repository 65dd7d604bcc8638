"""The calculator's closed forms compared with the package's predictions: as Python evaluates them,
and as LibreOffice computes the sheet."""

import math
import random
from dataclasses import replace

import openpyxl
import pytest

from commodel.errors import UserError
from commodel.reports import write_xlsx
from commodel.reports.elements import Report, Section
from commodel.reports.xlsx.calculator import CALCULATOR_SHEET
from commodel.reports.xlsx.closed_forms import (
    ALTERNATIVES,
    BINOMIAL,
    MODELS,
    REDUCE,
    make_closed_forms,
)
from tests import libreoffice
from tests.reports.calculations import (
    Workload,
    evaluate_forms,
    parameter_set,
    predictions,
    workload,
)

INPUTS = range(40)  # random sets and workloads of each model
EDITED = Workload(ranks=21, bytes=5000, fan_out=3, height=3, fan_outs=(2, 5, 1))


def drawn(model, number):
    draw = random.Random(f"{model} {number}")
    return parameter_set(draw, model), workload(draw)


def close(found, wanted):
    return isinstance(found, int | float) and math.isclose(
        found, wanted, rel_tol=1e-9, abs_tol=1e-12
    )


@pytest.mark.parametrize("model", MODELS)
def test_closed_forms_are_our_predictions(model):
    compared = set()
    for parameters, some in (drawn(model, number) for number in INPUTS):
        found = evaluate_forms(make_closed_forms(parameters), some)
        wanted = predictions(parameters, some, list(found))
        for key, value in found.items():
            if key == (REDUCE, BINOMIAL) and some.ranks & (some.ranks - 1):
                assert math.isnan(value)
                continue
            assert close(value, wanted[key]), (parameters, some, key)
            compared.add(key)
    assert len(compared) == (4 if model == "tan" else 10)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return the calculator of two platforms as it was written, and as LibreOffice computes it
    after a reader has typed other inputs and a factor."""
    folder = tmp_path_factory.mktemp("office")
    sets = [
        replace(drawn(family, 3)[0], platform=name) for name in ("one", "two") for family in MODELS
    ]
    write_xlsx(
        Report("e", "e", "", (Section("Summary", "", ()),), sets=tuple(sets)),
        folder / "report.xlsx",
    )
    before = openpyxl.load_workbook(folder / "report.xlsx", data_only=True)[CALCULATOR_SHEET]
    book = openpyxl.load_workbook(folder / "report.xlsx")
    sheet = book[CALCULATOR_SHEET]
    for name, value in EDITED.inputs.items():
        if name != "rounds":
            sheet[sheet.defined_names[name].attr_text.rpartition("!")[2].replace("$", "")] = value
    (row,) = (
        row
        for row in sheet.iter_rows()
        if [row[0].value, row[2].value, row[3].value] == ["two", "loggp", "L"]
    )
    row[6].value = 2
    book.save(folder / "report.xlsx")
    (computed,) = libreoffice.recalculated([folder / "report.xlsx"], folder)
    return sets, before, computed[CALCULATOR_SHEET]


def read_predictions(sheet):
    """Return the cells of the table of predictions by platform, model, operation and
    alternative."""
    rows = [[cell.value for cell in row] for row in sheet.iter_rows(max_col=9)]
    head = rows.index(["platform", "simulated", "model", "operation", *ALTERNATIVES])
    shown = {}
    for platform, _, model, operation, *values in rows[head + 1 :]:
        if model is None:
            return shown
        shown |= {
            (platform, model, operation, way): value
            for way, value in zip(ALTERNATIVES, values, strict=True)
        }
    return shown


def check_predictions(sheet, sets, some):
    shown = read_predictions(sheet)
    assert len(shown) == 2 * (3 * 2 + 1) * len(ALTERNATIVES)
    for parameters in sets:
        forms = make_closed_forms(parameters)
        for key, wanted in predictions(parameters, some, list(forms.predictions)).items():
            value = shown.pop((parameters.platform, parameters.model, *key))
            if key == (REDUCE, BINOMIAL) and some.ranks & (some.ranks - 1):
                assert value == "n/a"
            else:
                assert close(value, wanted), (parameters.model, key)
    assert set(shown.values()) == {"n/a"}  # of trees without a closed form


def test_a_reader_sees_our_predictions_before_a_program_computes_them(written):
    sets, before, _ = written
    start = Workload(ranks=16, bytes=1024, fan_out=4, height=2, fan_outs=(4, 4))
    check_predictions(before, sets, start)


def test_a_reader_changes_a_workload_and_a_latency_and_predictions_follow(written):
    sets, _, computed = written
    changed = []
    for parameters in sets:
        values = dict(parameters.values)
        if (parameters.platform, parameters.model) == ("two", "loggp"):
            values["L"] = replace(values["L"], value=2 * values["L"].value)
        changed.append(replace(parameters, values=values))
    assert changed != sets
    check_predictions(computed, changed, EDITED)


def test_libreoffice_computes_the_chart(written):
    """The charted column has the prediction that the reader chose, at every size of the chart."""
    sets, _, computed = written
    rows = [[cell.value for cell in row] for row in computed.iter_rows(max_col=19)]
    head = next(number for number, row in enumerate(rows) if row[18] == "charted")
    of_hockney = [row for row in rows[head + 2 :] if (row[0], row[2]) == ("one", "hockney")]
    assert len(of_hockney) == 13
    for row in of_hockney:
        some = replace(EDITED, bytes=row[3])
        (wanted,) = predictions(sets[0], some, [("bcast", BINOMIAL)]).values()
        assert close(row[18], wanted)


def test_why_a_set_is_left_out():
    parameters, _ = drawn("logp", 0)
    with pytest.raises(UserError, match="a finite capacity has no closed form"):
        make_closed_forms(replace(parameters, settings={"capacity": "finite"}))
