"""Whole kernels of the τ–Lop paper: runs are recognised by their points, errors are proportional, means are table 2's
own."""

from dataclasses import replace
from math import isnan

import pandas as pd
import pytest

from commodel.files.tables import COMPARISON, SUMMARY, names
from commodel.parameters import Estimate, ParameterSet
from commodel.platforms.tools import ROOT
from commodel.price.kernel_times import by_sums
from commodel.price.papers import Evidence, paper
from commodel.price.papers.taulop import HOMOGENEOUS, READINGS, runs
from commodel.price.predictions import predict
from commodel.records import Point
from tests.models.exact import estimates

LAYOUT = "processes:params/layouts/fermi/{}.csv"
SUMMA = "summa:partition=params/partitions/fermi/summa-128/{}.csv"
WAVE = "wave2d:partition=params/partitions/fermi/wave2d-256/{}.csv"


@pytest.fixture(autouse=True)
def project(monkeypatch):
    monkeypatch.chdir(ROOT)


def evidence(*rows, sets=()) -> Evidence:
    """Rows are platform, operation, layout, ranks, bytes, family, measured, predicted."""
    columns = ["platform", "operation", "layout", "ranks", "bytes", "family", "measured", "predicted"]
    comparison = pd.DataFrame(rows, columns=columns)
    comparison["point"] = comparison["platform"] + comparison["operation"] + comparison["layout"]
    comparison = comparison.assign(algorithm="paper", topology="").reindex(columns=names(COMPARISON))
    return Evidence(comparison, pd.DataFrame(columns=names(SUMMARY)), sets, {"fermi": True, "fermi-ib": True})


def row(platform, operation, name, ranks, measured, **prices):
    size = 8 if operation == WAVE else 8192
    about = platform, operation.format(name), LAYOUT.format(name), ranks, size
    return [(*about, family, measured, price) for family, price in prices.items()]


ROWS = [
    *row("fermi", SUMMA, "M1", 2, 1.0, taulop=1.5, hloggp=4.0),
    *row("fermi", SUMMA, "M2", 5, 2.0, taulop=1.0, hloggp=2.0),
    *row("fermi", SUMMA + ":barrier=no", "M2", 5, 1.5, taulop=1.0, hloggp=2.0),
    *row("fermi-ib", WAVE, "M10", 29, 1.0, taulop=1.1, hloggp=float("nan")),
    ("fermi", "summa:n=128:grid=8x8", "cyclic:8", 64, 8192, "taulop", 1.0, 1.2),
    ("fermi", "bcast", "cyclic:8", 64, 8192, "taulop", 1.0, 9.0),
]


def rows_of(figure, place=0):
    numbers = figure.numbers[place]
    return {row.about: dict(zip(numbers.here, row.here, strict=True)) | {"paper": row.paper} for row in numbers.rows}


def figures(seen=None):
    return {figure.name: figure for figure in paper("taulop").figures(seen or evidence(*ROWS))}


def test_runs_are_told_by_their_points():
    several = runs(evidence(*ROWS), "fermi")
    measured = {(run.kernel, run.side, run.layout, run.barrier): run.measured for run in several}
    assert measured == {
        ("summa", 128, "M1", True): 1.0,
        ("summa", 128, "M2", True): 2.0,
        ("summa", 128, "M2", False): 1.5,
        ("summa", 128, HOMOGENEOUS, True): 1.0,
    }


def test_table_2_has_means_of_proportional_errors_beside_the_printed_ones():
    table = rows_of(figures()["Table 2"])
    assert table["TCP", "SUMMA", 128, "τ–Lop"] == {"here": pytest.approx((1.5 + 2.0) / 2), "paper": 1.34}
    assert table["TCP", "SUMMA", 128, "HLogGP"]["here"] == pytest.approx((4.0 + 1.0) / 2)
    assert table["TCP", "SUMMA", 128, "HLogGP, sums"]["paper"] == 6.64
    assert table["InfiniBand", "Wave2D", 256, "τ–Lop"]["here"] == pytest.approx(1.1)
    assert isnan(table["InfiniBand", "Wave2D", 256, "HLogGP"]["here"])
    assert isnan(table["TCP", "SUMMA", 128, "LogGPH"]["paper"])
    printed = [line["paper"] for line in table.values() if not isnan(line["paper"])]
    assert len(printed) == 16
    assert sum(printed) == pytest.approx(1.16 + 1.12 + 1.21 + 1.20 + 12.44 + 14.46 + 6.53 + 7.06
                                         + 1.34 + 1.19 + 3.88 + 3.11 + 6.64 + 6.69 + 13.08 + 14.19)  # fmt: skip


def test_figures_list_times_and_errors_of_every_layout():
    drawn = figures()
    assert rows_of(drawn["Figure 12"])["TCP", 128, "M2"]["simulated"] == 2.0
    assert rows_of(drawn["Figure 12"])["TCP", 128, "M2"]["HLogGP"] == 2.0
    assert list(rows_of(drawn["Figure 13"])) == [("InfiniBand", 256, "M10")]
    assert rows_of(drawn["Figure 14"])["SUMMA", "TCP", 128, "M1"]["HLogGP"] == 4.0
    without = rows_of(drawn["Figure 15"])
    assert list(without) == [("M2",)]
    assert (without["M2",]["no barrier"], without["M2",]["barrier"], without["M2",]["τ–Lop"]) == (1.5, 2.0, 1.0)
    sixteen = rows_of(drawn["Figure 16"])["TCP", "τ–Lop"]
    assert sixteen["homogeneous"] == pytest.approx(1.2)
    assert sixteen["heterogeneous"] == pytest.approx(1.75)


def test_tau_lop_is_priced_by_other_readings_too():
    """Transfers that share in full: of M2's two nodes fewer count than of one channel, and A1 drops overheads."""
    values = {f"L_{channel}.{size}x{level}": 1e-9 * size * level
              for channel in (0, 1) for size in (0, 1 << 20) for level in (1, 16)}  # fmt: skip
    values |= {"o_0.a": 1e-6, "o_1.a": 1e-3}
    numbers = estimates(values)
    forms = {"L_0": "table", "L_1": "table", "o_0": "constant", "o_1": "constant"}
    fitted = ParameterSet("taulop", "fermi", "", numbers, forms=forms, settings={"shared": "port"})
    seen = evidence(*ROWS, sets=(fitted,))
    by_layout = {run.layout: run.prices for run in runs(seen, "fermi") if run.barrier}
    assert by_layout["M2"]["one channel, joined"] < by_layout["M2"]["one channel"]
    points = [Point("", SUMMA.format("M2"), "paper", "", LAYOUT.format("M2"), 5, 8192)]
    for name, settings in READINGS.items():
        (wanted,) = predict(replace(fitted, settings=settings), points)
        assert by_layout["M2"][name] == pytest.approx(wanted.seconds)
    table = rows_of(figures(seen)["Table 2"], 1)["TCP", "SUMMA", 128]
    assert table["as fitted"] == pytest.approx((1.5 + 2.0) / 2)
    assert table["paper"] == 1.34
    assert table["by node"] > 1
    assert all(isnan(rows_of(figures()["Table 2"], 1)["TCP", "SUMMA", 128][name]) for name in READINGS)


def test_hloggp_is_priced_by_the_papers_rule_too():
    """One message of M1's two processes at a time: the sum of both is the price. M2 has several a process."""
    numbers = {name: Estimate(value, "s", value, value)
               for name, value in {"L": 1e-5, "o_s": 1e-6, "o_r": 1e-6, "g": 0.0, "G": 1e-9}.items()}  # fmt: skip
    fitted = ParameterSet("hloggp", "fermi", "", numbers)
    by_layout = {run.layout: run.prices["HLogGP, sums"] for run in runs(evidence(*ROWS, sets=(fitted,)), "fermi")}
    for name, ranks in (("M1", 2), ("M2", 5)):
        points = [Point("", SUMMA.format(name), "paper", "", LAYOUT.format(name), ranks, 8192)]
        (wanted,) = predict(fitted, points, cost=by_sums)
        assert by_layout[name] == pytest.approx(wanted.seconds) != 0
