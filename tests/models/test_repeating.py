"""Repeated rounds, predicted by symmetry and fast-forward, compared with the replay of all
messages."""

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.models.evaluation import repeated_rounds
from commodel.models.evaluation.taulop_algebra import SETTINGS
from commodel.models.evaluation.values import Values
from commodel.models.families import find_family, list_family_names
from commodel.patterns import build
from commodel.patterns.repeated import CompactSchedule, Rounds
from commodel.predictions.model import Model
from commodel.predictions.predictions import repeat_waves
from tests.models.taulop_terms import parameters, table
from tests.models.test_contract import fitted_set
from tests.patterns.catalogue import ALGORITHMS, point

NODES = 18  # that the families with types of nodes know


def long(operation, choice, ranks, size, node=None):
    """Return a schedule with compact rounds, however few messages it has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "MAX_EXPANDED_MESSAGES", 0)
        pattern = build.build_schedule(point(operation, choice, ranks=ranks, bytes=size))
    return pattern if node is None else pattern.place(node)


REPEATING = [key for key in ALGORITHMS if isinstance(long(*key, 6, 100), CompactSchedule)]


def rounds_of(pattern):
    return [part for part in pattern.parts if isinstance(part, Rounds)]


@st.composite
def places(draw, ranks):
    nodes = draw(st.integers(1, min(ranks, NODES)))
    per_node = -(-ranks // nodes)
    how = draw(st.sampled_from(["block", "cyclic", "pairs", "random"]))
    rank = np.arange(ranks)
    if how == "random":
        return np.array(draw(st.lists(st.integers(0, nodes - 1), min_size=ranks, max_size=ranks)))
    return {"block": rank // per_node, "cyclic": rank % nodes, "pairs": rank // 2 % nodes}[how]


@st.composite
def machines(draw, name):
    """Draw a model with three draws of random values far from any fit. Some values are 0, but no
    rates."""
    values = Values.of(fitted_set(name, noise=0.05), 2)
    rng = np.random.default_rng(draw(st.integers(0, 1 << 20)))
    spared = {
        parameter.name for parameter in find_family(name).parameters if parameter.unit == "B/s"
    }
    factors = {
        key: np.exp(rng.uniform(-3, 3, (3, 1)))
        * (rng.random() > 0.15 or key in spared or (not key.islower() and name == "loggops"))
        for key in values.numbers
    }
    if name == "cluster" and draw(st.booleans()):
        factors.pop("B_L", None)
    kept = (
        "packet",
        "S",
        "capacity",
        "B_L",
        "timeout",
        *(f"{letter}{number}" for letter in "ijk" for number in "123"),
    )
    numbers = {
        key: column * (1 if key in kept or ".x" in key else factors.get(key, 1))
        for key, column in values.numbers.items()
        if key in factors
    }
    return Model.of(find_family(name), Values(numbers, values.forms, values.settings))


@pytest.mark.parametrize("name", list_family_names())
@settings(max_examples=30)
@given(st.data())
def test_predictions_of_a_compact_schedule_equal_predictions_of_the_expanded_one(name, data):
    operation, choice = data.draw(st.sampled_from(REPEATING))
    ranks = data.draw(st.integers(3, 48))
    size = data.draw(st.sampled_from([0, 1, 7, ranks, 100, 1000, 5000, 64 * ranks]))
    pattern = long(operation, choice, ranks, size, data.draw(places(ranks)))
    model = data.draw(machines(name))
    if not isinstance(pattern, CompactSchedule):
        return
    try:
        plain = model.family.predict(pattern.whole, model.values)
    except UserError as error:  # it knows no values for ranks that share a node
        # of several missing values either is named
        without_pair = re.escape(error.message.split(" for ")[0])
        with pytest.raises(UserError, match=without_pair):
            model.family.predict(pattern, model.values)
        return
    quick, plain = np.broadcast_arrays(model.family.predict(pattern, model.values), plain)
    np.testing.assert_allclose(quick, plain, rtol=1e-11, atol=1e-22)
    limits = model.family.limits or (lambda *_: "")
    assert limits(pattern, model.values) == limits(pattern.whole, model.values)


def test_rounds_with_equal_arrivals_but_other_departures_are_predicted_exactly():
    """In two rounds every node receives the same blocks, but different blocks share a port at
    departure."""
    pattern = long("reduce-scatter", "pairwise", 7, 3, np.array([2, 1, 5, 5, 4, 6, 6]))
    model = Model.of_set(parameters({"shared": "port"}, **table(0.0, 0.0, 0.0, 1.0)))
    assert model.cost(pattern) == pytest.approx(model.cost(pattern.whole), rel=1e-12)


@settings(max_examples=60)
@given(st.data())
def test_every_reading_of_taulop_equals_that_of_the_expanded_schedule(data):
    operation, choice = data.draw(st.sampled_from(REPEATING))
    ranks, size = data.draw(st.integers(3, 24)), data.draw(st.sampled_from([0, 7, 1000, 5000]))
    pattern = long(operation, choice, ranks, size, data.draw(places(ranks)))
    model = data.draw(machines("taulop"))
    reading = {name: data.draw(st.sampled_from(choices)) for name, choices in SETTINGS.items()}
    if reading["shared"] == "port":
        reading["join"] = "no"  # another is refused
    values = Values(model.values.numbers, model.values.forms, model.values.settings | reading)
    quick, plain = (model.family.predict(form, values) for form in (pattern, pattern.whole))
    np.testing.assert_allclose(quick, plain, rtol=1e-11, atol=1e-22)
    assert model.family.limits(pattern, values) == model.family.limits(pattern.whole, values)


@pytest.mark.parametrize(("operation", "choice"), REPEATING)
def test_the_symmetry_flags_of_rounds_hold_for_receivers_and_blocks(operation, choice):
    for ranks in range(3, 17):
        for rounds in rounds_of(long(operation, choice, ranks, 1000)):
            rank = np.arange(ranks)
            for number in range(rounds.count):
                to = rounds.receiver(number, rank)
                assert sorted(to) == list(rank)
                assert (to != rank).all()
                assert (
                    rounds.receiver(number, (rank + rounds.shift) % ranks)
                    == (to + rounds.shift) % ranks
                ).all()
                if rounds.periodic:
                    assert (rounds.receiver(number + rounds.shift, rank) == to).all()
                if rounds.relays_blocks:
                    block = rounds.block(number, rank)
                    assert sorted(block) == list(rank)
                    assert (rounds.block(number + 1, (rank + 1) % ranks) == block).all()
                if rounds.receivers_advance:
                    assert (rounds.receiver(number + 1, rank) == (to + 1) % ranks).all()
                if rounds.bit_flip_symmetric:
                    bits = 1 << np.arange(ranks.bit_length() - 1)
                    assert (
                        rounds.receiver(number, rank ^ bits[:, None]) == to ^ bits[:, None]
                    ).all()
                if not rounds.equal_sizes and not rounds.relays_blocks:  # each gets its own
                    assert (rounds.block(number, rank) == to).all()


@pytest.mark.parametrize(("operation", "choice"), REPEATING)
@pytest.mark.parametrize("waves", [2, 3])
def test_predictions_of_repeated_waves_equal_predictions_of_the_expanded_schedule(
    operation, choice, waves
):
    pattern = long(operation, choice, 9, 1000, np.arange(9) // 2)
    model = Model.of_set(fitted_set("loggp"))
    several = repeat_waves(pattern, waves)
    assert isinstance(several, CompactSchedule)
    np.testing.assert_allclose(model.cost(several), model.cost(several.whole), rtol=1e-12)
    assert several.last_step == several.whole.last_step


@given(st.integers(2, 40), st.data())
@example(12, None)
def test_symmetry_is_the_least_there_is(ranks, data):
    """The period is compared with its definition: the smallest rotation of ranks that preserves
    common nodes, common leaves and node types."""
    node = np.arange(ranks) // 2 if data is None else data.draw(places(ranks))
    node = np.unique(node, return_inverse=True)[1]
    leaf = node // (2 if data is None else data.draw(st.integers(1, 4)))
    types = np.zeros(ranks, dtype=int) if data is None or data.draw(st.booleans()) else node % 2
    alike = types[:, None] == types[None]
    same = (node[:, None] == node).astype(int) + (leaf[:, None] == leaf)

    def looks_alike(apart):
        turned = np.roll(np.arange(ranks), -apart)
        return (same[np.ix_(turned, turned)] == same).all() and (types[turned] == types).all()

    least = next(
        apart for apart in range(1, ranks + 1) if ranks % apart == 0 and looks_alike(apart)
    )
    assert repeated_rounds.find_rotation_period(ranks, 1, [node, leaf], types) == least
    assert alike.shape == same.shape


@given(st.integers(1, 6), st.data())
def test_flip_period_is_the_smallest(bits, data):
    """The period is compared with its definition: all flips of bits by multiples of the period
    preserve common nodes and node types."""
    ranks = 1 << bits
    node = np.unique(data.draw(places(ranks)), return_inverse=True)[1]
    types = node % data.draw(st.integers(1, 2))
    rank, same = np.arange(ranks), node[:, None] == node

    def looks_alike(apart):
        flips = (rank ^ mask for mask in range(apart, ranks, apart))
        return all(
            (same[np.ix_(to, to)] == same).all() and (types[to] == types).all() for to in flips
        )

    least = next(1 << bit for bit in range(bits + 1) if looks_alike(1 << bit))
    assert repeated_rounds.find_flip_period([node], types) == least


LOG_ROUNDS = [("barrier", "dissemination"), ("allreduce", "recursive-doubling")]


@pytest.mark.parametrize(("operation", "choice"), LOG_ROUNDS)
@pytest.mark.parametrize(
    "name", ["hockney", "logp", "loggp", "loggops", "plogp", "postal", "lop", "cluster"]
)
@pytest.mark.parametrize("layout", ["one", "block", "cyclic", "uneven"])
def test_one_orbit_is_equal_to_the_last_digit(operation, choice, name, layout):
    for ranks in (4, 32, 64, 128):
        rank = np.arange(ranks)
        nodes = {
            "one": rank,
            "block": rank // 4,
            "cyclic": rank % 4,
            "uneven": np.maximum(rank - 2, 0) // 3,
        }
        pattern = long(operation, choice, ranks, 1000, nodes[layout])
        assert isinstance(pattern, CompactSchedule)
        model = Model.of_set(fitted_set(name))
        assert (
            model.family.predict(pattern, model.values)
            == model.family.predict(pattern.whole, model.values)
        ).all()


@pytest.mark.parametrize(("operation", "choice"), LOG_ROUNDS)
@pytest.mark.parametrize("per_node", [1, 64])
def test_rounds_of_a_million_ranks_are_not_expanded(operation, choice, per_node):
    """All ranks form one symmetry orbit if each rank has its own node, or if the ranks of a node
    are neighbours in a hypercube."""
    pattern = long(operation, choice, 1 << 20, 8, np.arange(1 << 20) // per_node)
    (placed,) = repeated_rounds.place_rounds(pattern).values()
    assert placed.period == (1 if per_node == 1 or choice == "recursive-doubling" else per_node)
    assert Model.of_set(fitted_set("loggp")).cost(pattern) > 0
    assert "whole" not in vars(pattern)


@given(st.integers(0, 1 << 20), st.integers(1, 9), st.integers(0, 3000))
def test_fast_forward_of_repeated_rounds_equals_rounds_one_by_one(seed, ranks, times):
    """The function is any (max, +) linear map of clocks; the expected result applies it once per
    round."""
    rng = np.random.default_rng(seed)
    costs = np.where(
        rng.random((2, ranks, ranks)) < 0.6, rng.integers(0, 9, (2, ranks, ranks)), -np.inf
    )
    # a clock never runs back
    costs[:, np.arange(ranks), np.arange(ranks)] = rng.integers(0, 9, (2, ranks))
    start = rng.integers(0, 50, (2, ranks)).astype(float)
    calls = 0

    def f(state):
        nonlocal calls
        calls += 1
        return (state + costs).max(axis=-1)[:, None, :]

    ends = repeated_rounds.fast_forward(f, start[:, None, :], times)[:, 0]
    expected = start
    for _ in range(times):
        expected = (expected[:, None, :] + costs).max(axis=-1)
    np.testing.assert_allclose(ends, expected, rtol=1e-12)


def test_few_rounds_are_replayed():
    pattern = long("allreduce", "ring", 4096, 1 << 16)
    model = Model.of_set(fitted_set("loggp"))
    calls = 0
    placed = next(iter(repeated_rounds.place_rounds(pattern).values()))

    def counted(state, batch):
        nonlocal calls
        calls += len(batch.rounds)
        assert batch.rounds[0].source.shape == (1,)
        return state + len(batch.rounds)

    ends = placed.run(np.zeros((1, 4096)), counted)
    assert (ends == 4095).all()
    assert calls < 10
    assert model.cost(pattern) > 0
    assert "whole" not in vars(pattern)  # nor written out


@pytest.mark.parametrize("at_once", [1, 100, 1 << 14])
@pytest.mark.parametrize("key", [key for key in REPEATING if key not in LOG_ROUNDS])
def test_rounds_without_symmetry_are_replayed_in_batches(monkeypatch, key, at_once):
    """Nodes of 5 ranks, the last one of 2: no rank represents another. Blocks differ by a byte.
    Batches of any size are equal to the expanded schedule, to the last digit, and each round is
    replayed once."""
    ranks = 37
    monkeypatch.setattr(repeated_rounds, "MAX_BATCH_ENTRIES", at_once)
    pattern = long(*key, ranks, 64 * ranks + 5, np.arange(ranks) // 5)
    model = Model.of_set(fitted_set("loggp"))
    assert (
        model.family.predict(pattern, model.values)
        == model.family.predict(pattern.whole, model.values)
    ).all()
    for rounds, placed in repeated_rounds.place_rounds(pattern).items():
        batches = []
        placed.run(
            np.zeros((1, ranks)),
            lambda state, batch, batches=batches: batches.append(batch) or state + 1,
        )
        assert sum(len(batch.rounds) for batch in batches) == rounds.count
        assert len(batches) == -(-rounds.count // max(at_once // ranks, 1))
