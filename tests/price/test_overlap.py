"""Messages that a product hides: closed forms, and what holds of every family. What is priced is what a rank posts
and waits for, without what it computes in between."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.models.families import family, family_names
from commodel.models.parameter_sets import set_given
from commodel.patterns.build import parted, schedule
from commodel.patterns.rectangles import Rectangles, even, write
from commodel.patterns.schedule import KINDS
from commodel.price.model import Model
from commodel.price.predictions import predict
from tests.models.synthetic import fitted_set
from tests.patterns.catalogue import point

SIX = Rectangles.of([4, 0, 9, 9, 0, 4], [0, 0, 7, 0, 8, 9], [5, 4, 4, 4, 4, 5], [9, 8, 6, 7, 5, 4])
HIDING = [name for name in family_names() if family(name).hides]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """written(tiling, seconds): the file of a partition whose ranks compute for so long in an iteration."""
    path = tmp_path_factory.mktemp("partitions") / "p.csv"

    def write_it(tiling, seconds):
        speed = None if seconds is None else np.maximum(tiling.area, 1) / seconds
        path.write_text(write(replace(tiling, speed=speed)))
        return path

    return write_it


def of(path, k=None, size=8192, ranks=2, layout="block:1"):
    more = "" if k is None else f":iteration={k}"
    return point(f"summa:partition={path}{more}:overlapped=yes", "paper", ranks=ranks, bytes=size, layout=layout)


L, O_S, O_R, G, GAMMA = 20e-6, 5e-6, 3e-6, 1e-9, 0.1e-9
LOGGP = ["L=20us", "o_s=5us", "o_r=3us", "g=6us", "G=1ns", "gamma=0.1ns"]


@pytest.mark.parametrize("seconds", [1e-15, 1e-6, 30e-6, 83e-6, 84e-6, 1e-3, 2.0])
def test_loggp_beside_a_product_of_any_length(written, seconds):
    """One message of 8 blocks goes from the rank that holds the column, which packs it first. Of it only its two
    overheads and the packing cannot be hidden."""
    path, bytes = written(even(8, (1, 2)), np.full(2, seconds)), 8 * 8192
    (price,) = predict(set_given("loggp", LOGGP), [of(path, 5)])
    sent = bytes * GAMMA + O_S
    arrives = sent + L + (bytes - 1) * G
    assert price.seconds == pytest.approx(max(sent, max(arrives - seconds, 0) + O_R), rel=1e-7)


@pytest.mark.parametrize("seconds", [1e-15, 1e-6, 66e-6, 67e-6, 1e-3])
def test_taulop_beside_a_product_of_any_length(written, seconds):
    """Its transfer hides, the overhead of who sends and the copies do not."""
    path, bytes = written(even(8, (1, 2)), np.full(2, seconds)), 8 * 8192
    values = set_given("taulop", ["o_1.a=5us", "L_1.a=2us", "L_1.b=1ns", "gamma.a=0", "gamma.b=0.1ns"])
    (price,) = predict(values, [of(path, 5)])
    whole = 5e-6 + 2e-6 + bytes * 1e-9
    assert price.seconds == pytest.approx(bytes * GAMMA + max(whole - seconds, 5e-6), rel=1e-7)


def test_the_first_iteration_has_nothing_to_hide_behind(written):
    """All others have. The whole is their sum."""
    path, values = written(even(8, (1, 2)), np.full(2, 1.0)), set_given("loggp", LOGGP)
    first, second, whole = (row.seconds for row in predict(values, [of(path, 0), of(path, 1), of(path)]))
    assert first > 3 * second
    assert whole == pytest.approx(first + 7 * second)
    assert [count for _, count in parted(of(path))] == [1, 3, 4]


def without_product(pattern):
    """The same messages where nothing is computed meanwhile."""
    copies = pattern.work.kind == KINDS.index("copy")
    work = type(pattern.work)(*(column[..., copies] for column in pattern.work.columns))
    return replace(pattern, work=work, beside=None)


@settings(max_examples=25)
@given(st.data(), st.sampled_from(HIDING), st.integers(1, 12), st.sampled_from([8, 1000, 100_000]))
def test_a_product_never_costs_more_than_waiting_for_all(written, data, name, k, size):
    """Whatever ranks compute, what is left to pay is no more than without, falls as they all compute for longer, and is
    nothing else where they compute for no time. So with its product an iteration takes no longer than both in turn."""
    how = {"layout": "block:1"} if name == "lmo" else {"layout": "block:3"}
    seconds = np.array(data.draw(st.lists(st.floats(1e-7, 1e-2), min_size=6, max_size=6)))
    model = Model.of_set(fitted_set(name), 0)

    def cost(times):
        return schedule(of(written(SIX, times), k, size, 6, **how))

    plain = without_product(cost(seconds))
    whole = float(np.ravel(model.cost(plain))[0])
    nothing, some, more = (
        float(np.ravel(model.cost(cost(times)))[0]) for times in (np.full(6, 1e-25), seconds, seconds + 1e-3)
    )
    assert nothing == pytest.approx(whole, rel=1e-7)
    assert 0 <= more <= some * (1 + 1e-6) + 1e-12
    assert some <= whole * (1 + 1e-6)


def test_what_is_not_known_is_not_priced(written):
    path, values = written(SIX, None), set_given("loggp", LOGGP)
    (row,) = predict(values, [of(path, ranks=6)], strict=False)
    unknown = "how long ranks compute meanwhile is not known: the partition has no column speed"
    assert (row.status, np.isnan(row.seconds)) == (f"not priced: {unknown}", True)
    with pytest.raises(UserError, match=unknown):
        predict(values, [of(path, ranks=6)])
    assert predict(values, [of(path, 0, ranks=6)])[0].status == "ok"


@pytest.mark.parametrize("name", sorted(set(family_names()) - set(HIDING)))
def test_a_family_without_overlap_says_so(written, name):
    (row,) = predict(fitted_set(name), [of(written(SIX, np.full(6, 1.0)), ranks=6)], strict=False)
    assert row.status == f"not priced: {family(name).title} does not know what computation hides"
