"""TAN: the paper's equations on random trees, linear overheads, and phases of several steps."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.files.parameter_sets import read_parameters
from commodel.fits.probe_fits import make_parameter_set
from commodel.models.families import complete_values, find_family
from commodel.models.probes import Site, find_probe
from commodel.patterns.algorithms import find_tree_algorithm
from commodel.patterns.layouts import place_ranks
from commodel.patterns.trees.tree import Tree
from commodel.platforms.tools import ROOT
from commodel.predictions.predictions import predict
from tests.models.exact import make_exact_values
from tests.models.synthetic import fit_machine, observed, truth
from tests.patterns.catalogue import point


@pytest.mark.parametrize(
    "growth", [lambda n: 1e-5 * np.log(n), lambda n: 3e-5 * (1 - np.exp(-n / 10))]
)
def test_no_fan_in_is_cheaper_than_a_smaller_one(growth):
    machine = truth("tan")
    times = {**machine.times, "fan": lambda case: 2e-5 + growth(case["n"])}
    times["wave"] = lambda case: 2 * times["fan"](case)
    fitted = find_family("tan").fit(
        observed(replace(machine, times=times, site=Site(64, 1)), "tan", noise=0.01)
    )
    points = [point("reduce", topology=f"flat:{n}", bytes=1024) for n in (1, 8, 63, 256, 4096)]
    predictions = [
        prediction.seconds
        for prediction in predict(make_parameter_set(find_family("tan"), fitted), points)
    ]
    assert predictions[0] > 0
    assert predictions == sorted(predictions)


def test_a_phase_of_several_steps_sets_the_pace_of_a_stream():
    """A binomial gather receives its messages in several steps, a reduction over the same tree in
    one. Both have the same period."""
    parameters = read_parameters(ROOT / "params/published/tan/cab-mrnet.yaml")
    points = [
        point("gather", "binomial", ranks=64, bytes=1024),
        point("reduce", topology="binomial:6", bytes=1024),
    ]
    gather, reduction = predict(parameters, points, pipelined=True)
    wanted = 9.8e-5 + 4.93e-5 + 7 * 7.83e-7 + 49 * 1.57e-7
    assert [gather.seconds, reduction.seconds] == pytest.approx([wanted, wanted])


def test_more_messages_than_were_probed_are_an_extrapolation():
    machine = truth("tan")
    parameters = fit_machine("tan", machine)
    known = int(parameters.settings["fan_in"])
    points = [point("reduce", topology=f"flat:{n}", bytes=1024) for n in (known, known + 1)]
    assert [
        prediction.validity_text.partition(":")[0] for prediction in predict(parameters, points)
    ] == [
        "valid",
        "extrapolated",
    ]


@pytest.mark.parametrize("name", ["tan", "logp-tan"])
def test_the_validity_names_the_number_of_consecutive_messages_that_a_rank_sends(name):
    parameters = fit_machine(name, truth("tan"))
    trees = ("chain:3", "kary:2^3", "flat:8", "binomial:3")
    points = [
        point(operation, topology=spec, bytes=1024)
        for operation in ("reduce", "bcast")
        for spec in trees
    ]
    points += [
        point("allreduce", "recursive-doubling", ranks=8, bytes=1024),
        point("scatter", "linear", ranks=5, bytes=1024),
    ]
    reasons = [
        prediction.validity_text.partition(": ")[2] for prediction in predict(parameters, points)
    ]
    assert [reason.removeprefix("a rank sends ").partition(" ")[0] for reason in reasons] == [
        *["", "", "", ""],  # up
        *["", "2", "8", "3"],  # down: a chain has one child a node
        *["", "4"],
    ]


def set_of(machine, **how):
    return fit_machine("tan", machine, **how)


def errors(parameters, machine, leaves) -> np.ndarray:
    """Return μ of a fan-in from each number of leaves."""
    points = [point("reduce", topology=f"flat:{n}", bytes=1024) for n in leaves]
    predictions = np.array([prediction.seconds for prediction in predict(parameters, points)])
    measured = np.array(
        [machine.times["fan"]({"direction": "in", "n": n, "bytes": 1024}) for n in leaves]
    )
    return np.maximum(predictions / measured, measured / predictions)


def test_times_that_grow_in_line_with_n_are_a_line():
    """On a LogGP machine the overhead is fitted by a line; the paper's recipe fits a parabola."""
    machine, leaves = replace(truth("tan"), site=Site(130, 1)), (1, 2, 8, 32, 129, 1000)
    parameters = set_of(machine)
    assert parameters.forms == {"o": "linear", "o_paper": "quadratic"}
    assert errors(parameters, machine, leaves) == pytest.approx(1, abs=1e-9)
    as_printed = replace(parameters, settings={**parameters.settings, "recipe": "paper"})
    assert errors(as_printed, machine, leaves).max() > 1.5
    assert errors(set_of(machine, noise=0.03), machine, leaves) == pytest.approx(1, abs=0.02)


LAYER, ONCE, CAB = 98e-6, 20e-6, (49.3e-6, 0.783e-6, 0.157e-6)


def with_a_layer_below():
    """Return a machine whose ping-pong measures only the lower network layer; o(x) is that of the
    paper's Table I."""

    def o(x):
        return CAB[0] + CAB[1] * x + CAB[2] * x**2

    times = {
        "pingpong": lambda case: 2 * LAYER,
        "chain": lambda case: 2 * (ONCE + case["height"] * (LAYER + o(2))),
        "fan": lambda case: ONCE + LAYER + o(case["n"] + 1),
        "wave": lambda case: 2 * (ONCE + LAYER + o(case["n"] + 1)),
    }
    machine = truth("tan")
    return replace(machine, times={**machine.times, **times}, site=Site(130, 1))


@pytest.mark.parametrize(("noise", "close"), [(0.0, 1e-6), (0.03, 0.2)])
def test_a_tree_over_a_separate_lower_layer_recovers_equation_1(noise, close):
    parameters = set_of(with_a_layer_below(), noise=noise)
    assert parameters.forms["o"] == "quadratic"
    wanted = dict(zip(("o.a", "o.b", "o.c"), CAB, strict=True)) | {"L": LAYER, "C": ONCE}
    for name, value in wanted.items():
        estimate = parameters.values[name]
        assert estimate.value == pytest.approx(value, rel=close), name
        if noise:
            assert estimate.low <= value <= estimate.high, name


def test_the_papers_recipe_by_hand():
    """The slope of the chain over its height gives 25 µs per level, its intercept half of C. The
    fan's overhead o(x) with x = N follows from half of a round trip minus one level."""
    parameters = set_of(with_a_layer_below())
    level = CAB[0] + 2 * CAB[1] + 4 * CAB[2]
    assert parameters.values["o_paper.a"].value == pytest.approx(level / 2)
    assert parameters.values["C_paper"].value == pytest.approx(ONCE / 2)
    drawn = {curve.title: curve for curve in parameters.curves}
    leaves = drawn["N-to-1, the paper's recipe"]
    x = leaves.x[3] + 1
    assert leaves.x_label == "N, leaves"
    assert leaves.measured[3] == pytest.approx(
        ONCE + CAB[0] + CAB[1] * x + CAB[2] * x**2 - level / 2
    )
    assert drawn["chain"].x == tuple(range(1, 33))


def test_a_recipe_that_a_set_lacks_is_refused():
    parameters = read_parameters(ROOT / "params/published/tan/cab-mrnet.yaml")
    with pytest.raises(UserError, match="recipe paper: no o_paper in this set"):
        predict(
            replace(parameters, settings={"recipe": "paper"}),
            [point("reduce", topology="flat:4", bytes=1024)],
        )


@pytest.mark.parametrize(
    ("site", "said"),
    [
        (Site(130, 1), ""),
        (Site(8, 4), ""),
        (Site(4, 4), "up to 4 ranks on a node: fitted to messages between and within nodes"),
        (Site(1, 16), "all 16 ranks on one node"),
    ],
)
def test_ranks_that_share_a_node_are_noted(site, said):
    note = set_of(replace(truth("tan"), site=site)).values["o.b"].note
    assert (said in note) if said else "node" not in note


@pytest.mark.parametrize(("name", "value"), [("lop", "rtt.a"), ("bsp", "g")])
def test_other_models_note_shared_nodes_as_well(name, value):
    apart, shared = (replace(truth(name), site=site) for site in (Site(16, 1), Site(4, 4)))
    notes = [fit_machine(name, machine).values[value].note for machine in (apart, shared)]
    assert ["ranks on a node" in note for note in notes] == [False, True]


@pytest.mark.parametrize("site", [Site(2, 16), Site(3, 8), Site(8, 8), Site(40, 1)])
def test_every_hop_of_a_chain_crosses_the_network(site):
    cases = list(find_probe("chain").cases("x", site, [1]))
    assert [case.settings["height"] for case in cases] == list(range(1, min(site.ranks, 33)))
    node = place_ranks(cases[-1].layout, cases[-1].ranks)
    assert all(node[1:] != node[:-1])


@pytest.mark.parametrize("name", ["fan", "wave", "round", "post"])
def test_partners_have_a_node_each_where_there_are_nodes(name):
    for case in find_probe(name).cases("x", Site(8, 8), [1]):
        assert (case.ranks, case.layout) == (8, "block:1")
    assert {case.ranks for case in find_probe(name).cases("x", Site(2, 8), [1])} == {16}


L, A, B, C2, G, C = 98.0, 49.3, 0.783, 0.157, 3.0, 7.0
NUMBERS = {"L": L, "o.a": A, "o.b": B, "o.c": C2, "g": G, "C": C}
TAN = complete_values(find_family("tan"), make_exact_values(NUMBERS, {"o": "quadratic"}))


def o(x):
    return A + B * x + C2 * x**2


def recursion(children, node):
    """Return T_i = L + o(x+1) + g + max(T_child), with T_leaf = C."""
    below = children[node]
    if not below:
        return C
    return L + o(len(below) + 1) + G + max(recursion(children, child) for child in below)


@st.composite
def trees(draw):
    """Draw the parents of nodes 1, 2, …; each parent has a smaller number than its child."""
    nodes = draw(st.integers(2, 40))
    return [0, *(draw(st.integers(0, node - 1)) for node in range(1, nodes))]


@given(trees())
def test_equations_1_and_2(parents):
    children = {node: [] for node in range(len(parents))}
    for node, parent in list(enumerate(parents))[1:]:
        children[parent].append(node)
    pattern = find_tree_algorithm("reduce").build(Tree(np.array([-1, *parents[1:]])), 1024)
    cost = pattern.cost(find_family("tan").predict(pattern, TAN))[0]
    assert cost == pytest.approx(recursion(children, 0))
    busiest = max(len(below) for below in children.values())
    assert find_family("tan").pipelined(pattern, TAN)[0] == pytest.approx(L + o(busiest + 1) + G)
