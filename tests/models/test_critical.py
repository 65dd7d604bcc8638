"""Which messages a price waits for: closed forms over trees, and the sum, which is the price."""

import re
from functools import partial

import pytest

from commodel.files.parameter_sets import write_parameters
from commodel.models.parameter_sets import set_given
from commodel.models.pricing.replay import answered
from commodel.patterns.build import schedule
from commodel.patterns.points import Setting, make_point
from commodel.predictions.model import Model
from tests.cli.running import run
from tests.models.synthetic import fitted_set

HOCKNEY = set_given("hockney", ["alpha=10us", "beta=2ns"])
LOGP = set_given("logp", ["L=10us", "o=1us", "g=2us"])
STEP, LAST, NEXT = 12e-6, 12e-6, 2e-6  # α + 1000·β; o + L + o; g


def path(parameters, operation, topology):
    """Seconds by message, and the price."""
    pattern = schedule(make_point(Setting.unlimited(), {"operation": operation, "topology": topology, "bytes": 1000}))
    model = Model.of_set(parameters)
    seconds, work = answered(len(pattern.src), partial(model.cost, pattern))
    ends = zip(pattern.src.tolist(), pattern.dst.tolist(), strict=True)
    return {end: own for end, own in zip(ends, seconds, strict=True) if own}, work, float(model.cost(pattern)[0])


@pytest.mark.parametrize(
    ("topology", "edges"),
    [
        ("flat:5", [(0, child) for child in range(1, 6)]),
        ("chain:3", [(0, 1), (1, 2), (2, 3)]),
        ("binomial:3", [(0, 1), (1, 3), (3, 7)]),
        ("kary:2^3", [(0, 1), (0, 2), (2, 5), (2, 6), (6, 13), (6, 14)]),
    ],
)
def test_a_broadcast_waits_for_what_goes_before_the_last_leaf_s_message(topology, edges):
    """Under Hockney each message that a port sends before it counts whole; under LogP as one gap."""
    seconds, work, price = path(HOCKNEY, "bcast", topology)
    assert seconds == pytest.approx(dict.fromkeys(edges, STEP), rel=1e-4)
    assert price == pytest.approx(STEP * len(edges))
    seconds, work, price = path(LOGP, "bcast", topology)
    last = {max((end for end in edges if end[0] == src), key=lambda end: end[1]) for src, _ in edges}
    assert seconds == pytest.approx({end: LAST if end in last else NEXT for end in edges}, rel=1e-4)
    assert work == 0


@pytest.mark.parametrize("name", ["hockney", "logp", "loggp", "plogp", "lmo", "loggops", "postal"])
def test_the_messages_and_the_work_together_are_the_price(name):
    parameters = fitted_set(name)
    for operation in ("bcast", "reduce"):
        for topology in ("flat:4", "kary:2^3", "groups:4,3,2"):
            seconds, work, price = path(parameters, operation, topology)
            assert sum(seconds.values()) + work == pytest.approx(price, rel=1e-4), (operation, topology)
            assert min(seconds.values()) > 0


def test_the_drawing_and_the_table_say_the_same(tmp_path):
    write_parameters(tmp_path / "hockney.yaml", HOCKNEY)
    asked = ("topology", "binomial:3", "--params", tmp_path / "hockney.yaml", "--bytes", "1000")
    said = run(*asked).stdout
    drawn = run(*asked, "--format", "svg").stdout
    rows = [line.split()[:2] for line in said.splitlines() if re.match(r" *\d", line)]
    assert rows == [["0", "1"], ["1", "3"], ["3", "7"]]
    assert re.findall(r"<title>(\d+) to (\d+): 12 µs, 33 %</title>", drawn) == [tuple(row) for row in rows]
    about = "bcast over binomial:3, 1000 B: 36 µs by hockney, which waits for 3 of 7 messages"
    assert about in said
    assert about in drawn
    assert "wanted svg" in run(*asked, "--format", "csv", code=2).stderr
