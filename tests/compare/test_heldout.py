"""Points that are held out: which they are, that no fit sees them, and errors that are what the machine says."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.compare.held_out import errors, fit_seen, judged, split
from commodel.errors import UserError
from commodel.fits.measured_tables import Measured, read_points
from commodel.interchange import Given, pico
from commodel.models.parameter_sets import set_given
from commodel.patterns.points import Setting, make_point
from commodel.predictions.predictions import predict
from tests.patterns.catalogue import point

REAL = Path(__file__).parents[3] / "shared" / "data" / "marenostrum5-collectives.csv"
LOGGP = set_given("loggp", ["L=10us", "o_s=1.5us", "o_r=2us", "g=4us", "G=8ns", "gamma=1ns"])
HOCKNEY = set_given("hockney", ["alpha=10us", "beta=1ns", "gamma=1ns"])
WAYS = [("bcast", "binomial"), ("bcast", "linear"), ("scatter", "binomial"), ("allreduce", "recursive-doubling")]
OTHER_SIZES = "log2(bytes) // 3 % 2 == 0"


def exact(truth=LOGGP) -> Measured:
    """What a machine would measure that is as its family says."""
    sizes = (8, 64, 512, 4096, 32768)
    points = [point(*algorithm, ranks=ranks, bytes=size) for algorithm in WAYS for ranks in (4, 8) for size in sizes]
    return Measured(points, [price.seconds for price in predict(truth, points)], 0)


def held_out(measured, where, family):
    parts = split(measured, where)
    return judged(fit_seen(parts, family, "t.csv"), parts.unseen)


@given(st.sampled_from(["bytes", "ranks"]), st.sampled_from(["<", ">=", "=="]), st.sampled_from([4, 8, 64, 4096]))
def test_every_point_is_fitted_or_held_out(name, sign, limit):
    measured = exact()
    wanted = [eval(f"{getattr(entry, name)} {sign} {limit}") for entry in measured.points]
    if all(wanted) or not any(wanted):
        with pytest.raises(UserError, match="holds out"):
            split(measured, f"{name} {sign} {limit}")
        return
    parts = split(measured, f"{name} {sign} {limit}")
    pairs = list(zip(measured.points, measured.seconds, strict=True))
    for part, flag in ((parts.unseen, True), (parts.seen, False)):
        kept = list(zip(part.points, part.seconds, strict=True))
        assert kept == [pair for pair, want in zip(pairs, wanted, strict=True) if want is flag]


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("nodes == 2", 1),
        ("ranks_per_node == 4", 1),  # six ranks on two nodes: four on the first
        ("layout == 'block:4'", 1),
        ("topology == 'flat:4'", 1),
        ("algorithm == ''", 1),
        ("operation in ['bcast', 'reduce'] and ranks_per_node == 1", 2),
    ],
)
def test_names_are_those_of_the_matrix(where, count):
    bcast = {"operation": "bcast", "algorithm": "binomial", "ranks": 6, "bytes": 8}
    entries = (bcast | {"layout": "block:4"}, bcast, {"operation": "reduce", "topology": "flat:4", "bytes": 8})
    points = [make_point(Setting.unlimited(), entry) for entry in entries]
    assert len(split(Measured(points, [1.0, 2.0, 3.0], 0), where).unseen.points) == count


@pytest.mark.parametrize("where", ["bytes > 0", "bytes < 0", "rank > 4", "log2(bytes - 8) > 1", "bytes >"])
def test_what_holds_out_nothing_or_everything_or_is_no_expression(where):
    with pytest.raises(UserError) as caught:
        split(exact(), where)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("truth", "where"),
    [
        (LOGGP, OTHER_SIZES),
        (LOGGP, "operation == 'scatter'"),
        (HOCKNEY, "ranks > 4"),
        (HOCKNEY, "algorithm == 'binomial'"),
    ],
)
def test_the_machines_own_family_is_right_about_what_it_has_not_seen(truth, where):
    assert held_out(exact(truth), where, truth.family)["mu"].max() < 1.001


def test_a_wrong_family_is_wrong_about_what_it_has_not_seen():
    """One port that is busy for all of α + β·m cannot be both LogGP's burst and its message: 4 µs and 13.5 µs."""
    bursts = errors(held_out(exact(), "algorithm == 'linear'", "hockney"), ["operation"]).set_index("operation")
    assert bursts.loc["bcast", "mu_median"] > 1.2
    assert bursts.loc["bcast", "bias"] > 0.2


def test_the_fit_does_not_see_the_times_that_are_held_out():
    measured = exact(HOCKNEY)
    later = [
        time * (10 if entry.ranks > 4 else 1) for entry, time in zip(measured.points, measured.seconds, strict=True)
    ]
    parts, changed = split(measured, "ranks > 4"), split(replace(measured, seconds=later), "ranks > 4")
    assert changed.unseen.seconds == [10 * time for time in parts.unseen.seconds]
    assert fit_seen(changed, "hockney", "t.csv") == fit_seen(parts, "hockney", "t.csv")


def test_the_set_says_what_was_held_out():
    parameters = fit_seen(split(exact(), "ranks > 4"), "hockney", "t.csv")
    source = "fitted from 20 points of t.csv; these points are not held out; the other 20, where ranks > 4, are"
    assert parameters.source == source
    assert parameters.provenance["held_out_where"] == "ranks > 4"
    assert parameters.provenance["held_out_points"] == 20


def test_errors_are_those_of_the_definition():
    rows = judged(HOCKNEY, exact())
    table = errors(rows, ["operation", "choice"])
    assert list(zip(table["operation"], table["choice"], strict=True)) == WAYS
    for row in table.to_dict("records"):
        of_choice = rows[(rows["operation"] == row["operation"]) & (rows["choice"] == row["choice"])]
        ratios = [p / m for p, m in zip(of_choice["predicted"], of_choice["measured"], strict=True)]
        mu = [max(ratio, 1 / ratio) for ratio in ratios]
        assert row["mu_mean"] == pytest.approx(np.mean(mu))
        assert row["mu_median"] == pytest.approx(np.median(mu))
        assert row["bias"] == pytest.approx(np.median(ratios) - 1)
        assert row["mu_worst"] == pytest.approx(max(mu))
        worst = of_choice.iloc[int(np.argmax(mu))]
        assert row["worst"].startswith(f"{worst['ranks']} ranks, ")
    (total,) = errors(rows, ["family"]).to_dict("records")
    assert total["points"] == len(rows) == 40
    assert total["worst"].startswith(f"{rows.loc[rows['mu'].idxmax(), 'operation']} ")


@pytest.mark.skipif(not REAL.exists(), reason="no measurements of MareNostrum 5 beside this clone")
def test_other_sizes_of_a_real_machine(tmp_path):
    """Recursive doubling exchanges whole vectors in pairs: of all algorithms the one that a family should get right."""
    readings = pico.times(REAL, Given())
    rows = [time for time in readings.times if time.algorithm == "recursive-doubling" and time.operation == "allreduce"]
    table = tmp_path / "t.csv"
    columns = ("operation", "algorithm", "layout", "ranks", "bytes", "seconds")
    lines = [",".join(str(getattr(time, name)) for name in columns) for time in rows]
    table.write_text("\n".join([",".join(columns), *lines]) + "\n")
    (total,) = errors(held_out(read_points(table), OTHER_SIZES, "hockney"), ["family"]).to_dict("records")
    assert total["points"] == 8
    assert 1 < total["mu_median"] < 1.5
    assert total["mu_worst"] < 3
