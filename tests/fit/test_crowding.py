"""Messages of all nodes at once, which nothing is fitted to: where they are not priced well, prices say so."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.fit.probe_fits import fitted_set
from commodel.fit.validity_checks import crowding
from commodel.models.families import family
from commodel.models.fitting.observed import CaseSamples, Observed
from commodel.models.parameter_sets import set_given
from commodel.models.pricing.values import Values
from commodel.models.probes import Site, probe
from commodel.models.probes.mixture import AROUND, FAN, IN_A_ROW, ROUNDS, WITHIN, pattern
from commodel.patterns import build
from commodel.patterns.repeated import Long
from commodel.patterns.schedule import Schedule, stack
from commodel.price.model import Model
from commodel.price.predictions import predict
from commodel.price.validity import assess_validity
from tests.models.synthetic import LOGGP, observed, truth
from tests.patterns.catalogue import point

NODES = 12
SIZES = [1, 1024, 65536]
MACHINE = Model.of(family("loggp"), Values({name: np.array([[value]]) for name, value in LOGGP.items()}))


def evidence(times, around=1.0, row=1.0, within=1.0, fan=1.0):
    """A LogGP machine; messages of all nodes at once take so many times what one takes, by their size and by how many
    ranks a node has, and those that are passed on `around` times what each of their rounds does. Those in a `row`,
    `within` a node and of a `fan` take so many times what they would."""
    of_few = {IN_A_ROW: row, WITHIN: within, FAN: fan}
    machine = truth("loggp")
    several = dict(observed(machine, "loggp").probes)
    several["mixture"] = []
    for place, about in probe("mixture").plan(Site(NODES, 2), SIZES):
        alone = machine.times["pingpong"](about) / 2
        settings = {**about, "ranks": place.ranks, "layout": place.layout, "pair": "", "where": ""}
        factor = ROUNDS * around if about["turn"] == AROUND else times(about["bytes"], about["each"])
        if about["turn"] in of_few:
            alone, factor = float(MACHINE.cost(pattern(about))[0]), of_few[about["turn"]]
        seconds = np.full(5, alone * factor)
        several["mixture"].append(CaseSamples(settings, seconds, np.ones(5)))
    return Observed(several)


def said(parameters, src, dst, sizes, node=None):
    pattern = stack([Schedule.of(4, 0, src, dst, size) for size in sizes])
    placed = pattern.placed(np.array(node or range(4)))
    return [check.word for check in assess_validity(Model.of_set(parameters), parameters, placed)]


@pytest.mark.parametrize("times", [1.0, 1.4])
def test_prices_that_are_off_by_little_are_not_doubted(times):
    entry, seen = family("loggp"), evidence(lambda size, each: times)
    assert crowding(entry, fitted_set(entry, seen), seen) == {}


def test_prices_of_messages_at_a_time_are_doubted_from_the_size_on_that_takes_longer():
    parameters = fitted_set(family("loggp"), evidence(lambda size, each: 3.0 if size > 2000 else 1.0))
    assert parameters.settings["crowded"]["nodes"]["from"] == 4096
    assert parameters.settings["crowded"]["nodes"]["times"] == pytest.approx(3, rel=0.1)
    assert said(parameters, [0, 1], [2, 3], [64, 65536]) == ["ok", "blind to contention"]
    assert said(parameters, [0, 0], [2, 3], [65536]) == ["ok"]  # one port is what a family knows
    assert said(parameters, [0, 1], [2, 3], [65536], [0, 0, 0, 0]) == ["not probed"]  # within a node


def test_what_only_ranks_of_a_node_share_is_doubted_where_they_do():
    parameters = fitted_set(family("loggp"), evidence(lambda size, each: 3.0 if each == 2 else 1.0))
    assert set(parameters.settings["crowded"]) == {"ranks"}
    assert said(parameters, [0, 1], [2, 3], [65536]) == ["ok"]
    crowd = said(replace(parameters), [0, 2], [4 - 1, 1], [65536], [0, 0, 1, 2])
    assert crowd == ["blind to contention"]


@pytest.mark.parametrize(("rounds", "word"), [(ROUNDS, "blind to contention"), (ROUNDS - 1, "ok")])
def test_prices_of_messages_that_wait_for_each_other_are_doubted(rounds, word, monkeypatch):
    """Around all nodes, and so around four."""
    parameters = fitted_set(family("loggp"), evidence(lambda size, each: 1.0, around=3.0))
    assert parameters.settings["crowded"] == {"rounds": {"from": 0, "times": pytest.approx(3, rel=0.1)}}
    ranks, step = np.arange(4), np.repeat(np.arange(rounds), 4)
    ring = stack([Schedule.of(4, step, np.tile(ranks, rounds), np.tile((ranks + 1) % 4, rounds), 1024)])
    texts = [check.text for check in assess_validity(Model.of_set(parameters), parameters, ring)]
    assert [text.partition(":")[0] for text in texts] == [word]
    monkeypatch.setattr(build, "WRITTEN", 0)
    described = build.schedule(point("allgather", "ring", ranks=rounds + 1, bytes=1024))
    assert isinstance(described, Long)
    assert [check.word for check in assess_validity(Model.of_set(parameters), parameters, described)] == [word]
    assert said(parameters, [0, 1], [2, 3], [65536]) == ["ok"]


def test_messages_in_a_row_are_doubted_and_so_are_streams():
    """They wait for a receiver that takes one after the other."""
    parameters = fitted_set(family("loggp"), evidence(lambda size, each: 1.0, row=5.0))
    assert parameters.settings["crowded"] == {"row": {"from": 0, "times": pytest.approx(5, rel=0.1)}}
    jobs = [
        point("reduce", "linear", ranks=4, bytes=1024),
        replace(point("reduce", "linear", ranks=4, bytes=1024), waves=20),
        point("bcast", "chain:64", ranks=4, bytes=1024),
        point("bcast", "chain:512", ranks=4, bytes=1024),
        point("allgather", "ring", ranks=16, bytes=64),  # all get messages before they send more
    ]
    statuses = [price.status.partition(":")[0] for price in predict(parameters, jobs)]
    assert statuses == ["ok", "blind to contention", "blind to contention", "ok", "ok"]
    assert "messages in a row to one receiver took up to 5.0 times as long" in predict(parameters, jobs[1:2])[0].status


def test_fans_and_rows_are_probed_between_every_two_types_of_nodes_in_both_directions():
    """On one type alone the cases are those that there always were."""
    site = Site(16, 2, {"fast": 8, "slow": 8})
    found = {}
    for place, about in probe("mixture").plan(site, SIZES):
        if about["turn"] in (FAN, IN_A_ROW):
            types = [site.type_of(node) for node in place.where] or ["fast"] * place.ranks
            assert place.pair in ("", f"{types[0]}.{types[1]}")
            assert len(set(types[1:])) == 1
            found.setdefault(about["turn"], set()).add((types[0], types[1], place.ranks))
    pairs = {("fast", "fast"), ("fast", "slow"), ("slow", "fast"), ("slow", "slow")}
    assert {(one, two) for one, two, _ in found[FAN]} == {(one, two) for one, two, _ in found[IN_A_ROW]} == pairs
    assert {ranks for _, _, ranks in found[FAN]} == {8, 9}
    alone = [(place, dict(about)) for place, about in probe("mixture").plan(Site(16, 2), SIZES)]
    assert not [place for place, _ in alone if place.pair]


@pytest.mark.parametrize(
    ("name", "operation", "algorithm", "ranks", "word"),
    [
        ("fan.fast.slow", "bcast", "linear", 16, "blind to contention"),
        ("fan.fast.slow", "gather", "linear", 16, "blind to contention"),
        ("fan.fast.slow", "bcast", "linear", 8, "ok"),  # all are fast
        ("fan.fast.slow", "bcast", "binomial", 16, "ok"),  # one message a rank and step
        ("fan.slow.fast", "bcast", "linear", 16, "ok"),
        ("fan.slow.fast", "alltoall", "linear", 16, "blind to contention"),
        ("row.fast.slow", "bcast", "chain:1KiB", 16, "blind to contention"),
        ("row.slow.slow", "bcast", "chain:1KiB", 8, "ok"),
        ("row.fast.fast", "bcast", "chain:1KiB", 8, "blind to contention"),
    ],
)
def test_a_fan_or_row_between_types_speaks_of_messages_between_these(name, operation, algorithm, ranks, word):
    settings = {"types": {"fast": 8, "slow": 8}, "crowded": {name: {"times": 5.0, "from": 512.0}}}
    known = set_given("loggp", ["L=10us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"])
    known = replace(known, bytes_range=(1.0, 65536.0), settings=settings)
    statuses = [
        price.status
        for price in predict(known, [point(operation, algorithm, ranks=ranks, bytes=size) for size in (64, 32768)])
    ]
    assert [status.partition(":")[0] for status in statuses] == ["ok", word]
    if word != "ok":
        _, one, two = name.split(".")
        assert f"between {one} and {two} nodes, from 512 B on, took up to 5.0 times as long as priced" in statuses[1]


def test_messages_within_a_node_are_doubted_where_they_are_priced_as_others():
    """And their interval is put around what they take."""
    parameters = fitted_set(family("loggp"), evidence(lambda size, each: 1.0, within=0.1))
    parameters = replace(parameters, settings={**parameters.settings, "probed": ["node", "beyond"]})
    far, near = (point("bcast", "linear", ranks=2, bytes=8, layout=layout) for layout in ("block:1", "block:2"))
    assert predict(parameters, [far])[0].status == "ok"
    (price,) = predict(parameters, [near])
    assert price.status == "misfit: even alone its messages take only 0.10 of their price"
    assert price.alone == pytest.approx(0.1, rel=0.01)


def test_fans_are_doubted_where_one_rank_sends_to_several_or_takes_from_them():
    parameters = fitted_set(family("loggp"), evidence(lambda size, each: 1.0, fan=0.2))
    statuses = {}
    for operation, algorithm, ranks in (
        ("bcast", "linear", 6),
        ("gather", "linear", 6),
        ("bcast", "linear", 3),
        ("bcast", "binomial", 16),
    ):
        (price,) = predict(parameters, [point(operation, algorithm, ranks=ranks, bytes=8)])
        statuses[operation, algorithm, ranks] = price.status
    fan = "blind to contention: messages between one node and several others took as little as 0.20 of their price"
    assert list(statuses.values()) == [fan, fan, "ok", "ok"]


def test_a_family_blind_to_size_is_held_to_the_size_that_it_sees():
    seen = evidence(lambda size, each: 1.0)
    known = replace(set_given("logp", ["L=10us", "o=1.75us", "g=4us"]), bytes_range=(0.0, 64.0))
    assert crowding(family("logp"), known, seen) == {}
    assert crowding(family("logp"), replace(known, bytes_range=(0.0, 1e9)), seen)["row"]["times"] > 5
