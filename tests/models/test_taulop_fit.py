"""What τ–Lop's values are read from: rings, round trips, and what processors are busy with."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.fits.probe_fits import as_parameters
from commodel.models.families import family
from commodel.patterns.schedule import Schedule
from tests.models.synthetic import costs, observed, truth


@pytest.mark.parametrize("shared", ["channel", "node", "port"])
@pytest.mark.parametrize(("procs", "within"), [(2, False), (4, False), (8, False), (2, True), (4, True)])
def test_a_ring_costs_what_it_took(procs, within, shared):
    """τ is counted as it was measured, whichever way prices count it."""
    machine, ranks = truth("taulop"), np.arange(procs)
    fitted = as_parameters(family("taulop"), family("taulop").fit(observed(machine, "taulop")))
    fitted = replace(fitted, settings={**fitted.settings, "shared": shared})
    pattern = Schedule.of(procs, 0, ranks, (ranks + 1) % procs, 4096).placed(0 * ranks if within else ranks % 2)
    took = machine.times["ring"]({"pair": "node.same" if within else "node.node", "procs": procs, "bytes": 4096})
    assert costs(family("taulop"), pattern, fitted, drawn=False)[0] == pytest.approx(took, rel=1e-6)


def test_a_processors_part_is_half_of_what_both_ends_are_busy_with():
    """Of short messages that wait for their receivers; and at most half of an empty one's time."""
    machine = truth("taulop")
    values = family("taulop").fit(observed(machine, "taulop", noise=0)).values
    assert (values["p_0"][0], values["p_1"][0]) == pytest.approx((2e-7, 6e-7), rel=1e-3)
    busier = {
        name: lambda case: 20e-6 if case["late"] else machine.times["prtt"](case) for name in ("prtt", "pairprtt")
    }
    values = family("taulop").fit(observed(replace(machine, times=machine.times | busier), "taulop", noise=0)).values
    assert (values["p_0"][0], values["p_1"][0]) == pytest.approx((0.5e-6, 2.5e-6), rel=1e-3)


SIZES = (1, 64, 256, 1024, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288)


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_asking_first_is_in_the_overhead_and_shares_nothing(noise):
    """A machine that waits 12 µs for an answer above 8 KiB: o_1(m) jumps by them, L_1 does not, at any τ."""
    machine = truth("taulop")

    def asking(case):
        between = not case["pair"].endswith(".same")
        return 12e-6 if between and case["bytes"] > 8192 else 0.0

    times = {
        "ring": lambda case: machine.times["ring"](case) + asking(case),
        "prtt": lambda case: machine.times["prtt"](case) + 2 * asking(case),
        "pairprtt": lambda case: machine.times["pairprtt"](case) + 2 * asking(case),
    }
    asks = replace(machine, times=machine.times | times, sizes=SIZES)
    fitted = as_parameters(family("taulop"), family("taulop").fit(observed(asks, "taulop", noise=noise)))
    close = 1e-3 if noise == 0 else 0.1
    assert fitted.forms["o_1"] == "piecewise"
    assert fitted.values["o_1.x1"].value == 8192
    assert fitted.values["o_1.a"].value == pytest.approx(5e-6, rel=close)
    assert fitted.values["o_1.a1"].value == pytest.approx(17e-6, rel=close)
    assert fitted.forms["o_0"] == "constant"
    assert fitted.values["L_1.16384x1"].value == pytest.approx(8e-10 * 16384, rel=close)
    sixteen = Schedule.of(32, 0, np.arange(16), np.arange(16, 32), 16384)
    fitted = replace(fitted, settings={**fitted.settings, "shared": "channel"})
    (cost,) = costs(family("taulop"), sixteen, fitted, drawn=False)
    assert cost == pytest.approx(17e-6 + 2 * 8e-10 * 16384 * (1 + 0.7 * 7), rel=close / 3)


def test_a_transfer_that_was_slower_at_a_smaller_size_is_drawn_as_it_is_priced():
    slow, machine = 5e-5, truth("taulop")

    def ring(case):
        odd = case["bytes"] == 1024 and case["procs"] == 4 and not case["pair"].endswith(".same")
        return slow if odd else machine.times["ring"](case)

    bent = replace(machine, times=machine.times | {"ring": ring})
    fitted = as_parameters(family("taulop"), family("taulop").fit(observed(bent, "taulop")))
    drawn = next(curve for curve in fitted.curves if curve.title.startswith("between") and "4 at once" in curve.title)
    place = drawn.x.index(1024)
    assert drawn.measured[place] == pytest.approx(slow)
    assert drawn.fitted[place] == pytest.approx(fitted.values["o_1.a"].value + fitted.values["L_1.1024x4"].value)
    assert drawn.fitted[place] == drawn.fitted[place + 1] < slow
    assert "levelled" in fitted.values["L_1.1024x4"].note
    assert not fitted.values["L_1.1024x4"].known
    assert fitted.values["L_1.1024x1"].known
