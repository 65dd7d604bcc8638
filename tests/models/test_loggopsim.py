"""LogGOPS in the convention of LogGOPSim has the finish times that the simulator had: `recorded/loggopsim.csv`, made by
tests/bench/loggopsim.py. Each row: ns, ns/B and bytes, and when the last rank is done."""

import csv
from pathlib import Path

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.models.families import complete, family
from commodel.models.parameter_sets import set_given
from commodel.models.pricing import native_replay, simulator
from commodel.models.pricing.values import Values
from commodel.patterns.build import schedule
from commodel.patterns.schedule import Schedule
from commodel.predictions.predictions import predict
from tests.bench.loggopsim import MACHINES, Case, Machine, finish
from tests.patterns.catalogue import point

RECORDED = Path(__file__).parent / "recorded" / "loggopsim.csv"
NUMBERS = ("ranks", "bytes", *Machine.__dataclass_fields__, "finish")


def recorded():
    with RECORDED.open(newline="") as file:
        rows = [row | {name: int(row[name]) for name in NUMBERS} for row in csv.DictReader(file)]
    for row in rows:
        case = Case(row["operation"], row["choice"], row["ranks"], row["bytes"])
        yield case, Machine(*(row[name] for name in Machine.__dataclass_fields__)), row["finish"]


def without_library(monkeypatch):
    monkeypatch.setattr(native_replay, "library", lambda: None)


@pytest.mark.parametrize("native", [True, False])
def test_it_ends_when_the_simulator_did(monkeypatch, native):
    if native and native_replay.library() is None:
        pytest.skip("libprices.so is not built")
    if not native:
        without_library(monkeypatch)
    rows = list(recorded())
    assert len(rows) > 250
    differing = [row for row in rows if finish(row[0].schedule(), row[1]).max() != pytest.approx(row[2], rel=1e-9)]
    assert not differing


def test_the_stepwise_convention_has_other_times():
    values = ["L=2500ns", "o=1500ns", "g=1000ns", "G=6ns"]
    wanted = [point("bcast", "chain:100", ranks=8, bytes=1000)]
    stepwise, simulated = (
        predict(set_given("loggops", [*values, *more]), wanted)[0].seconds for more in ([], ["convention=loggopsim"])
    )
    assert stepwise != pytest.approx(simulated, rel=0.5)
    assert simulated == pytest.approx(finish(schedule(wanted[0]).whole, MACHINES[0]).max() * 1e-9, rel=1e-9)


def test_draws_and_sizes_are_played_one_by_one():
    pattern = schedule(point("allreduce", "ring", ranks=5, bytes=1000)).whole
    sizes = np.array([1, 700])[:, None, None]
    stack = pattern.resized(np.broadcast_to(sizes, (2, 1, len(pattern.src))), pattern.work.bytes)
    texts = ["L=1us", "o=100ns", "g=500ns", "G=2ns", "O=1ns", "gamma=3ns", "convention=loggopsim"]
    values = complete(family("loggops"), Values.of(set_given("loggops", texts)))
    drawn = Values({**values.numbers, "L": np.array([[1e-6], [7e-6]])}, settings=values.settings)
    times = family("loggops").price(stack, drawn)
    assert times.shape == (2, 2, 5)
    for at, L in np.ndindex(2, 2):
        own = Values({**values.numbers, "L": drawn["L"][L : L + 1]}, settings=values.settings)
        alone = pattern.resized(stack.bytes[at, 0], pattern.work.bytes)
        assert (family("loggops").price(alone, own)[0] == times[at, L]).all()


@pytest.mark.parametrize("native", [True, False])
def test_equal_times_are_equal_in_every_unit(monkeypatch, native):
    """Twice and half of all parameters double and halve the times, where a tie decides who is first."""
    if not native:
        without_library(monkeypatch)
    pattern = schedule(point("alltoall", "linear", ranks=6, bytes=64)).whole
    once, scaled = (
        finish(pattern, Machine(*(factor * value for value in (700, 100, 300, 3, 1)), S=10**6)) for factor in (1, 10)
    )
    assert scaled == pytest.approx(10 * once, rel=1e-12)


def test_ranks_that_wait_for_each_other_are_refused():
    """Above S both wait until they are received, and receive only then."""
    pattern = Schedule.of(2, 0, [0, 1], [1, 0], 8)
    operations = simulator.Operations.of(pattern, np.zeros(0, dtype=bool))
    first, after = operations.done
    waiting = np.where(operations.kind == simulator.RECEIVE, 1, operations.waits)  # for what never comes
    stuck = simulator.Operations(
        *(getattr(operations, name) for name in ("rank", "kind", "row", "peer", "match")),
        waiting,
        operations.started,
        (first, after),
    )
    times, _ = simulator.Times.of(dict.fromkeys(("L", "o", "g", "G", "O"), 1e-6), 10**6, np.array([7, 7]), np.zeros(0))
    with pytest.raises(UserError, match="ranks wait for each other"):
        simulator.played(stuck, times, 2)


def test_a_convention_that_is_none():
    with pytest.raises(UserError, match="setting convention: found 'simgrid', wanted stepwise or loggopsim"):
        set_given("loggops", ["L=1us", "o=1us", "g=1us", "G=1ns", "convention=simgrid"])
