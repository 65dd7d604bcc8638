"""The calculator's formulas compared with the package's predictions: the values stored by the writer, and those that
LibreOffice computes."""

import math
import random
from dataclasses import replace

import openpyxl
import pytest
import xlsxwriter

from commodel.advice.gather_windows import gather_bounds
from commodel.reports import write_xlsx
from commodel.reports.elements import Report, Section
from commodel.reports.xlsx.calculator.cells import MAX_TREE_LEVELS, Row
from commodel.reports.xlsx.calculator.families import ALTERNATIVES, FORMULAS, OPERATIONS, find_bounds
from commodel.reports.xlsx.calculator.sheet import BOUND_TITLES, CALCULATOR_SHEET, select_calculable
from tests import libreoffice
from tests.reports.calculations import formulas, parameter_set, predictions, workload

MANY = 203  # inputs: 29 of each family
EXACT = 1e-9


def close(found, wanted):
    """Compare a cell with a prediction. If the package has no prediction, the cell may be negative or no number."""
    if math.isnan(wanted):
        return not isinstance(found, int | float) or found < 0 or math.isnan(found)
    return isinstance(found, int | float) and math.isclose(found, wanted, rel_tol=EXACT, abs_tol=1e-12)


def bounds_wanted(parameters, some):
    bounds = gather_bounds(parameters, some.ranks, some.bytes)
    times = bounds["full_after"] * 1e6 if bounds["full_after"] is not None else None
    wanted = {name: bounds[name] for name in ("fewest", "most", "window")}
    wanted |= {"arriving_share": bounds["through"], "fill_time": times}
    return {name: value for name, value in wanted.items() if value is not None}


def drawn(family, number):
    draw = random.Random(f"{family} {number}")
    return parameter_set(draw, family), workload(draw)


@pytest.fixture(scope="module")
def cases():
    """Return by model the row, its predictions as terms, and the package's predictions; for the cluster model also the
    bounds."""
    several = {}
    for family in FORMULAS:
        several[family] = []
        for number in range(MANY // len(FORMULAS)):
            parameters, some = drawn(family, number)
            row = Row(number + 1)
            terms, known, pattern = formulas(parameters, some, row)
            terms = {key: row.put(f"prediction {key}", value) for key, value in terms.items()}
            wanted = predictions(parameters, some, list(terms))
            if family == "cluster":
                own = {
                    name: row.put(f"bound {name}", value) for name, value in find_bounds(row, known, pattern).items()
                }
                wanted |= bounds_wanted(parameters, some)
                terms |= {name: value for name, value in own.items() if name in wanted}
            several[family].append((row, terms, wanted))
    return several


@pytest.mark.parametrize("family", FORMULAS)
def test_cached_values_are_our_predictions(cases, family):
    for row, terms, wanted in cases[family]:
        for key, cell in terms.items():
            assert close(cell.value, wanted[key]), (row.number, key)


def place(sheet, name):
    return sheet.defined_names[name].attr_text.rpartition("!")[2].replace("$", "")


@pytest.fixture(scope="module")
def recalculated(cases, tmp_path_factory):
    """Return both workbooks after one run of LibreOffice has computed them."""
    folder = tmp_path_factory.mktemp("office")
    with xlsxwriter.Workbook(folder / "bulk.xlsx") as book:
        for family, rows in cases.items():
            sheet = book.add_worksheet(family)
            for row, _, _ in rows:
                for column, cell in enumerate(row.terms.values()):
                    sheet.write_formula(row.number - 1, column, f"={cell.text}", None, 0)
    sets = tuple(drawn(family, 3)[0] for family in FORMULAS)
    write_xlsx(Report("e", "e", "", (Section("Summary", "", ()),), sets=sets), folder / "report.xlsx")
    book = openpyxl.load_workbook(folder / "report.xlsx")
    sheet, some = book[CALCULATOR_SHEET], EDITED
    for name in ("ranks", "bytes", "segment", "fan_out", "height"):
        sheet[place(sheet, name)] = getattr(some, name)
    for at, count in enumerate([*some.fan_outs, *[0] * (MAX_TREE_LEVELS - len(some.fan_outs))], 1):
        sheet[place(sheet, f"fan_out_{at}")] = count
    book.save(folder / "report.xlsx")
    names = ("bulk", "report")
    computed = libreoffice.recalculated([folder / f"{name}.xlsx" for name in names], folder)
    return dict(zip(names, computed, strict=True)), sets


EDITED = replace(workload(random.Random(5)), ranks=21, bytes=5000, segment=700, fan_out=3, height=3, fan_outs=(2, 5, 1))


def test_libreoffice_computes_our_predictions(cases, recalculated):
    compared = 0
    for family, rows in cases.items():
        sheet = recalculated[0]["bulk"][family]
        for row, terms, wanted in rows:
            for key, cell in terms.items():
                assert close(sheet[cell.text.replace("$", "")].value, wanted[key]), (family, row.number, key)
                compared += 1
    assert compared > 1000


def test_a_reader_changes_a_job_and_predictions_follow(recalculated):
    (_, sets), sheet = recalculated, recalculated[0]["report"][CALCULATOR_SHEET]
    rows = [[cell.value for cell in row] for row in sheet.iter_rows(max_col=9)]
    head = next(number for number, row in enumerate(rows) if row[:2] == ["model", "operation"])
    titles = {"Hockney": "hockney", "LogP": "logp", "LogGP": "loggp", "TAN": "tan", "LoP": "lop", "τ–Lop": "taulop"}
    titles |= {"Model for commodity clusters": "cluster"}
    by_name, seen = {parameters.family: parameters for parameters in sets}, set()
    for title, operation, *shown in (row[:7] for row in rows[head + 1 :]):
        if operation not in OPERATIONS:
            break
        requested = [(operation, way) for way, value in zip(ALTERNATIVES, shown, strict=True) if value is not None]
        wanted = predictions(by_name[titles[title]], EDITED, requested)
        assert all(close(shown[ALTERNATIVES.index(way)], wanted[operation, way]) for _, way in requested), (
            title,
            operation,
        )
        seen.add(titles[title])
    assert seen == set(FORMULAS)
    bounds = {row[3]: row[2] for row in rows if row[0] == "gather, cluster"}
    wanted = bounds_wanted(by_name["cluster"], EDITED)
    wanted |= {"arriving_share": 100 * wanted["arriving_share"]} if "arriving_share" in wanted else {}
    assert {BOUND_TITLES[name] for name in wanted} <= set(bounds)
    assert all(close(bounds[BOUND_TITLES[name]], value) for name, value in wanted.items())


def test_why_a_family_is_left_out():
    measured = next(found for number in range(20) if "L_1" in (found := drawn("taulop", number)[0]).forms)
    names = {"L_1": "L_1.a-b", "o_1": "o_1.a-b"}
    renamed = {key.replace(key[:3], names.get(key[:3], key[:3])): value for key, value in measured.values.items()}
    forms = {names.get(key, key): form for key, form in measured.forms.items()}
    several, refused = select_calculable([replace(measured, values=renamed, forms=forms)])
    assert not several
    assert "differ between node types" in refused["taulop"]


def test_ranks_of_one_node_and_ranks_of_many_are_both_tried():
    sets = [drawn("taulop", number)[0] for number in range(MANY // len(FORMULAS))]
    kinds = {(next(name for name in ("L_0", "L_1") if name in some.forms), some.settings["shared"]) for some in sets}
    assert kinds == {(name, shared) for name in ("L_0", "L_1") for shared in ("channel", "node", "port")}
