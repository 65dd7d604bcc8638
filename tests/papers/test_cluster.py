"""Figures of the cluster model's paper: predictions computed by hand from table 1, and replaced
measurements."""

from dataclasses import replace
from functools import cache
from math import isnan, nan

import pytest

from commodel.models.parameter_sets import read_published
from commodel.parameters import Estimate, ParameterSet
from commodel.predictions.papers import find_paper
from commodel_papers.cluster import Machine
from tests.papers.evidence import PLATFORM, evidence, rows

# Of a packet of 1500 bytes, worked out by hand from table 1, µs.
O_S, G_S, G_R, TAKEN = 44.32, 122.427, 123.186, 76.526 + 9.93
US = 1e-6


def latency(ranks, size=1500):
    """Return the latency in µs, by hand. All ranks together transfer at most 90 bytes per µs."""
    return (
        1.556 * ranks
        + 16.684
        + 0.0826 * size * max(1, ranks * size / (90 * (0.0796 * size + 3.027)))
    )


def make_evidence(*measured, sets=()):
    """Return evidence with these points: (operation, choice, ranks, bytes, seconds)."""
    columns = ("operation", "alternative", "ranks", "bytes", "measured")
    points = [dict(zip(columns, row, strict=True)) | {"model": "cluster"} for row in measured]
    return evidence(points, sets=sets)


PRINTED = read_published("cluster/fast-ethernet-16")
# What is printed, as if it had been fitted, but for a smaller buffer.
FITTED = replace(
    PRINTED,
    platform=PLATFORM,
    values={**PRINTED.values, "B_L": replace(PRINTED.values["B_L"], value=100.0)},
)


@cache
def figures(measured, fit):
    return {
        figure.name: figure
        for figure in find_paper("cluster").figures(
            make_evidence(*measured, sets=[FITTED] if fit else [])
        )
    }


def figure(name, *measured, fit=False):
    return figures(measured, fit)[name]


def numbers(name, title, *measured, fit=False):
    return rows(figure(name, *measured, fit=fit), title)


def test_table_1_is_the_printed_formulas():
    table = numbers("Table 1", "Parameters", fit=True)
    wanted = {
        ("O_s", 1500): O_S,
        ("g_s", 40): 6.73,
        ("g_r", 1500): G_R,
        ("O_r", 40): 13.949,
        ("U_r", 40): 9.93,
    }
    for about, microseconds in wanted.items():
        assert table[about].paper == pytest.approx(microseconds * US, rel=1e-4)
        assert table[about].ours[0] == pytest.approx(table[about].paper)
    assert table["L, 16 ranks", 1500].paper == pytest.approx(latency(16) * US, rel=1e-4)
    assert "the fit found 100" in figure("Table 1", fit=True).caption
    assert "the fit found no limit" in figure("Table 1").caption


def test_without_a_fit_the_fitted_column_is_empty():
    assert all(isnan(row.ours[0]) for row in numbers("Table 1", "Parameters").values())


def test_packets_of_the_tree_follow_after_4_and_4_3_gaps():
    table = numbers("Figures 1 and 3", "In units of the gap")
    for (model, what), gaps in {("LogP", "first packet"): 12, ("LogP", "next packet"): 4}.items():
        assert (table[model, what].paper, table[model, what].ours[0]) == (gaps, pytest.approx(gaps))
    assert table["the cluster model", "first packet"].ours[0] == pytest.approx(12)
    assert table["the cluster model", "next packet"].paper == pytest.approx(4.3)
    assert table["the cluster model", "next packet"].ours[0] == pytest.approx(4.3)


@pytest.mark.parametrize(("ranks", "rounds"), [(4, 2), (8, 3), (16, 4)])
@pytest.mark.parametrize("packets", [1, 10, 100])
def test_figure_2_is_equations_1_and_2(ranks, rounds, packets):
    trip, job = O_S + latency(ranks) + TAKEN, (ranks, 1500 * packets)
    by_model, by_logp = (
        numbers("Figure 2", f"By {name}")[job] for name in ("the cluster model", "LogP")
    )
    assert by_model.paper == pytest.approx(
        ((packets - 1) * ((rounds - 1) * G_S + TAKEN) + rounds * trip) * US, rel=1e-4
    )
    assert by_logp.paper == pytest.approx((rounds * ((packets - 1) * G_S + trip)) * US, rel=1e-4)
    assert by_logp.ours[0] == pytest.approx(by_logp.paper, rel=1e-9)
    assert 0.72 < by_model.ours[0] / by_model.paper < 1.17


def test_figure_2_has_the_measured_points():
    table = numbers(
        "Figure 2", "By the cluster model", ("bcast", "binomial:1500", 8, 7500, 0.25), fit=True
    )
    assert table[8, 7500].ours[1] == 0.25
    assert isnan(table[8, 3000].ours[1])
    assert table[8, 7500].ours[2] == pytest.approx(table[8, 7500].ours[0])
    drawn = next(
        panel
        for panel in figure("Figure 2", ("bcast", "binomial:1500", 8, 7500, 0.25)).panels
        if "8" in panel.title
    )
    (dots,) = (line for line in drawn.lines if line.style == "dots")
    assert [(x, y) for x, y in zip(dots.x, dots.y, strict=True) if not isnan(y)] == [(7500, 0.25)]


@pytest.mark.parametrize(
    ("ranks", "size", "packets", "last"),
    [(16, 1 << 20, 700, 76), (4, 1 << 14, 11, 1384), (8, 1024, 1, 1024)],
)
def test_figure_4_is_equation_8(ranks, size, packets, last):
    stream = (packets - 1) * G_R + 0.0788 * last + 4.986
    first = min(size, 1500)
    o_s, taken = 0.0253 * first + 6.37, 0.0429 * first + 12.176 + 9.93
    row = numbers("Figure 4", "Times")[ranks, size]
    assert row.paper == pytest.approx(
        ((ranks - 1) * stream + o_s + latency(ranks, first) + taken) * US, rel=1e-4
    )


def test_windows_by_equation_7_literally_and_corrected():
    """The buffer has 1935 packets: 15 senders of 175 packets each send 2625, of 700 each 10500."""
    table = numbers("Figure 4", "The window")
    assert (table[16, 1 << 16].paper, table[16, 1 << 16].ours) == (15, (15,))
    assert (table[16, 1 << 18].paper, table[16, 1 << 18].ours) == (2, (3,))
    assert isnan(table[16, 1 << 20].paper)
    assert table[16, 1 << 20].ours == (1,)


def test_the_fitted_buffer_chooses_the_coordinated_gather():
    """Without a fitted buffer, the buffer of table 1 admits all senders at once. A fitted buffer of
    100 packets requires a window."""
    times = ("gather", "linear", 4, 1 << 18, 0.5), ("gather", "windowed:1", 4, 1 << 18, 0.4)
    assert numbers("Figure 5", "Times over the optimum", *times)[4, 1 << 18].ours[1:5:3] == (
        0.5,
        0.5,
    )
    assert numbers("Figure 5", "Times over the optimum", *times, fit=True)[4, 1 << 18].ours[
        1:5:3
    ] == (0.5, 0.4)


def test_relative_errors_of_equation_8_and_of_predictions():
    machine = Machine(FITTED)
    table = numbers("Figure 4", "Relative error of the prediction of simulated times", fit=True)
    assert all(isnan(value) for row in table.values() for value in row.ours)
    times = [
        ("gather", "linear", ranks, 1024, machine.equation_8(ranks, 1024) / over)
        for ranks, over in ((4, 1.2), (8, 1.1))
    ]
    average, largest = numbers(
        "Figure 4", "Relative error of the prediction of simulated times", *times, fit=True
    ).values()
    assert (average.paper, average.ours[0]) == (8, pytest.approx(15))
    assert (largest.paper, largest.ours[0]) == (35, pytest.approx(20))
    (source,) = {
        table.source for table in figure("Figure 4", *times, fit=True).numbers if table.unit == "%"
    }
    assert source.endswith("; here at 4 ranks and 1 KiB")


def test_loss_adds_a_timeout_to_the_simple_gather_only():
    row = numbers("Figure 5", "Times over the optimum")[16, 1 << 20]
    simple, coordinated = row.ours[0], row.ours[3]
    assert simple == pytest.approx(coordinated + 0.2, rel=1e-3)
    assert coordinated == pytest.approx(row.paper, rel=2e-3)
    share = numbers("Figure 5", "Share of packets that arrive if all send at once")[16, 1 << 20]
    assert share.paper == pytest.approx(100 * (G_S / (15 * G_R) + 1935 / 10500), rel=1e-4)
    assert share.ours[0] == pytest.approx(share.paper, abs=0.3)


@pytest.mark.parametrize("value", [0.0, -1.0])
@pytest.mark.parametrize("name", ["g_s.a1", "g_r.a1", "B_L"])
def test_extreme_parameter_values_stop_no_figure(name, value):
    """Imported results may have any parameter values."""
    values = {**FITTED.values, name: replace(FITTED.values[name], value=value)}
    for slope in ("g_s.b1", "g_r.b1"):
        values[slope] = replace(values[slope], value=0.0)
    times = [
        ("gather", "linear", ranks, size, 0.0) for ranks in (4, 8, 16) for size in (1024, 1 << 20)
    ]
    assert (
        len(
            find_paper("cluster").figures(
                make_evidence(*times, sets=[replace(FITTED, values=values)])
            )
        )
        == 5
    )


def test_missing_points_and_fits_give_nan_and_none():
    assert isnan(make_evidence().times([1], operation="bcast")[0])
    assert make_evidence(("bcast", "linear", 4, 8, nan)).points(operation="bcast").empty
    assert make_evidence().fitted("cluster") is None


def test_three_fitted_models_are_compared_with_measurements():
    """LogP and Postal use P-LogP's values for the size of a packet. A packet sent once takes log2 p
    · (L + g), with L of the more distant nodes."""
    values = {"L": 5e-5, "L.beyond": 6e-5, "o_s.1500": 1e-5, "o_r.1500": 2e-5, "g.1500": 1.3e-4}
    numbers_of = {name: Estimate(value, "", value, value) for name, value in values.items()}
    settings = {"levels": {"leaf": [0, 1]}, "classes": ["beyond"]}
    forms = dict.fromkeys(("o_s", "o_r", "g"), "table")
    plogp = ParameterSet("plogp", PLATFORM, "", numbers_of, forms=forms, settings=settings)
    figures = find_paper("cluster").figures(
        make_evidence(("bcast", "binomial:1500", 8, 1500, 6e-4), sets=[FITTED, plogp])
    )
    drawn = next(figure for figure in figures if figure.name == "Figure 2")
    times = rows(drawn, "Three models fitted here, and simulated times")
    assert times[8, 1500].ours[0] == 6e-4
    assert times[8, 1500].ours[2:] == pytest.approx((3 * 1.8e-4, 3 * 1.8e-4))
    errors = rows(drawn, "Mean error factor of the three (×)")
    assert errors[8,].ours[1:] == pytest.approx((6 / 5.4, 6 / 5.4))
    assert all(isnan(error) for error in errors[4,].ours)
