"""The time between waves of a stream: closed forms, and the slow replay of the repeated schedule."""

import numpy as np
import pytest

from commodel.advice.waves import Stream, repeated
from commodel.models.families import complete, family, family_names
from commodel.models.pricing.values import Values
from commodel.patterns.build import schedule
from commodel.price.model import Model
from tests.patterns.catalogue import point


def between(name, pattern, forms=None, **numbers):
    values = Values({key: np.array([[float(value)]]) for key, value in numbers.items()}, forms or {})
    found = Stream(pattern).period(Model.of(family(name), values))
    return None if found is None else float(np.ravel(found)[0])


def reduce(topology):
    return schedule(point("reduce", topology=topology, bytes=1))


@pytest.mark.parametrize("leaves", [1, 4, 16])
@pytest.mark.parametrize(("o", "g"), [(2.0, 1.0), (2.0, 5.0)])
def test_a_front_end_that_takes_all_itself(leaves, o, g):
    """One message of each leaf, each max(g, o) after the last."""
    assert between("loggp", reduce(f"flat:{leaves}"), L=10, o_s=o, o_r=o, g=g, G=0) == pytest.approx(leaves * max(g, o))


@pytest.mark.parametrize("height", [2, 7])
def test_a_chain_is_as_fast_as_one_of_its_nodes(height):
    """A node takes a message and sends one, however many there are above it."""
    found = between("loggp", reduce(f"chain:{height}"), L=10, o_s=2, o_r=3, g=1, G=0)
    assert found == pytest.approx(2 + 3)


@pytest.mark.parametrize(("topology", "busiest"), [("balanced:4x8", 8), ("balanced:8x4", 8), ("kary:2^5", 2)])
def test_the_busiest_node_sets_the_pace(topology, busiest):
    """It takes a message of each child; the root sends none, the others one."""
    found = between("loggp", reduce(topology), L=10, o_s=2, o_r=3, g=1, G=0)
    root = int(topology.partition(":")[2][0])
    assert found == pytest.approx(max(3 * root, 3 * busiest + 2 * (busiest > root or topology.startswith("kary"))))


def test_tan_has_an_equation_of_its_own():
    """L + max o(x + 1) + g."""
    found = between("tan", reduce("balanced:4x8"), {"o": "linear"}, L=10, **{"o.a": 1, "o.b": 0.5}, g=2)
    assert found == pytest.approx(10 + 1 + 0.5 * 9 + 2)


def test_families_that_add_up_steps_say_nothing():
    assert between("bsp", reduce("flat:4"), g=2, **{"l.a": 10}) is None


def test_independent_families_are_those_that_replay():
    replaying = {
        "cluster",
        "hloggp",
        "hockney",
        "lmo",
        "loggops",
        "loggp",
        "loggph",
        "logp",
        "mlognp",
        "plogp",
        "postal",
    }
    assert {name for name in family_names() if family(name).independent} == replaying


@pytest.mark.parametrize(("operation", "choice"), [("allreduce", "ring"), ("bcast", "chain:24"), ("alltoall", "bruck")])
def test_a_stream_costs_no_more_than_waves_one_by_one_and_no_less_than_its_last(operation, choice):
    pattern = schedule(point(operation, choice, ranks=7, bytes=100))
    machine = {"L": 9.0, "o_s": 2.0, "o_r": 1.0, "g": 3.0, "G": 0.1}
    values = complete(family("loggp"), Values({key: np.array([[value]]) for key, value in machine.items()}))
    one, five = (p.cost(family("loggp").price(p, values))[0] for p in (pattern, repeated(pattern, 5)))
    assert one < five <= 5 * (one + 3.0 + 0.1 * 100)
    assert repeated(pattern, 5).work.bytes.sum() == 5 * pattern.work.bytes.sum()
    np.testing.assert_array_equal(repeated(pattern, 1).step, pattern.step)
