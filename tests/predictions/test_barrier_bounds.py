"""LoP's lower bound for barriers, and the dissemination that `advise` recommends."""

from itertools import product

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.advice.alternatives import list_algorithms
from commodel.cli import main
from commodel.models.families.lop import time_rounds
from commodel.parameters import ParameterSet
from commodel.predictions.barrier_bounds import find_lower_bound, list_radices
from commodel.predictions.model import Model
from commodel.predictions.predictions import predict
from tests.models.exact import estimates
from tests.patterns.catalogue import point

NUMBERS = st.floats(1e-7, 2e-5)


@st.composite
def machines(draw):
    """Draw a LoP set whose round trips per message fall and rise again, as on the paper's network,
    for any way of posting."""
    posting = draw(st.sampled_from(["isend", "list", "put"]))
    rtt, o = {"isend": ("rtt", "o_s"), "list": ("rtt_list", "o_list"), "put": ("rtt_put", "o_put")}[
        posting
    ]
    values = {
        f"{name}.{letter}": draw(NUMBERS)
        for name, letters in ((rtt, "abd"), (o, "ab"))
        for letter in letters
    }
    values |= {
        f"{rtt}.c": 0.4,
        f"{rtt}.e": -draw(st.floats(0.01, 1)),
        f"{rtt}.f": 1.0,
        f"{o}.c": 0.4,
    }
    numbers = estimates(values)
    settings = {"posting": posting, "latency": draw(st.sampled_from(["halved", "printed"]))}
    return ParameterSet("lop", "", "", numbers, settings=settings)


@given(machines(), st.integers(2, 40))
def test_no_barrier_is_faster_than_the_bound(machine, ranks):
    points = [
        point("barrier", choice, ranks=ranks, bytes=0)
        for choice in list_algorithms("barrier", ranks, 0)
    ]
    predictions = [prediction.seconds for prediction in predict(machine, points)]
    assert min(predictions) >= find_lower_bound(machine, ranks).seconds * (1 - 1e-9)


@settings(max_examples=40)
@given(machines(), st.integers(2, 30))
def test_the_bound_is_the_fastest_sequence_of_rounds(machine, ranks):
    """The reference tries all sequences of partner counts by which every rank is reached."""
    seconds = time_rounds(Model.of_set(machine).values, np.arange(1, ranks))
    first, wire = seconds.first[0], seconds.wire[0]
    least = [
        min(first[m] + max(wire[m], wire[n]) for m in range(ranks - 1)) for n in range(ranks - 1)
    ]
    rounds = range(1, 1 + int(np.ceil(np.log2(ranks))))
    cheapest = np.inf
    for count in rounds:
        for partners in product(range(1, ranks), repeat=count) if ranks**count < 30_000 else ():
            if np.prod(np.array(partners) + 1) >= ranks:
                cheapest = min(cheapest, sum(least[n - 1] for n in partners))
    bound = find_lower_bound(machine, ranks)
    assert bound.seconds <= cheapest * (1 + 1e-12)
    assert bound.seconds == pytest.approx(sum(least[n - 1] for n in bound.partners))
    assert np.prod(np.array(bound.partners) + 1) >= ranks
    if ranks <= 8:
        assert bound.seconds == pytest.approx(cheapest)


def test_radices_are_the_fewest_for_every_number_of_rounds():
    assert list_radices(64) == [2, 3, 7, 63]
    assert list_radices(2) == []
    assert list_radices(1000) == [2, 3, 5, 9, 31, 999]
    assert list_radices(1 << 20, 1 << 22) == [2, 3, 4]


@pytest.mark.parametrize(
    ("ranks", "bound_text"),
    [
        (
            16,
            "a barrier is 12.6 µs (its rounds reach 4·4 ranks); n-way:3 is the best dissemination, 0 % above it",
        ),
        (
            64,
            "a barrier is 19 µs (its rounds reach 4·4·4 ranks); n-way:3 is the best dissemination, 0 % above it",
        ),
    ],
)
def test_advice_on_a_barrier_has_the_lower_bound(ranks, bound_text):
    """The parameter set is that of the paper's network with RDMA writes."""
    params = "params/published/lop/infiniband-rdma-write.yaml"
    arguments = ["advise", "--operation", "barrier", "--ranks", str(ranks), "--params", params]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert "use n-way:3, block:1 (" in result.output
    assert bound_text in result.output
    assert "58 % below the plain one" in result.output
