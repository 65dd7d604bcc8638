"""The τ–Lop paper: worked examples and kernels, computed by hand."""

from dataclasses import replace
from math import isnan

import pandas as pd
import pytest

from commodel.files.tables import COMPARISON, SUMMARY, list_columns
from commodel.parameters import Estimate, ParameterSet
from commodel.patterns.build import build_schedule
from commodel.platforms.tools import ROOT
from commodel.predictions.papers import PaperEvidence, find_paper
from commodel.predictions.predictions import predict
from commodel.records import PlatformKind, Point
from commodel_kernels.times import predict_by_sums
from commodel_papers.taulop import HOMOGENEOUS, INTERPRETATIONS, examples, list_runs
from tests.models.exact import estimates
from tests.papers.evidence import PLATFORM, rows
from tests.papers.evidence import evidence as make_evidence
from tests.patterns.catalogue import point

O_0, O_1, MEMORY, WIRE = 3.0, 40.0, 0.5e-3, 2e-3  # seconds, and seconds a byte
KB = 8192


def fitted(**settings) -> ParameterSet:
    """Return a set whose transfer times grow in proportion to the number of concurrent transfers,
    up to 16."""
    values = {"o_0.a": O_0, "o_1.a": O_1}
    for channel, slope in ((0, MEMORY), (1, WIRE)):
        values |= {
            f"L_{channel}.{size}x{level}": slope * size * level
            for size in (0, 4 << 20)
            for level in (1, 16)
        }
    numbers = estimates(values)
    forms = {"o_0": "constant", "o_1": "constant", "L_0": "table", "L_1": "table"}
    return ParameterSet("taulop", PLATFORM, "", numbers, forms=forms, settings=settings)


def figures(*sets, measured=()):
    columns = ("operation", "alternative", "layout", "bytes", "measured")
    results = make_evidence([dict(zip(columns, row, strict=True)) for row in measured], sets=sets)
    return {figure.name: figure for figure in find_paper("taulop").figures(results)}


@pytest.mark.parametrize("name", ["Figure 8", "Figure 9"])
def test_our_terms_equal_the_terms_of_the_paper(name):
    terms = rows(figures()[name], "Terms").values()
    assert terms
    assert all(row.ours == (row.paper,) for row in terms)


def test_terms_of_equation_10_are_the_printed_ones():
    """The equation is 3‖T¹(35) + 2‖T¹(166) + T¹(81) + 2‖T⁰(116) + T⁰(18)."""
    terms = rows(figures()["Figure 8"], "Terms")
    printed = {term: row.paper for (equation, term), row in terms.items() if equation == "10, both"}
    assert printed == {"3 ‖ T¹": 35, "2 ‖ T¹": 166, "T¹": 81, "2 ‖ T⁰": 116, "T⁰": 18}


def test_the_example_has_the_messages_of_the_partition_file():
    """The file has the messages of iteration 80 without packing, and those of the sides of p1 in
    figure 9."""
    example = examples.SUMMA.pattern
    text = "summa:partition=params/partitions/taulop-summa.csv:iteration=80"
    kernel = build_schedule(point(text, "paper", ranks=6, bytes=KB))
    for name in ("src", "dst", "bytes"):
        assert getattr(example, name).tolist() == getattr(kernel, name).tolist()
    sides = build_schedule(
        point("wave2d:partition=params/partitions/taulop-wave.csv", "paper", ranks=8, bytes=8)
    )
    assert sorted(examples.WAVE.pattern.bytes.tolist()) == sorted(
        sides.bytes[sides.src == 1].tolist()
    )


def test_equation_7_lacks_the_rest_that_continues_after_the_network():
    terms = rows(figures()["Figure 6"], "Terms")
    (rest,) = (row for row in terms.values() if isnan(row.paper))
    assert (rest.subject, rest.ours) == (("7", "T⁰"), (8,))
    assert all(row.ours == (row.paper,) for row in terms.values() if row is not rest)


def test_concurrent_transmissions_double_with_each_stage():
    terms = rows(figures()["Figure 4"], "Concurrent transmissions")
    assert [(row.paper, *row.ours) for row in terms.values()] == [
        (count, count) for count in (1, 2, 4, 8)
    ] * 2


def test_predictions_are_the_sums_of_the_terms():
    drawn = figures(fitted())

    def cost(name):
        ((row),) = rows(drawn[name], "Times").values()
        return row

    ten = cost("Figure 8")
    network, memory = (
        3 * O_1 + WIRE * KB * (3 * 35 + 2 * 166 + 81),
        2 * O_0 + 2 * MEMORY * KB * (2 * 116 + 18),
    )
    assert ten.paper == pytest.approx(network + memory)
    assert ten.ours[0] == pytest.approx(ten.paper)
    seven = cost("Figure 6")
    assert seven.paper == pytest.approx(
        2 * O_1 + WIRE * KB * (2 * 8 + 24) + O_0 + 2 * MEMORY * KB * 2 * 16
    )
    assert seven.ours[0] == pytest.approx(seven.paper + O_0 + 2 * MEMORY * KB * 8)
    thirteen = cost("Figure 9")
    assert thirteen.paper == pytest.approx(3 * O_1 + WIRE * 8 * (3 * 48 + 2 * 16 + 32))
    assert thirteen.ours[0] == pytest.approx(thirteen.paper)
    # a message pays one overhead
    assert thirteen.ours[2] == pytest.approx(thirteen.paper - 2 * O_1)


@pytest.mark.parametrize(
    ("where", "overhead", "slope"),
    [("one node", O_0, 2 * MEMORY), ("two nodes in turn", O_1, WIRE)],
)
def test_the_broadcast_is_equation_4(where, overhead, slope):
    row = rows(figures(fitted())["Figure 4"], "Times")[where, 1024]
    assert row.paper == pytest.approx(
        3 * O_0 + 2 * MEMORY * 1024 * (1 + 2 + 4) + overhead + slope * 1024 * 8
    )
    assert row.ours[0] == pytest.approx(row.paper)


def test_measured_times_are_in_the_tables():
    played = ("file:params/patterns/taulop-summa.csv", "as-written", "block:3", 146 * KB, 0.75)
    bcast = ("bcast", "binomial", "cyclic:8", 256, 0.5)
    drawn = figures(fitted(), measured=[played, bcast])
    ((row),) = rows(drawn["Figure 8"], "Times").values()
    assert row.ours[1] == 0.75
    assert rows(drawn["Figure 4"], "Times")["two nodes in turn", 256].ours[1] == 0.5
    assert isnan(rows(drawn["Figure 4"], "Times")["one node", 256].ours[1])


def test_with_node_types_equations_have_no_time():
    values = {"o_0.fat.a": 1.0, "L_0.fat.0x1": 0.0, "o_1.fat.fat.a": 5.0, "L_1.fat.fat.0x1": 0.0}
    numbers = estimates(values)
    forms = {
        "o_0.fat": "constant",
        "o_1.fat.fat": "constant",
        "L_0.fat": "table",
        "L_1.fat.fat": "table",
    }
    typed = ParameterSet(
        "taulop", PLATFORM, "", numbers, forms=forms, settings={"types": {"fat": 2}}
    )
    ((row),) = rows(figures(typed)["Figure 8"], "Times").values()
    assert isnan(row.paper)


LAYOUT = "processes:params/layouts/fermi/{}.csv"
SUMMA = "summa:partition=params/partitions/fermi/summa-128/{}.csv"
WAVE = "wave2d:partition=params/partitions/fermi/wave2d-256/{}.csv"


@pytest.fixture(autouse=True)
def project(monkeypatch):
    monkeypatch.chdir(ROOT)


def evidence(*rows, sets=()) -> PaperEvidence:
    """Return evidence with these rows: (platform, operation, layout, ranks, bytes, family,
    measured, predicted)."""
    columns = ["platform", "operation", "layout", "ranks", "bytes", "model", "measured", "seconds"]
    comparison = pd.DataFrame(rows, columns=columns)
    comparison["point"] = comparison["platform"] + comparison["operation"] + comparison["layout"]
    comparison = comparison.assign(algorithm="paper", topology="").reindex(
        columns=list_columns(COMPARISON)
    )
    return PaperEvidence(
        comparison,
        pd.DataFrame(columns=list_columns(SUMMARY)),
        sets,
        {"fermi": PlatformKind.SIMULATED, "fermi-ib": PlatformKind.SIMULATED},
    )


def row(platform, operation, name, ranks, measured, **predictions):
    size = 8 if operation == WAVE else 8192
    point_columns = platform, operation.format(name), LAYOUT.format(name), ranks, size
    return [
        (*point_columns, family, measured, prediction) for family, prediction in predictions.items()
    ]


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
    return {
        row.subject: dict(zip(numbers.columns, row.ours, strict=True)) | {"paper": row.paper}
        for row in numbers.rows
    }


def kernel_figures(results=None):
    return {
        figure.name: figure for figure in find_paper("taulop").figures(results or evidence(*ROWS))
    }


def test_runs_are_identified_by_their_points():
    runs = list_runs(evidence(*ROWS), "fermi")
    measured = {(run.kernel, run.side, run.layout, run.barrier): run.measured for run in runs}
    assert measured == {
        ("summa", 128, "M1", True): 1.0,
        ("summa", 128, "M2", True): 2.0,
        ("summa", 128, "M2", False): 1.5,
        ("summa", 128, HOMOGENEOUS, True): 1.0,
    }


def test_table_2_has_means_of_proportional_errors_beside_the_printed_ones():
    table = rows_of(kernel_figures()["Table 2"])
    assert table["TCP", "SUMMA", 128, "τ–Lop"] == {
        "here": pytest.approx((1.5 + 2.0) / 2),
        "paper": 1.34,
    }
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
    figures_by_name = kernel_figures()
    assert rows_of(figures_by_name["Figure 12"])["TCP", 128, "M2"]["simulated"] == 2.0
    assert rows_of(figures_by_name["Figure 12"])["TCP", 128, "M2"]["HLogGP"] == 2.0
    assert list(rows_of(figures_by_name["Figure 13"])) == [("InfiniBand", 256, "M10")]
    assert rows_of(figures_by_name["Figure 14"])["SUMMA", "TCP", 128, "M1"]["HLogGP"] == 4.0
    figure_15 = rows_of(figures_by_name["Figure 15"])
    assert list(figure_15) == [("M2",)]
    assert (
        figure_15["M2",]["no barrier"],
        figure_15["M2",]["barrier"],
        figure_15["M2",]["τ–Lop"],
    ) == (1.5, 2.0, 1.0)
    figure_16 = rows_of(figures_by_name["Figure 16"])["TCP", "τ–Lop"]
    assert figure_16["homogeneous"] == pytest.approx(1.2)
    assert figure_16["heterogeneous"] == pytest.approx(1.75)


def test_tau_lop_is_also_predicted_with_other_interpretations():
    """Transfer times are proportional to the number of concurrent transfers. Fewer transfers share
    a node than one channel, and A1 counts fewer overheads."""
    values = {f"L_{channel}.{size}x{level}": 1e-9 * size * level
              for channel in (0, 1) for size in (0, 1 << 20) for level in (1, 16)}  # fmt: skip
    values |= {"o_0.a": 1e-6, "o_1.a": 1e-3}
    numbers = estimates(values)
    forms = {"L_0": "table", "L_1": "table", "o_0": "constant", "o_1": "constant"}
    fitted = ParameterSet("taulop", "fermi", "", numbers, forms=forms, settings={"shared": "port"})
    results = evidence(*ROWS, sets=(fitted,))
    by_layout = {run.layout: run.predictions for run in list_runs(results, "fermi") if run.barrier}
    assert by_layout["M2"]["one channel, joined"] < by_layout["M2"]["one channel"]
    points = [Point("", SUMMA.format("M2"), "paper", "", LAYOUT.format("M2"), 5, 8192)]
    for name, settings in INTERPRETATIONS.items():
        (wanted,) = predict(replace(fitted, settings=settings), points)
        assert by_layout["M2"][name] == pytest.approx(wanted.seconds)
    table = rows_of(kernel_figures(results)["Table 2"], 1)["TCP", "SUMMA", 128]
    assert table["as fitted"] == pytest.approx((1.5 + 2.0) / 2)
    assert table["paper"] == 1.34
    assert table["by node"] > 1
    assert all(
        isnan(rows_of(kernel_figures()["Table 2"], 1)["TCP", "SUMMA", 128][name])
        for name in INTERPRETATIONS
    )


def test_hloggp_is_also_predicted_by_sums_of_messages():
    """In layout M1 both processes send one message at a time; in M2 a process sends several."""
    numbers = {name: Estimate(value, "s", value, value)
               for name, value in {"L": 1e-5, "o_s": 1e-6, "o_r": 1e-6, "g": 0.0, "G": 1e-9}.items()}  # fmt: skip
    fitted = ParameterSet("hloggp", "fermi", "", numbers)
    by_layout = {
        run.layout: run.predictions["HLogGP, sums"]
        for run in list_runs(evidence(*ROWS, sets=(fitted,)), "fermi")
    }
    for name, ranks in (("M1", 2), ("M2", 5)):
        points = [Point("", SUMMA.format(name), "paper", "", LAYOUT.format(name), ranks, 8192)]
        (wanted,) = predict(fitted, points, cost=predict_by_sums)
        assert by_layout[name] == pytest.approx(wanted.seconds) != 0
