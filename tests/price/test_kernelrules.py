"""Kernels by the τ–Lop paper's rules for HLogGP and its relatives, beside the sums written out message by message."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.models.families import family
from commodel.models.keys import Pair, key
from commodel.models.parameter_sets import set_given
from commodel.models.pricing.values import Values
from commodel.patterns.build import schedule
from commodel.price.kernel_times import RULED, by_sums, predict_single_messages
from commodel.price.model import Model
from commodel.price.predictions import predict
from tests.patterns.catalogue import point

FIGURE_8 = "summa:partition=params/partitions/taulop-summa.csv"
TYPES = {"fat": 1, "thin": 1}
O_S, O_R = {"fat": 1e-6, "thin": 3e-6}, {"fat": 2e-6, "thin": 5e-6}
PLACES = ("fat.same", "thin.same", "fat.thin", "thin.fat")
L = dict(zip(PLACES, (1e-6, 2e-6, 3e-5, 4e-5), strict=True))
G = dict(zip(PLACES, (1e-10, 2e-10, 3e-9, 4e-9), strict=True))


def hloggp():
    numbers = {key("o_s", kind): value for kind, value in O_S.items()}
    numbers |= {key("o_r", kind): value for kind, value in O_R.items()}
    numbers |= {key(name, Pair.parse(place)): table[place] for name, table in (("L", L), ("G", G)) for place in PLACES}
    numbers |= {key("g", Pair.parse(place)): 1e-3 for place in PLACES}  # no rule knows of it
    values = {name: np.array([[value]]) for name, value in numbers.items()}
    return Model.of(family("hloggp"), Values(values, {}, {"types": TYPES}))


def message(pattern, row):
    """T(m), from the equation."""
    nodes = pattern.node[pattern.src[row]], pattern.node[pattern.dst[row]]
    sender, receiver = (list(TYPES)[node] for node in nodes)
    place = f"{sender}.same" if nodes[0] == nodes[1] else f"{sender}.{receiver}"
    return O_S[sender] + L[place] + (pattern.bytes[row] - 1) * G[place] + O_R[receiver]


def slowly(pattern, summa):
    """The paper's words: the sum of every process of the column block, the largest; the sum of every column of ranks,
    the largest; both together. Of the wave equation the first alone."""
    horizontal, vertical = defaultdict(float), defaultdict(float)
    for row in range(len(pattern.src)):
        sums = vertical if summa and pattern.step[row] > 1 else horizontal
        sums[int(pattern.src[row])] += message(pattern, row)
    return max(horizontal.values(), default=0) + max(vertical.values(), default=0)


@given(st.sampled_from(["summa:n=9:iteration=4", "wave2d:n=30"]), st.integers(2, 12), st.integers(1, 10_000))
def test_rules_are_the_sums_written_out(operation, ranks, size):
    pattern = schedule(point(operation, "paper", ranks=ranks, bytes=size, layout=f"block:{-(-ranks // 2)}"))
    model = hloggp()
    assert by_sums(model, pattern)[0] == pytest.approx(slowly(pattern, operation.startswith("summa")), rel=1e-12)
    singles = [message(pattern, row) for row in range(len(pattern.src))]
    np.testing.assert_allclose(predict_single_messages(model, pattern)[0], singles, rtol=1e-12)


def test_iteration_80_of_figure_8_by_hand():
    """p1 sends 134, 146 and 12 blocks, p4 104, 6 and 110; the row 124, 97 and 35, all over the network."""
    pattern = schedule(point(f"{FIGURE_8}:iteration=80", "paper", ranks=6, bytes=8192, layout="block:3"))
    within = O_S["fat"] + L["fat.same"] + O_R["fat"] + (134 * 8192 - 1) * G["fat.same"]
    out = 2 * (O_S["fat"] + L["fat.thin"] + O_R["thin"]) + (158 * 8192 - 2) * G["fat.thin"]
    row = O_S["fat"] + L["fat.thin"] + O_R["thin"] + (124 * 8192 - 1) * G["fat.thin"]
    assert by_sums(hloggp(), pattern)[0] == pytest.approx(within + out + row, rel=1e-12)


@pytest.mark.parametrize("name", RULED)
def test_rules_know_no_gap_and_no_waiting(name):
    """Where no rank has more than one message of a phase to send, and none waits, the rule is the general price; where
    a rank has many, it adds up what may go on at the same time."""
    texts = {"hloggp": ["L=9us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"], "mlognp": ["o_mem.a=1us", "o_net.a=5us"]}
    texts["loggph"] = [
        f"{text.replace('=', f'.{where}=')}" for text in texts["hloggp"] for where in ("within", "between")
    ]
    parameters = set_given(name, texts[name])
    two = point("wave2d:n=30:grid=1x2", "paper", ranks=2, bytes=8)
    (rule,), (general,) = predict(parameters, [two], cost=by_sums), predict(parameters, [two])
    assert rule.seconds <= general.seconds * (1 + 1e-12)
    many = point("summa:n=60:grid=1x12:iteration=0", "paper", ranks=12, bytes=8)
    (rule,), (general,) = predict(parameters, [many], cost=by_sums), predict(parameters, [many])
    assert rule.seconds > (1 if name == "mlognp" else 2) * general.seconds * (1 - 1e-12)


def test_all_iterations_and_stacks_of_sizes_add_up():
    parameters = set_given("hloggp", ["L=9us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"])
    sizes = (1, 100, 8192)
    wholes = predict(parameters, [point("summa:n=9", "paper", ranks=6, bytes=size) for size in sizes], cost=by_sums)
    for size, whole in zip(sizes, wholes, strict=True):
        points = [point(f"summa:n=9:iteration={k}", "paper", ranks=6, bytes=size) for k in range(9)]
        assert whole.seconds == pytest.approx(sum(row.seconds for row in predict(parameters, points, cost=by_sums)))
