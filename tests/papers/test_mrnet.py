"""Figures of the MRNet paper: its formulas by hand, and figures from given measurements."""

from math import isnan, nan

import pytest

from commodel.predictions.papers import find_paper
from tests.papers.evidence import column, evidence, figure, table

g, o, L = 10e-6, 4e-6, 20e-6


def figures(rows=(), room=None):
    made_evidence = evidence(rows)
    if room:
        made_evidence.comparison[["processes", "processors"]] = room
    return find_paper("mrnet").figures(made_evidence)


def row(operation, topology, measured, waves=1, seconds=nan, bytes=8):
    about = {
        "operation": operation,
        "topology": topology,
        "alternative": topology,
        "ranks": 9,
        "bytes": bytes,
        "waves": waves,
    }
    return {**about, "model": "tan", "measured": measured, "seconds": seconds}


def test_trees_of_figure_4_by_hand():
    """In LogP the last of four children receives three gaps after the first. The next wave starts
    when the root is free."""
    four = figure(figures(), "Figure 4")
    one, stream = table(four, "One broadcast"), table(four, "Between two broadcasts")
    assert column(one)["balanced"] == pytest.approx(8 * g + 4 * o + 2 * L)
    assert column(one, "predicted")["balanced"] == pytest.approx(6 * g + 4 * o + 2 * L)
    assert column(stream, "predicted") == pytest.approx({"balanced": 4 * g, "unbalanced": 6 * g})
    assert column(stream) == pytest.approx(column(stream, "predicted"))


def test_micro_benchmarks_are_of_whole_round_trips_and_rates():
    rows = [row("overlay-startup", "flat:64", 0.1), row("overlay-startup", "kary:8^2", 0.04)]
    rows += [row("reduce", "flat:64", 3e-4, seconds=2e-4), row("reduce", "flat:64", 2e-5, waves=50)]
    figures_of_rows = figures(rows)
    startup = table(figure(figures_of_rows, "Figure 5a"), "Start-up")
    assert column(startup, "flat")[64] == 0.1
    assert column(startup, "8-way")[64] == 0.04
    assert isnan(column(startup, "4-way")[64])
    assert column(table(figure(figures_of_rows, "Figure 5b"), "Round trip"), "flat")[
        64
    ] == pytest.approx(6e-4)
    assert column(
        table(figure(figures_of_rows, "Figure 5b"), "Round trip by TAN, fitted here"), "flat"
    )[64] == pytest.approx(4e-4)
    assert column(table(figure(figures_of_rows, "Figure 5c"), "Reductions per second"), "flat")[
        64
    ] == pytest.approx(50_000)


def test_every_mrnet_tree_has_the_stated_number_of_leaves():
    from commodel.patterns.trees.topologies import make_tree
    from commodel_papers.mrnet import TREES

    for trees in TREES.values():
        for leaves, spec in trees.items():
            assert make_tree(spec).leaves == leaves


def test_skew_errors_are_in_percent_of_the_set_skews():
    rows = [
        row("overlay-skew:mode=tree-error", "kary:4^3", 1e-3),
        row("overlay-skew", "kary:4^3", 0.2),
    ]
    rows += [row("overlay-skew:mode=direct-error", "kary:4^3", 5e-6)]
    skews = figure(figures(rows), "Clock skew")
    errors = table(skews, "Error")
    assert column(errors)["along the tree"] == 10.5
    assert column(errors, "simulated")["along the tree"] == pytest.approx(10)
    assert column(errors, "simulated")["direct"] == pytest.approx(0.05)
    assert (
        column(table(skews, "Mean error, and time of 100 rounds"), "time, simulated")[
            "along the tree"
        ]
        == 0.2
    )


def test_the_gain_of_a_tree_is_over_binning_without_one():
    rows = [
        row("overlay-classes", spec, time, bytes=16 << 10)
        for spec, time in (("flat:512", 0.9), ("kary:8^3", 0.3))
    ]
    gains = figure(figures(rows), "Equivalence classes").numbers[1]
    assert column(gains, "binned")[512] == pytest.approx(3)
    assert column(gains)[512] == 3.4


def test_activities_are_compared_where_both_trees_were_measured():
    rows = [row("reduce:filter=max", "flat:512", 0.4), row("reduce:filter=max", "kary:8^3", 0.1)]
    rows += [
        row("reduce:filter=concat", "flat:512", 0.1, bytes=64),
        row("reduce:filter=concat", "kary:8^3", 0.1, bytes=64),
    ]
    rows += [row("overlay-skew", "flat:512", 9.0)]
    times, _, total = figure(figures(rows), "Figure 6b").numbers
    assert len(times.rows) == 16
    assert column(total, "gain")[512] == pytest.approx((0.8 + 0.2) / (0.2 + 0.2))
    assert isnan(column(total, "gain")[64])
    assert column(total)[512] == 3.4


def test_the_reason_names_oversubscribed_processors():
    rows = [row("overlay-startup", "flat:64", 0.1)]
    assert (
        "up to 585 take turns on 2 processors"
        in figure(figures(rows, (585, 2)), "Figure 5a").reason
    )
    assert "take turns" not in figure(figures(rows, (65, 128)), "Figure 5a").reason
