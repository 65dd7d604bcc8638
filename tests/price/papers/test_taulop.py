"""τ–Lop's worked examples: the paper's terms, ours, and costs that a hand adds up."""

from math import isnan

import pandas as pd
import pytest

from commodel.files.tables import COMPARISON, SUMMARY, names
from commodel.parameters import ParameterSet
from commodel.patterns.build import schedule
from commodel.price.papers import Evidence, paper
from commodel.price.papers.taulop.examples import SUMMA, WAVE
from tests.models.exact import estimates
from tests.patterns.catalogue import point

PLATFORM = "two"
O_0, O_1, MEMORY, WIRE = 3.0, 40.0, 0.5e-3, 2e-3  # seconds, and seconds a byte
KB = 8192


def fitted(**settings) -> ParameterSet:
    """Transfers that share their channel in proportion, up to 16 at once."""
    values = {"o_0.a": O_0, "o_1.a": O_1}
    for channel, slope in ((0, MEMORY), (1, WIRE)):
        values |= {f"L_{channel}.{size}x{level}": slope * size * level for size in (0, 4 << 20) for level in (1, 16)}
    numbers = estimates(values)
    forms = {"o_0": "constant", "o_1": "constant", "L_0": "table", "L_1": "table"}
    return ParameterSet("taulop", PLATFORM, "", numbers, forms=forms, settings=settings)


def figures(*sets, measured=()):
    columns = ["operation", "choice", "layout", "bytes", "measured"]
    comparison = pd.DataFrame(measured, columns=columns)
    comparison["point"] = [str(number) for number in range(len(comparison))]
    comparison = comparison.assign(platform=PLATFORM, ranks=0).reindex(columns=names(COMPARISON))
    seen = Evidence(comparison, pd.DataFrame(columns=names(SUMMARY)), sets, {PLATFORM: False})
    return {figure.name: figure for figure in paper("taulop").figures(seen)}


def table(figure, title):
    (numbers,) = (numbers for numbers in figure.numbers if numbers.title == title)
    return {row.about: row for row in numbers.rows}


@pytest.mark.parametrize("name", ["Figure 8", "Figure 9"])
def test_our_terms_are_the_papers(name):
    rows = table(figures()[name], "Terms").values()
    assert rows
    assert all(row.here == (row.paper,) for row in rows)


def test_equation_10_is_printed_so():
    """3‖T¹(35) + 2‖T¹(166) + T¹(81) + 2‖T⁰(116) + T⁰(18)."""
    rows = table(figures()["Figure 8"], "Terms")
    ten = {term: row.paper for (equation, term), row in rows.items() if equation == "10, both"}
    assert ten == {"3 ‖ T¹": 35, "2 ‖ T¹": 166, "T¹": 81, "2 ‖ T⁰": 116, "T⁰": 18}


def test_its_messages_are_those_of_the_rectangles():
    """The file has what iteration 80 sends, without its packing; of p1's sides of figure 9, too."""
    example = SUMMA.pattern
    text = "summa:partition=params/partitions/taulop-summa.csv:iteration=80"
    kernel = schedule(point(text, "paper", ranks=6, bytes=KB))
    for name in ("src", "dst", "bytes"):
        assert getattr(example, name).tolist() == getattr(kernel, name).tolist()
    sides = schedule(point("wave2d:partition=params/partitions/taulop-wave.csv", "paper", ranks=8, bytes=8))
    assert sorted(WAVE.pattern.bytes.tolist()) == sorted(sides.bytes[sides.src == 1].tolist())


def test_equation_7_lacks_the_rest_that_goes_on_behind_the_network():
    rows = table(figures()["Figure 6"], "Terms")
    (rest,) = (row for row in rows.values() if isnan(row.paper))
    assert (rest.about, rest.here) == (("7", "T⁰"), (8,))
    assert all(row.here == (row.paper,) for row in rows.values() if row is not rest)


def test_stages_double():
    rows = table(figures()["Figure 4"], "Transmissions at once")
    assert [(row.paper, *row.here) for row in rows.values()] == [(count, count) for count in (1, 2, 4, 8)] * 2


def test_costs_are_the_sum_of_terms():
    drawn = figures(fitted())

    def cost(name):
        ((row),) = table(drawn[name], "What it costs").values()
        return row

    ten = cost("Figure 8")
    network, memory = 3 * O_1 + WIRE * KB * (3 * 35 + 2 * 166 + 81), 2 * O_0 + 2 * MEMORY * KB * (2 * 116 + 18)
    assert ten.paper == pytest.approx(network + memory)
    assert ten.here[0] == pytest.approx(ten.paper)
    seven = cost("Figure 6")
    assert seven.paper == pytest.approx(2 * O_1 + WIRE * KB * (2 * 8 + 24) + O_0 + 2 * MEMORY * KB * 2 * 16)
    assert seven.here[0] == pytest.approx(seven.paper + O_0 + 2 * MEMORY * KB * 8)
    thirteen = cost("Figure 9")
    assert thirteen.paper == pytest.approx(3 * O_1 + WIRE * 8 * (3 * 48 + 2 * 16 + 32))
    assert thirteen.here[0] == pytest.approx(thirteen.paper)
    assert thirteen.here[2] == pytest.approx(thirteen.paper - 2 * O_1)  # a message pays one overhead


@pytest.mark.parametrize(
    ("where", "overhead", "slope"), [("one node", O_0, 2 * MEMORY), ("two nodes in turn", O_1, WIRE)]
)
def test_the_broadcast_is_equation_4(where, overhead, slope):
    row = table(figures(fitted())["Figure 4"], "Times")[where, 1024]
    assert row.paper == pytest.approx(3 * O_0 + 2 * MEMORY * 1024 * (1 + 2 + 4) + overhead + slope * 1024 * 8)
    assert row.here[0] == pytest.approx(row.paper)


def test_what_was_measured_stands_beside_it():
    played = ("file:params/patterns/taulop-summa.csv", "as-written", "block:3", 146 * KB, 0.75)
    bcast = ("bcast", "binomial", "cyclic:8", 256, 0.5)
    drawn = figures(fitted(), measured=[played, bcast])
    ((row),) = table(drawn["Figure 8"], "What it costs").values()
    assert row.here[1] == 0.75
    assert table(drawn["Figure 4"], "Times")["two nodes in turn", 256].here[1] == 0.5
    assert isnan(table(drawn["Figure 4"], "Times")["one node", 256].here[1])


def test_nodes_of_types_have_no_costs_of_the_papers():
    values = {"o_0.fat.a": 1.0, "L_0.fat.0x1": 0.0, "o_1.fat.fat.a": 5.0, "L_1.fat.fat.0x1": 0.0}
    numbers = estimates(values)
    forms = {"o_0.fat": "constant", "o_1.fat.fat": "constant", "L_0.fat": "table", "L_1.fat.fat": "table"}
    typed = ParameterSet("taulop", PLATFORM, "", numbers, forms=forms, settings={"types": {"fat": 2}})
    ((row),) = table(figures(typed)["Figure 8"], "What it costs").values()
    assert isnan(row.paper)
