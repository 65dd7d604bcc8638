"""Hockney on a network of several levels, mlognP on platforms with free copies, and the performance
model normal form."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.fits.table_fits import fit_measured
from commodel.hierarchy import Hierarchy
from commodel.models.families import find_family
from commodel.models.parameter_sets import make_given_set
from commodel.models.probes import Site
from commodel.patterns.build import build_schedule
from commodel.patterns.schedule import Schedule
from commodel.predictions.predictions import predict
from tests.models.synthetic import costs, fit_machine, fitted_set, truth
from tests.patterns.catalogue import point

LEVELS = Hierarchy.written({"leaf": 4}, 24)
NEAR, FAR, PER_BYTE = 5e-6, 20e-6, 1e-9
FLAT = make_given_set("hockney", [f"alpha={NEAR}s", f"beta={PER_BYTE}s"])
FAR_OFF = {"alpha.beyond.a": replace(FLAT.values["alpha.a"], value=FAR, low=FAR, high=FAR)}
SETTINGS = {
    "levels": LEVELS.group_lists,
    "probed_classes": ["leaf", "beyond"],
    "classes": ["beyond"],
}
BY_CLASS = replace(FLAT, values={**FLAT.values, **FAR_OFF}, settings=SETTINGS)


def predicted(parameters, algorithm, ranks, size):
    (prediction,) = predict(parameters, [point("bcast", algorithm, ranks=ranks, bytes=size)])
    return prediction


@pytest.mark.parametrize("ranks", [4, 9])
def test_messages_of_a_port_add_up_with_the_values_of_each_distance_class(ranks):
    near = min(ranks, 4) - 1
    closed = near * NEAR + (ranks - 1 - near) * FAR + (ranks - 1) * 1000 * PER_BYTE
    assert predicted(BY_CLASS, "linear", ranks, 1000).seconds == pytest.approx(closed)


def chain(parts):
    """Return the time of a chain of segments of 20,000 bytes over five ranks, the last one distant:
    with and without ports that are busy during the latency."""
    hops, last = [NEAR + 20e-6] * 3, FAR + 20e-6
    return sum(hops) + last + (parts - 1) * last, sum(hops) + last + (parts - 1) * 20e-6


@pytest.mark.parametrize("parts", [1, 2, 3, 30])
def test_a_stream_with_ports_waiting_for_latency_is_flagged_with_the_share(parts):
    prediction = predicted(BY_CLASS, "chain:20kB", 5, 20_000 * parts)
    whole, without = chain(parts)
    assert prediction.seconds == pytest.approx(whole)
    share = 1 - without / whole
    validity = f"overlap not modelled: ports wait for α in up to {share:.0%} of it"
    assert prediction.validity_text == (validity if share >= 0.1 else "valid")


def test_messages_that_wait_for_each_other_are_not_flagged():
    assert predicted(BY_CLASS, "binomial", 2, 8).validity_text == "valid"


def test_sizes_of_a_stack_are_flagged_each_by_itself():
    points = [point("bcast", "linear", ranks=3, bytes=size) for size in (8, 10_000_000)]
    assert [
        predictions.validity_text.partition(":")[0] for predictions in predict(BY_CLASS, points)
    ] == [
        "overlap not modelled",
        "valid",
    ]


def test_where_no_latency_is_of_a_class_nothing_is_stated():
    assert predicted(FLAT, "linear", 9, 8).validity_text == "valid"
    assert np.isfinite(predicted(FLAT, "linear", 9, 8).seconds)


def test_several_at_a_time_across_a_boundary_stay_the_first_doubt():
    assert predicted(BY_CLASS, "linear", 9, 8).validity_text.startswith("contention not modelled")


MACHINE = truth("mlognp")


def fitted(machine):
    return fit_machine("mlognp", machine)


def test_within_one_node_half_a_round_trip_is_two_copies():
    parameters = fitted(replace(MACHINE, site=Site(1, 4)))
    assert parameters.values["o_net.a"].value == 0
    assert not parameters.values["o_net.b"].known
    (prediction,) = predict(
        parameters, [point("bcast", "linear", ranks=2, bytes=4096, layout="block:2")]
    )
    half = MACHINE.times["pingpong"]({"bytes": 4096}) / 2
    assert prediction.seconds == pytest.approx(half)
    assert prediction.validity_text == "valid"


def test_where_copies_take_no_time_the_network_holds_everything():
    """The time of messages within a node is unknown, so their prediction is refused."""
    parameters = fitted(replace(MACHINE, times=MACHINE.times | {"memcopy": lambda case: 0.0}))
    half = MACHINE.times["pingpong"]({"bytes": 4096}) / 2
    points = [
        point("bcast", "binomial", ranks=4, bytes=4096, layout=layout)
        for layout in ("block:1", "block:2")
    ]
    apart, together = predict(parameters, points, strict=False)
    assert apart.seconds == pytest.approx(2 * half)
    assert apart.validity_text == "valid"
    assert (
        together.validity_text
        == "no prediction: the time of messages within a node is unknown (o_mem)"
    )
    assert "copies take no time on this platform" in parameters.missing["o_mem"]


def test_where_copies_take_no_time_messages_within_a_node_do():
    """On a simulated platform copies take no time. The network values are fitted nevertheless."""
    machine = replace(MACHINE, site=Site(4, 2), times=MACHINE.times | {"memcopy": lambda case: 0.0})
    parameters = fitted(machine)
    for name, value in MACHINE.covered.items():
        assert parameters.values[name].value == pytest.approx(value, rel=1e-6), name
    (prediction,) = predict(
        parameters, [point("bcast", "linear", ranks=2, bytes=4096, layout="block:2")]
    )
    assert prediction.seconds == pytest.approx(2 * (0.3e-6 + 4096 * 1e-9))


PMNF = find_family("pmnf")


def grid(time, noise=0.0, seed=1):
    """Return broadcasts over all pairs of ranks and sizes, and their times by `time` with lognormal
    noise."""
    chosen = [
        point("bcast", "binomial", ranks=ranks, bytes=size)
        for ranks in (2, 4, 8, 16, 32, 64)
        for size in (1, 64, 4096, 65536)
    ]
    seconds = np.array([time(entry.ranks, entry.bytes) for entry in chosen])
    return chosen, seconds * np.exp(
        noise * np.random.default_rng(seed).standard_normal(len(chosen))
    )


@pytest.mark.parametrize(
    ("law", "terms"),
    [
        (lambda p, m: 5e-6, []),
        (lambda p, m: 5e-6 + 2e-6 * np.log2(p), [(0, 1, 0)]),
        (lambda p, m: 5e-6 + 2e-6 * p + 1e-9 * m, [(1, 0, 0), (0, 0, 1)]),
        (lambda p, m: 5e-6 * np.log2(p) + 1e-9 * m * np.log2(p), [(0, 1, 0), (0, 1, 1)]),
        (lambda p, m: 3e-6 + 1e-7 * p**1.5, [(1.5, 0, 0)]),
    ],
)
@pytest.mark.parametrize("noise", [0, 0.01])
def test_the_law_is_found_again(law, terms, noise):
    values = fit_measured(*grid(law, noise), "pmnf", "t.csv").values
    exponents = [tuple(values[f"{letter}{number}"].value for letter in "ijk") for number in (1, 2)]
    coefficients = [values[f"c{number}"].value for number in (1, 2)]
    assert [term for term, share in zip(exponents, coefficients, strict=True) if share > 0] == terms


def test_no_coefficient_is_below_0_even_where_times_fall():
    chosen, seconds = grid(lambda p, m: 1e-5 / p + 1e-10 * m, noise=0.02)
    parameters = fit_measured(chosen, seconds, "pmnf", "t.csv")
    for key in ("c0", "c1", "c2"):
        assert min(parameters.draws.get(key, [parameters.values[key].value])) >= 0


def test_only_ranks_and_the_largest_message_are_seen():
    parameters = fitted_set("pmnf")
    binomial, ring = (
        build_schedule(point(*name, ranks=8, bytes=4096))
        for name in (("bcast", "binomial"), ("gather", "linear"))
    )
    assert costs(PMNF, binomial, parameters, drawn=False) == costs(
        PMNF, ring, parameters, drawn=False
    )
    uneven = Schedule.of(8, [0, 1], [0, 1], [1, 2], [4096, 1])
    assert costs(PMNF, uneven, parameters, drawn=False) == costs(
        PMNF, ring, parameters, drawn=False
    )


def test_terms_that_the_probes_do_not_distinguish_are_noted():
    parameters = fitted_set("pmnf")
    assert (parameters.values["i1"].value, parameters.values["k1"].value) == (1, 0)
    assert (parameters.values["i2"].value, parameters.values["k2"].value) == (0, 1)
    assert "fit these data equally well" in parameters.values["c1"].note


def test_exponents_are_the_same_in_all_draws():
    parameters = fitted_set("pmnf", noise=0.05)
    assert not parameters.draws.keys() & {
        f"{letter}{number}" for letter in "ijk" for number in (1, 2)
    }


def test_two_observations_are_too_few():
    chosen, seconds = grid(lambda p, m: 1.0)
    with pytest.raises(UserError, match=r"found 2 observation\(s\), wanted at least 3"):
        fit_measured(chosen[:2], seconds[:2], "pmnf", "t.csv")
