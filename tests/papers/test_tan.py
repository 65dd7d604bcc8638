"""The TAN paper: its printed numbers by hand, and a synthetic machine."""

from dataclasses import replace
from functools import cache
from math import isnan, nan

import numpy as np
import pandas as pd
import pytest

from commodel.models.probes import Site
from commodel.predictions.papers import find_paper
from commodel.records import PlatformKind
from tests.models.synthetic import truth
from tests.papers.evidence import PLATFORM, cases, column, evidence, figure, fitted, micro, table

L, A, B, C = 98.0, 49.3, 0.783, 0.157  # table I, µs


def o(x):
    return A + B * x + C * x**2


def figures(*arguments, **more):
    return find_paper("tan").figures(evidence(*arguments, **more))


@cache
def printed():
    """Return the figures without measurements: predictions with the values of the paper."""
    return {figure.name: figure for figure in figures()}


def test_validation_by_the_papers_own_values():
    """Equation 1 by hand: a node with x children takes L + o(x+1), summed over the levels of a
    tree."""
    for name, two_levels, leaves, levels in (
        ("Figure 7", (6, 6), 32, 5),
        ("Figure 8", (12, 11), 128, 7),
    ):
        inner, root = two_levels
        wanted = {
            "two levels": 2 * L + o(inner + 1) + o(root + 1),
            "binomial": sum(L + o(children + 1) for children in range(1, levels + 2)),
            "binary": levels * (L + o(3)),
            "all to one": L + o(leaves + 1),
        }
        assert micro(column(table(printed()[name], "A wave"))) == pytest.approx(wanted)
        drawn = {"two levels": 2, "binomial": levels + 1, "binary": levels, "all to one": 1}
        by_levels = micro(
            column(table(printed()[name], "LogP as drawn, with the values of the paper"))
        )
        assert by_levels == pytest.approx({tree: count * (L + A) for tree, count in drawn.items()})


def test_equation_2_by_the_papers_own_values():
    """The period is the time of the node that handles the most messages."""
    periods = micro(column(table(printed()["Equation 2"], "Between two waves")))
    for leaves, handled in {32: (7, 7, 3, 33), 128: (13, 9, 3, 129)}.items():
        between = [period for (_, about), period in periods.items() if about == leaves]
        assert between == pytest.approx([L + o(x) for x in handled])


def test_a_chain_by_the_papers_line_is_not_equation_1():
    chains = table(printed()["Figure 4"], "A wave")
    assert micro(column(chains))[32] == pytest.approx(32 * (L + 2 * A))
    assert micro(column(chains, "equation 1, the paper's values"))[32] == pytest.approx(4783.808)


def test_figure_6_is_drawn_without_the_constant_term():
    assert micro(column(table(printed()["Figure 6"], "Overhead")))[128] == pytest.approx(
        B * 128 + C * 128**2
    )


@pytest.fixture(scope="module")
def figures_of_paper_machine():
    """Return figures of a machine with the paper's values: C is 0, and each level of a chain takes
    L and two overheads."""
    times = {
        "pingpong": lambda case: 2 * L * 1e-6,
        "chain": lambda case: 2 * case["height"] * (L + 2 * A) * 1e-6,
        "fan": lambda case: (L + o(case["n"] + 1)) * 1e-6,
        "wave": lambda case: 2 * (L + o(case["n"])) * 1e-6,
    }
    machine = replace(
        truth("tan"), times={**truth("tan").times, **times}, site=Site(130, 1), sizes=(1024,)
    )
    return figures(probed=cases(machine, times), sets=[fitted(machine, "tan")])


def test_the_papers_recipe_reproduces_table_1(figures_of_paper_machine):
    values = table(figure(figures_of_paper_machine, "Table I"), "Values")
    assert column(values, "paper's recipe") == pytest.approx(column(values))
    chain, fan = (
        table(figure(figures_of_paper_machine, name), "Overhead")
        for name in ("Figure 4", "Figure 6")
    )
    for numbers in (chain, fan):
        assert column(numbers, "simulated") == pytest.approx(column(numbers))
        assert column(numbers, "fitted") == pytest.approx(column(numbers))
    whole = table(figure(figures_of_paper_machine, "Figure 4"), "A wave")
    assert column(whole, "simulated") == pytest.approx(column(whole))
    assert "here b·x + c·x² is" in figure(figures_of_paper_machine, "Figure 6").caption


def test_latency_is_half_a_round_trip(figures_of_paper_machine):
    numbers = table(figure(figures_of_paper_machine, "Figure 2"), "Latency")
    assert micro(column(numbers, "simulated on somewhere")) == pytest.approx(
        {"min": L, "mean": L, "max": L, "standard deviation": nan}, nan_ok=True
    )
    assert micro(column(numbers)) == pytest.approx(
        {"min": 59, "mean": 98, "max": 672, "standard deviation": 30}
    )


def test_the_deviation_is_that_of_the_histogram():
    bins = [
        (1024, 90e-6, 110e-6, 3, False),
        (1024, 190e-6, 210e-6, 1, True),
        (64, 0.0, 1e-6, 9, False),
    ]
    histogram = pd.DataFrame(bins, columns=["bytes", "low", "high", "count", "tail"]).assign(
        platform=PLATFORM
    )
    made_evidence = replace(evidence(), distributions=histogram)
    (row,) = (
        row
        for row in figure(find_paper("tan").figures(made_evidence), "Figure 2").numbers[0].rows
        if "deviation" in row.subject[0]
    )
    assert row.ours[0] == pytest.approx(np.std([100e-6] * 3 + [200e-6]))


def wave(topology, model, measured, predicted, waves=1):
    about = {
        "operation": "reduce",
        "topology": topology,
        "alternative": topology,
        "ranks": 33,
        "bytes": 1024,
    }
    return {**about, "waves": waves, "model": model, "measured": measured, "seconds": predicted}


def test_errors_of_tree_predictions_by_measured_times():
    trees = {
        "flat:32": (4e-3, 4e-3, 1e-3),
        "kary:2^5": (2e-3, 1e-3, 2e-3),
        "binomial:6": (3e-3, 2e-3, 1e-3),
    }
    rows = [wave("flat:32", "tan", 9.0, 9.0, waves=20)]
    for spec, (measured, tan, drawn) in trees.items():
        rows += [wave(spec, "tan", measured, tan), wave(spec, "logp-tan", measured, drawn)]
    seven = figure(figures(rows), "Figure 7")
    assert column(table(seven, "A wave"), "simulated")["all to one"] == 4e-3
    off = table(seven, "Error factor of predictions of simulated times (×)")
    assert column(off, "TAN")["binary"] == pytest.approx(2)
    assert column(off, "LogP as drawn")["binomial"] == pytest.approx(3)
    assert isnan(column(off, "LogP")["binary"])
    assert column(off, "TAN")["their mean"] == pytest.approx((1 + 2 + 1.5) / 3)
    (nearer,) = column(
        table(seven, "Trees on which TAN is more accurate than LogP as drawn"), "here"
    ).values()
    assert nearer == 2  # of the three that were measured
    stream = table(figure(figures(rows), "Equation 2"), "Between two waves")
    assert column(stream, "simulated")["all to one", 32] == 9.0


def test_figure_1_over_one_sender():
    about = {
        "operation": "gather",
        "algorithm": "linear",
        "alternative": "linear",
        "waves": 1,
        "model": "tan",
        "seconds": 1.0,
    }
    rows = [{**about, "ranks": n + 1, "bytes": 1024, "measured": 1e-4 * n} for n in (1, 4, 16)]
    growth, times = figure(figures(rows), "Figure 1").numbers
    assert column(growth, "simulated")["1 KiB", 16] == pytest.approx(16)
    assert isnan(column(growth, "simulated")["12 KiB", 0])
    assert column(times, "simulated") == pytest.approx({("1 KiB", n): 1e-4 * n for n in (1, 4, 16)})


def test_the_reason_of_errors_depends_on_the_platform_kind():
    """The platforms are simulated, real with a processor per process, or real with shared
    processors. Real platforms without a gather have no Figure 1."""
    rows, texts = [wave("flat:32", "tan", 1.0, 1.0)], []
    real = PlatformKind.REAL
    for kind, processes in ((PlatformKind.SIMULATED, None), (real, 1), (real, 256)):
        results = evidence(rows)
        results.comparison[["processes", "processors"]] = processes, 2
        drawn_figures = find_paper("tan").figures(
            replace(results, kinds=dict.fromkeys(results.kinds, kind))
        )
        assert ("Figure 1" in [entry.name for entry in drawn_figures]) == (kind is not real)
        assert all(
            entry.reason.count(". ") == 0 and entry.reason.endswith(".") for entry in drawn_figures
        )
        assert all("simulated" not in entry.reason for entry in drawn_figures) or kind is not real
        texts.append(figure(drawn_figures, "Figure 7").reason)
    assert "up to 256 processes take turns on 2 processors" in texts[2]
    assert len(set(texts)) == 3
