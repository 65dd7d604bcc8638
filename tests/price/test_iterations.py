"""Sums of iterations: each begun by all ranks at once, those that are alike priced once, intervals those of the sum."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.fit.table_fits import fit_points
from commodel.models.families import family, family_names
from commodel.models.parameter_sets import set_given
from commodel.patterns.build import Shape, fan_ins, schedule, stacked
from commodel.patterns.layouts import place
from commodel.patterns.rectangles import Rectangles, write
from commodel.plan.duration import Durations
from commodel.price.model import Model
from commodel.price.predictions import MOST_STACKED, Costs, predict, price, summed
from commodel.price.validity import VALID, PriceStatus, Validity
from commodel.records import Measure
from tests.models.test_contract import fitted_set
from tests.patterns.catalogue import point

SIDE, RANKS = 13, 6
SIZES = (8, 1000, 100_000)  # the last one overflows buffers


@pytest.fixture(scope="module")
def partition(tmp_path_factory):
    path = tmp_path_factory.mktemp("partition") / "p.csv"
    columns = [4, 0, 9, 9, 0, 4], [0, 0, 7, 0, 8, 9], [5, 4, 4, 4, 4, 5], [9, 8, 6, 7, 5, 4]
    path.write_text(write(replace(Rectangles.of(*columns), speed=np.full(RANKS, 1e5))))
    return path


def of(partition, size, iteration=None, overlapped=False, layout="block:3"):
    more = ("" if iteration is None else f":iteration={iteration}") + (":overlapped=yes" if overlapped else "")
    return point(f"summa:partition={partition}{more}", "paper", ranks=RANKS, bytes=size, layout=layout)


@lru_cache
def fitted(name):
    return fitted_set(name, noise=0.03)


@pytest.mark.parametrize("name", family_names())
@pytest.mark.parametrize("overlapped", [False, True])
def test_a_kernel_costs_what_its_iterations_do(partition, name, overlapped):
    how = overlapped, "block:1" if name == "lmo" else "block:3"  # which is about ranks that have a node each
    wholes = predict(fitted(name), [of(partition, size, None, *how) for size in SIZES], strict=False)
    for size, whole in zip(SIZES, wholes, strict=True):
        points = [of(partition, size, k, *how) for k in range(SIDE)]
        several = predict(fitted(name), points, strict=False)
        if overlapped and not family(name).hides:
            assert whole.status.startswith("not priced")
            continue
        assert whole.seconds == pytest.approx(sum(price.seconds for price in several), rel=1e-12)
        assert whole.status in {price.status for price in several}
        assert (whole.status == "ok") == ({price.status for price in several} == {"ok"})


def test_a_sum_has_no_say_where_one_iteration_has_none(partition):
    """Though an earlier one fails another check."""
    blind = Validity(PriceStatus.BLIND, "holds for 0 B to 7 kB")
    checks = iter([Validity(PriceStatus.CROWDED, "4 at a time"), blind])
    ((_, whole),) = stacked([of(partition, 1000)], MOST_STACKED)
    ones = np.ones(1)
    costs = summed(whole, lambda part, waves: Costs(ones[None], ones, [next(checks, VALID)], ones), 1)
    assert costs.validity == [blind]


def test_messages_alone_of_a_sum_take_what_those_of_its_iterations_take(partition):
    """Of iterations that are priced at 1, 2, 3 … and take 2, 3, 4 … times as long."""
    ((_, whole),) = stacked([of(partition, 1000)], MOST_STACKED)
    parts = [count for count, _ in whole.counted()]
    ones, numbers = np.ones(1), np.arange(1.0, 1 + len(parts))
    answers = iter([Costs(np.full((1, 1), number), (number + 1) * ones, [VALID], ones) for number in numbers])
    costs = summed(whole, lambda part, waves: next(answers), 1)
    assert costs.ratios == pytest.approx(np.sum(parts * numbers * (numbers + 1)) / np.sum(parts * numbers))


def test_the_interval_is_that_of_the_sum(partition):
    """Draw by draw, and not the sum of the iterations' own intervals, as if all erred the same way at once."""
    parameters, node = fitted("loggp"), place("block:3", RANKS)
    model = Model.of_set(parameters, None)
    costs = sum(model.cost(schedule(of(partition, 1000, k)).placed(node)) for k in range(SIDE))
    (whole,) = predict(parameters, [of(partition, 1000)])
    assert whole.seconds == pytest.approx(costs[0])
    assert (whole.low, whole.high) == pytest.approx(tuple(np.percentile(costs[1:], [2.5, 97.5])))
    assert whole.low < whole.seconds < whole.high


def test_a_stream_of_prices_has_the_same_numbers(partition):
    sets = {name: fitted(name) for name in ("loggp", "taulop")}
    rows = list(price([Shape.of(of(partition, 0), SIZES)], sets))
    for (name, parameters), columns in zip(sets.items(), rows, strict=True):
        wanted = predict(parameters, [of(partition, size) for size in SIZES])
        assert columns["family"] == name
        assert columns["seconds"].tolist() == [row.seconds for row in wanted]
        assert columns["high"].tolist() == [row.high for row in wanted]


def test_iterations_that_are_alike_are_priced_once(partition, monkeypatch):
    asked = []
    entry = family("loggp")
    monkeypatch.setattr(Model, "cost", lambda model, pattern: asked.append(pattern) or np.array([[1.0]]))
    (whole,) = predict(set_given("loggp", ["L=1us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"]), [of(partition, 8)])
    assert entry.independent
    assert whole.seconds == SIDE
    assert len(asked) == len({0, 4, 9, 7, 8})


def test_waves_of_a_sum_are_refused_in_one_line(partition):
    parameters = set_given("loggp", ["L=1us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"])
    with pytest.raises(UserError, match=r"found several waves of 'summa:.*', whose iterations all ranks begin at once"):
        predict(parameters, [of(partition, 8)], pipelined=True)
    (row,) = predict(parameters, [of(partition, 8)], pipelined=True, strict=False)
    assert row.status.startswith("not priced: found several waves")
    assert predict(parameters, [of(partition, 8, 3)], pipelined=True)[0].seconds > 0


def test_values_are_fitted_to_kernels_too(partition):
    """From the sums that a machine of known values would take."""
    parameters = set_given("hockney", ["alpha.a=20us", "beta.a=2ns"])
    points = [of(partition, size, k) for size in (8, 100, 1000, 10_000) for k in (None, 0, 5)]
    seconds = [row.seconds for row in predict(parameters, points)]
    values = fit_points(family("hockney"), points, seconds).values
    assert values["alpha.a"][0] == pytest.approx(20e-6, rel=1e-3)
    assert values["beta.a"][0] == pytest.approx(2e-9, rel=1e-3)


def test_what_a_plan_says_of_one(partition):
    """The most messages in one step are those of its worst iteration; it takes as long as its iterations together."""
    whole, every = of(partition, 8), [of(partition, 8, k) for k in range(SIDE)]
    assert fan_ins([whole])[whole.id] == max(fan_ins(every).values())
    durations = Durations("local", Measure("barrier", 0.02, 10, 500, 2.0, 3, 2, 60.0))
    seconds = [durations._once(point)[0] for point in (whole, *every)]
    assert seconds[0] == pytest.approx(sum(seconds[1:]), rel=0.2)


def test_a_rank_alone_has_nothing_to_send(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("rank,x,y,width,height\n0,0,0,5,5\n1,0,0,0,0\n")
    for name in set(family_names()) - {"pmnf"}:  # which knows how many ranks there are, and no messages
        for operation in (f"summa:partition={path}", f"wave2d:partition={path}"):
            (row,) = predict(fitted(name), [point(operation, "paper", ranks=2, bytes=8)], strict=False)
            assert row.seconds == pytest.approx(0, abs=1e-5) or row.status != "ok", (name, row)
