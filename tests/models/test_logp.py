"""LogP and its relatives: finite capacity, fits to trees, the threshold S of LogGOPS, finish times
of LogGOPSim (`recorded/loggopsim.csv`, written by benchmarks/loggopsim.py, in ns, ns/B and bytes),
and parametrised LogP with probes of an overhead that include waiting."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.loggopsim import MACHINES, Case, Machine
from benchmarks.loggopsim import predict_finish_times as predict_as_loggopsim
from commodel.errors import UserError
from commodel.models.evaluation.values import Values
from commodel.models.families import complete_values, find_family
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.build import build_schedule
from commodel.patterns.operations import find_base_name, list_operations
from commodel.patterns.schedule import Schedule, stack_schedules
from commodel.predictions.predictions import predict
from tests.models.synthetic import LOGGP, Truth, fit_machine, loggp_times, observed, truth
from tests.models.test_replay import schedules
from tests.models.truths.loggops import LOGGOPS, loggops_times
from tests.models.truths.plogp import o_s
from tests.patterns.catalogue import catalogue, point
from tests.patterns.rank_local import built, programs


def finish_logp(pattern, L, o, g, capacity="finite", gamma=0.0) -> np.ndarray:
    numbers = {
        name: np.array([[float(value)]])
        for name, value in {"L": L, "o": o, "g": g, "gamma": gamma}.items()
    }
    values = complete_values(find_family("logp"), Values(numbers, settings={"capacity": capacity}))
    return find_family("logp").predict(pattern, values)[0]


@pytest.mark.parametrize(("L", "o", "g"), [(10, 2, 4), (10, 2, 10), (10, 1, 3), (8, 3, 2)])
def test_many_to_one(L, o, g):
    """⌈L/g⌉ messages leave at o. Each further message leaves when one message has left the network:
    at o + L + k·g. The root finishes at the same time as without the limit."""
    senders, limit = 12, -(-L // g)
    pattern = build_schedule(point("gather", "linear", ranks=senders + 1, bytes=1))
    finished = finish_logp(pattern, L, o, g)
    stalled = [o + L + k * g for k in range(senders - limit)]
    assert sorted(finished[1:]) == pytest.approx([o] * limit + stalled)
    assert finish_logp(pattern, L, o, g, "unlimited")[1:] == pytest.approx(o)
    assert finished[0] == pytest.approx(finish_logp(pattern, L, o, g, "unlimited")[0])


def test_a_stalled_sender_sends_the_next_message_later():
    """Five ranks send to rank 0, then each to another rank. With L = 10 and g = 5, two messages to
    rank 0 may be in flight. The third leaves at 2 + 10, the fifth at 2 + 20."""
    pattern = Schedule.of(11, [0] * 5 + [1] * 5, [1, 2, 3, 4, 5] * 2, [0] * 5 + [6, 7, 8, 9, 10], 1)
    finished = finish_logp(pattern, 10, 2, 5)
    assert finished[6:] == pytest.approx(
        [5 + 2 + 12, 5 + 2 + 12, 12 + 3 + 14, 17 + 3 + 14, 22 + 3 + 14]
    )
    assert finish_logp(pattern, 10, 2, 5, "unlimited")[6:] == pytest.approx([5 + 2 + 12] * 5)


@given(schedules(), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_never_sooner_than_without_a_limit(pattern, L, o, g):
    limited, free = (
        finish_logp(pattern, L, o, g, capacity, gamma=2.0) for capacity in ("finite", "unlimited")
    )
    assert np.all(limited >= free - 1e-9)
    if not g:
        np.testing.assert_allclose(limited, free)


@given(schedules(), st.integers(0, 40), st.integers(1, 40))
def test_a_network_that_holds_all_is_the_replays(pattern, o, g):
    """The capacity ⌈L/g⌉ exceeds the number of messages."""
    limited, free = (
        finish_logp(pattern, 10_000, o, g, capacity, gamma=2.0)
        for capacity in ("finite", "unlimited")
    )
    np.testing.assert_allclose(limited, free, rtol=1e-12)


@pytest.mark.parametrize(
    "entry", [entry for entry in catalogue(7, 1000) if entry.operation in ("bcast", "allgather")]
)
def test_without_concurrent_messages_to_one_rank_no_sender_stalls(entry):
    pattern = build_schedule(entry)
    into_one = np.unique(pattern.step * pattern.ranks + pattern.dst, return_counts=True)[1].max()
    if into_one == 1:
        np.testing.assert_allclose(
            finish_logp(pattern, 10, 2, 4), finish_logp(pattern, 10, 2, 4, "unlimited")
        )


def test_stacks_of_sizes_are_predicted_like_single_sizes():
    several = [build_schedule(point("gather", "linear", ranks=9, bytes=size)) for size in (1, 8)]
    values = Values(
        {name: np.array([[2.0], [3.0]]) for name in "Log"}, settings={"capacity": "finite"}
    )
    values = complete_values(find_family("logp"), values)
    together = find_family("logp").predict(stack_schedules(several), values)
    single = find_family("logp").predict(several[0], values)
    np.testing.assert_allclose(
        np.broadcast_to(together, (2, 2, 9)), np.broadcast_to(single, (2, 2, 9))
    )


@given(programs(), st.integers(0, 40), st.integers(1, 40))
def test_ranks_that_take_later_than_others_send(program, o, g):
    """The capacity ⌈L/g⌉ exceeds the number of messages of a schedule with rank-local steps."""
    try:
        pattern = built(*program)
    except UserError:
        return  # a deadlock
    limited, free = (
        finish_logp(pattern, 10_000, o, g, capacity, gamma=2.0)
        for capacity in ("finite", "unlimited")
    )
    np.testing.assert_allclose(limited, free, rtol=1e-12)


SIZES = tuple(1 << power for power in range(19))


def fit(times, noise, seed=1):
    return find_family("loggops").fit(
        observed(Truth(times, {}, sizes=SIZES), "loggops", noise=noise, seed=seed)
    )


@pytest.mark.parametrize("noise", [0, 0.01])
@pytest.mark.parametrize("S", [600, 3000, 5000])
def test_the_threshold_lies_between_the_right_two_sizes(S, noise):
    fitted = fit(loggops_times(**LOGGOPS, S=S), noise)
    threshold = fitted.values["S"][0]
    assert threshold <= S < 2 * threshold
    assert "S" not in fitted.unidentified
    for key, value in LOGGOPS.items():
        assert fitted.values[key][0] == pytest.approx(value, rel=1e-3 + 5 * noise), key


@pytest.mark.parametrize("noise", [0, 0.01, 0.03])
@pytest.mark.parametrize("times", [loggops_times(**LOGGOPS), loggp_times(**LOGGP)])
def test_without_a_jump_there_is_no_threshold(times, noise):
    fitted = fit(times, noise)
    assert "S" not in fitted.values
    assert "256 KiB" in fitted.missing["S"]


def test_a_change_of_slope_is_no_jump():
    machine = loggops_times(**LOGGOPS)

    def prtt(case):
        faster = 1e-8 * max(case["bytes"] - 6000, 0) if not case["late"] else 0
        return machine["prtt"](case) - faster

    assert "S" not in fit(machine | {"prtt": prtt}, 0).values


def time_waiting_messages(case):
    """Return round trips of a machine on which messages above 1 KiB wait for the receiver without a
    handshake. With a late receiver, the measured overhead is then the time of the whole message."""
    prtt = loggops_times(**LOGGOPS)["prtt"]
    if case["late"] and case["bytes"] > 1024:
        return prtt({**case, "late": 0, "n": 1}) / 2
    return prtt(case)


def test_waiting_is_not_taken_for_overhead():
    fitted = fit(loggops_times(**LOGGOPS) | {"prtt": time_waiting_messages}, 0.01)
    assert "S" not in fitted.values
    for key, value in LOGGOPS.items():
        assert fitted.values[key][0] == pytest.approx(value, rel=0.06), key


def test_copies_of_small_messages_are_not_carried_on_where_bytes_cost_less():
    """From 3000 B on messages use rendezvous, and each further byte takes a quarter of the time.
    The largest round trip is fitted within 5 %."""
    machine = loggops_times(**LOGGOPS, S=3000)["prtt"]

    def prtt(case):
        with_overhead = machine(case)
        if case["bytes"] < 3000 or case["late"] or case["n"] > 1:
            return with_overhead
        return with_overhead - 2 * 0.75 * (2 * LOGGOPS["O"] + LOGGOPS["G"]) * (case["bytes"] - 3000)

    largest = fit(loggops_times(**LOGGOPS) | {"prtt": prtt}, 0).curves[0]
    assert largest.fitted[-1] == pytest.approx(largest.measured[-1], rel=0.05)


RECORDED = Path(__file__).parent / "recorded" / "loggopsim.csv"
NUMBERS = ("ranks", "bytes", *Machine.__dataclass_fields__, "finish")


def recorded():
    with RECORDED.open(newline="") as file:
        rows = [row | {name: int(row[name]) for name in NUMBERS} for row in csv.DictReader(file)]
    for row in rows:
        case = Case(row["operation"], row["alternative"], row["ranks"], row["bytes"])
        yield case, Machine(*(row[name] for name in Machine.__dataclass_fields__)), row["finish"]


def test_predictions_equal_the_finish_times_of_the_loggopsim_simulator():
    known = list_operations()
    rows = [row for row in recorded() if find_base_name(row[0].operation) in known]
    assert len(rows) > 250
    differing = [
        row
        for row in rows
        if predict_as_loggopsim(row[0].build_schedule(), row[1]).max()
        != pytest.approx(row[2], rel=1e-9)
    ]
    assert not differing


def test_the_stepwise_convention_has_other_times():
    values = ["L=2500ns", "o=1500ns", "g=1000ns", "G=6ns"]
    wanted = [point("bcast", "chain:100", ranks=8, bytes=1000)]
    stepwise, simulated = (
        predict(make_given_set("loggops", [*values, *more]), wanted)[0].seconds
        for more in ([], ["convention=loggopsim"])
    )
    assert stepwise != pytest.approx(simulated, rel=0.5)
    assert simulated == pytest.approx(
        predict_as_loggopsim(build_schedule(wanted[0]).whole, MACHINES[0]).max() * 1e-9, rel=1e-9
    )


def test_draws_and_sizes_are_played_one_by_one():
    pattern = build_schedule(point("allreduce", "ring", ranks=5, bytes=1000)).whole
    sizes = np.array([1, 700])[:, None, None]
    stack = pattern.resize(np.broadcast_to(sizes, (2, 1, len(pattern.src))), pattern.work.bytes)
    texts = ["L=1us", "o=100ns", "g=500ns", "G=2ns", "O=1ns", "gamma=3ns", "convention=loggopsim"]
    values = complete_values(find_family("loggops"), Values.of(make_given_set("loggops", texts)))
    drawn = Values({**values.numbers, "L": np.array([[1e-6], [7e-6]])}, settings=values.settings)
    times = find_family("loggops").predict(stack, drawn)
    assert times.shape == (2, 2, 5)
    for at, L in np.ndindex(2, 2):
        own = Values({**values.numbers, "L": drawn["L"][L : L + 1]}, settings=values.settings)
        single = pattern.resize(stack.bytes[at, 0], pattern.work.bytes)
        assert (find_family("loggops").predict(single, own)[0] == times[at, L]).all()


def test_equal_times_are_equal_in_every_unit():
    """If all parameters are multiplied by 10, so are the finish times, although the order of equal
    times matters."""
    pattern = build_schedule(point("alltoall", "linear", ranks=6, bytes=64)).whole
    once, scaled = (
        predict_as_loggopsim(
            pattern, Machine(*(factor * value for value in (700, 100, 300, 3, 1)), S=10**6)
        )
        for factor in (1, 10)
    )
    assert scaled == pytest.approx(10 * once, rel=1e-12)


MACHINE = truth("plogp")


def test_a_receiver_that_waits_is_not_busy_for_longer_than_the_gap():
    """Messages above 1 KiB wait for a late receiver: the measured receive overhead is then the time
    of the whole message."""

    def prtt(case):
        late = case["late"] and case["bytes"] > 1024
        return MACHINE.times["prtt"](case | {"late": 0, "n": 1} if late else case)

    machine = replace(MACHINE, times=MACHINE.times | {"prtt": prtt})
    fitted = find_family("plogp").fit(observed(machine, "plogp"))
    for size in (4096, 16384, 65536):
        assert fitted.values[f"o_r.{size}"][0] == fitted.values[f"g.{size}"][0]
        assert "the part beyond the gap is waiting" in fitted.notes[f"o_r.{size}"]
    half = fitted.curves[0]
    assert max(abs(a / b - 1) for a, b in zip(half.fitted, half.measured, strict=True)) < 0.01


def test_changed_samples_are_drawn_and_noted_with_the_cause():
    """Measured overheads of 4 µs and then 0 are both fitted as 2 µs. The curve and the note of the
    value state this."""
    overheads = {1: 1e-6, 16: 1e-6, 256: 4e-6, 1024: 0.0}

    def o_r(size):
        return overheads.get(size, 5e-6)

    def prtt(case):
        return (
            MACHINE.times["prtt"](case)
            if not case["late"]
            else o_s(case["bytes"]) + o_r(case["bytes"])
        )

    machine = replace(MACHINE, times=MACHINE.times | {"prtt": prtt})
    parameters = fit_machine("plogp", machine)
    drawn = next(curve for curve in parameters.curves if curve.title == "receive overhead")
    np.testing.assert_allclose(
        drawn.measured, [o_r(size) for size in drawn.x], rtol=1e-9, atol=1e-15
    )
    np.testing.assert_allclose(
        drawn.fitted, [parameters.values[f"o_r.{size:.0f}"].value for size in drawn.x], rtol=1e-9
    )
    assert drawn.r2 < 0.9
    for size, measured in ((256, "4 µs"), (1024, "0 s")):
        sample = parameters.values[f"o_r.{size}"]
        assert sample.value == pytest.approx(2e-6)
        assert not sample.known
        assert sample.note == (
            f"samples fall with the size, which the model excludes: measured {measured}, fitted 2 µs"
        )
    assert all(
        parameters.values[f"{name}.{size}"].known
        for name, size in (("o_r", 1), ("o_r", 4096), ("g", 256))
    )
