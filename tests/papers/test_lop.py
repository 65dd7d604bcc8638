"""The LoP paper: its printed equations by hand, and a synthetic machine on which LoP is exact."""

from functools import cache
from math import inf, isnan

import numpy as np
import pytest

from commodel.predictions.papers import find_paper
from tests.models.synthetic import truth
from tests.models.truths.lop import overhead, round_trip
from tests.papers.evidence import cases, column, evidence, figure, fitted, micro, table

PARTNER_COUNTS = (1, 2, 4, 8, 16, 32, 63)


def figures(*arguments, **more):
    return find_paper("lop").figures(evidence(*arguments, **more))


def printed_round_trip(p):
    """Return the round trip over p by the printed equation of Send/Receive, in µs."""
    return 9.1637 + 22.4558 / (-0.0140 + p) + 0.0174 * (1 - np.exp(-0.0625 * (p - 101.3065)))


def printed_overhead(p):
    """Return the overhead of a message to p partners by the printed equation, in µs."""
    return 0.52 + 0.84 / (-0.12 + p)


@cache
def printed():
    """Return the figures without measurements: predictions with the paper's values."""
    return {figure.name: figure for figure in figures()}


def test_round_trips_as_printed():
    send = micro(column(table(printed()["Figure 3"], "Round trip per message")))
    assert send == pytest.approx({n: printed_round_trip(n) for n in PARTNER_COUNTS})
    put = micro(column(table(printed()["Figure 4"], "Round trip per message")))
    assert (put[1], put[8]) == pytest.approx((16.01607, 4.89929), rel=1e-5)
    assert micro(column(table(printed()["Figure 5"], "Overhead of one send")))[2] == pytest.approx(
        printed_overhead(2)
    )


def test_latency_by_rounded_and_by_exact_values():
    latencies = table(printed()["Section 4.7"], "L(n)")
    at_one = 4.58 + 11.23 / 0.99 + 0.01 * (1 - np.exp(0.06 * 100.31)) - 2 * (0.52 + 0.84 / 0.88)
    assert micro(column(latencies))[1] == pytest.approx(at_one)
    for n in PARTNER_COUNTS:
        assert micro(column(latencies, "as printed"))[n] == pytest.approx(
            printed_round_trip(n) / 2 - printed_overhead(1) - printed_overhead(n)
        )
        assert micro(column(latencies, "halved"))[n] == pytest.approx(
            (printed_round_trip(n) - printed_overhead(1) - printed_overhead(n)) / 2
        )


def test_with_overlaps_subtracted_once_one_to_n_is_half_of_the_round_trip():
    """With eight partners, the printed equation gives a third of half of the round trip."""
    numbers = table(printed()["Section 4.7"], "One to n")
    once = micro(column(numbers, "overlaps counted once"))
    for n, half in micro(column(numbers)).items():
        assert half == pytest.approx(n * printed_round_trip(n) / 2)
        assert once[n] == pytest.approx(half - (printed_overhead(1) - printed_overhead(n)) / 2)
    as_printed = micro(column(numbers, "as printed"))[8]
    assert as_printed == pytest.approx(
        printed_overhead(8)
        + 8 * (printed_round_trip(8) / 2 - printed_overhead(1) - printed_overhead(8))
    )
    assert as_printed / (4 * printed_round_trip(8)) == pytest.approx(1 / 3, abs=1e-3)


def test_the_fitted_line_has_the_least_relative_error():
    numbers = table(printed()["Section 2"], "One to n")
    n, half = np.array(PARTNER_COUNTS), np.array(list(column(numbers).values()))
    fitted_line = np.array(list(column(numbers, "LogP or BSP, nearest line").values()))

    def squared_error(line):
        return np.sum((line / half - 1) ** 2)

    assert np.diff(fitted_line) / np.diff(n) == pytest.approx(
        np.full(6, (fitted_line[1] - fitted_line[0]))
    )
    assert all(
        squared_error(fitted_line) < squared_error(fitted_line * (1 + step) + shift)
        for step, shift in [(0.02, 0), (-0.02, 0), (0, 2e-7), (0, -2e-7)]
    )
    assert set(column(numbers, "PRAM").values()) == {0.0}


@pytest.mark.parametrize(
    ("model", "barrier", "gain"),
    [
        ("LoP, RDMA Write, printed", "n-way:7", 77.1),
        ("LoP, RDMA Write, halved", "n-way:3", 59.5),
        ("LoP, Send/Receive, printed", "n-way:7", 76.1),
        ("LoP, Send/Receive, halved", "n-way:7", 57.5),
    ],
)
def test_gains_of_n_way_barriers_equal_the_formula(model, barrier, gain):
    """On 64 nodes, n-way:3 has three rounds of o + 3·L(3), dissemination has six of o + L(1)."""
    numbers = table(printed()["Section 5"], "Gain on 64 nodes")
    assert column(numbers, "gain")[model, barrier] == pytest.approx(gain, abs=0.05)
    assert column(numbers)[model, barrier] == 40


def test_no_barrier_is_below_the_bound():
    times = table(printed()["Section 5"], "Times by LoP")
    for row in times.rows:
        bound, best, plain = row.ours
        assert bound <= best * (1 + 1e-12) < plain


@pytest.fixture(scope="module")
def fitted_figures():
    machine = truth("lop")
    return figures(probed=cases(machine, ("round", "post")), sets=[fitted(machine, "lop")])


@pytest.mark.parametrize(("name", "how"), [("Figure 3", "isend"), ("Figure 4", "put")])
def test_fitted_round_trips_equal_the_probed_ones(fitted_figures, name, how):
    """The fitted function includes overlapping overheads: without subtraction it is 1.9 times the
    probed value."""
    numbers = table(figure(fitted_figures, name), "Round trip per message")
    for n in (1, 2, 8, 32):
        wanted = round_trip({"how": how, "n": n}) / n
        assert column(numbers, "simulated, least")[n] == pytest.approx(wanted)
        assert column(numbers, "fitted")[n] == pytest.approx(wanted, rel=1e-6)


def test_measured_overheads_are_per_message(fitted_figures):
    numbers = table(figure(fitted_figures, "Figure 5"), "Overhead of one send")
    for how, words in (("isend", "one by one"), ("list", "as a list"), ("put", "puts")):
        assert column(numbers, f"simulated, {words}")[8] == pytest.approx(overhead(how, 8))


def test_mean_errors_of_models_by_measured_points():
    fields = {"operation": "barrier", "bytes": 0, "waves": 1}
    predicted = {
        "dissemination": {"logp": 2e-5, "lop": 1e-5, "pram": 0.0},
        "n-way:3": {"logp": 1e-5, "lop": 1e-5, "pram": 0.0},
    }
    times = {"dissemination": 2e-5, "n-way:3": 1.5e-5, "library": 1e-6}
    rows = [
        {
            **fields,
            "alternative": choice,
            "ranks": 64,
            "model": name,
            "measured": times[choice],
            "seconds": seconds,
        }
        for choice, predictions in (predicted | {"library": {"": float("nan")}}).items()
        for name, seconds in predictions.items()
    ]
    sections = figures(rows)
    errors = table(
        figure(sections, "Section 2.5"), "Mean error factor of predictions of simulated times (×)"
    )
    assert column(errors, "LogP")["barrier"] == pytest.approx((1 + 1.5) / 2)
    assert column(errors, "LoP")["barrier"] == pytest.approx((2 + 1.5) / 2)
    assert column(errors, "PRAM")["barrier"] == inf
    assert isnan(column(errors, "BSP")["barrier"])
    gains = table(figure(sections, "Section 5"), "Gain on 64 nodes")
    assert column(gains, "gain")["simulated", "n-way:3"] == pytest.approx(25)
