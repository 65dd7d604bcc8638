"""Held-out points, errors of their predictions, and baselines."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import heldout
from benchmarks.heldout import list_splits
from commodel.compare.baselines import (
    ALWAYS_SAME,
    BASELINES,
    INTERPOLATION,
    LIBRARY,
    NEAREST,
    NEAREST_RATIO,
    choose_by_rule,
    is_baseline,
    predict_baselines,
    predict_by_interpolation,
    predict_by_nearest_point,
    predict_by_nearest_ratio,
    predict_by_regression,
    score_choices,
)
from commodel.compare.held_out import (
    fit_without_held_out,
    predict_held_out,
    recommend_held_out,
    split_points,
    tabulate_errors,
)
from commodel.errors import UserError
from commodel.fits.measured_tables import Measured, read_points
from commodel.models.families import list_family_names
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.points import PlatformResources, make_point
from commodel.predictions.predictions import predict
from tests.patterns.catalogue import point

LOGGP = make_given_set("loggp", ["L=10us", "o_s=1.5us", "o_r=2us", "g=4us", "G=8ns", "gamma=1ns"])
HOCKNEY = make_given_set("hockney", ["alpha=10us", "beta=1ns", "gamma=1ns"])
WAYS = [
    ("bcast", "binomial"),
    ("bcast", "linear"),
    ("scatter", "binomial"),
    ("allreduce", "recursive-doubling"),
]
OTHER_SIZES = "log2(bytes) // 3 % 2 == 0"


def exact(truth=LOGGP) -> Measured:
    """Return points whose measured times equal the predictions of a model."""
    sizes = (8, 64, 512, 4096, 32768)
    points = [
        point(*algorithm, ranks=ranks, bytes=size)
        for algorithm in WAYS
        for ranks in (4, 8)
        for size in sizes
    ]
    return Measured(points, [prediction.seconds for prediction in predict(truth, points)], 0)


def rows_at(parameters, parts):
    """Return the rows of a model at fitted and at held-out points."""
    return predict_held_out(parameters, parts.fitted), predict_held_out(parameters, parts.held_out)


def held_out(measured, where, model):
    parts = split_points(measured, where)
    return predict_held_out(fit_without_held_out(parts, model, "t.csv"), parts.held_out)


def test_the_recommended_prediction_corrects_an_algorithm_at_other_sizes():
    """One algorithm takes twice as long as the model predicts. Measured times of held-out points do
    not change the prediction."""
    table = exact()
    slow = [entry.operation == "scatter" for entry in table.points]
    measured = Measured(
        table.points,
        [s * (2 if is_slow else 1) for s, is_slow in zip(table.seconds, slow, strict=True)],
        0,
    )
    parts = split_points(measured, OTHER_SIZES)
    known = predict_held_out(LOGGP, parts.held_out).query("operation == 'scatter'")
    recommended = recommend_held_out(*rows_at(LOGGP, parts), parts)
    assert len(recommended) == len(parts.held_out.points)
    assert known["mu"].min() == pytest.approx(2)
    assert recommended["mu"].max() < 1.3
    assert recommended["seconds"].between(recommended["low"], recommended["high"]).all()
    changed = replace(
        parts,
        held_out=replace(parts.held_out, seconds=[9 * time for time in parts.held_out.seconds]),
    )
    again = recommend_held_out(*rows_at(LOGGP, changed), changed)
    assert again["seconds"].tolist() == recommended["seconds"].tolist()


@given(
    st.sampled_from(["bytes", "ranks"]),
    st.sampled_from(["<", ">=", "=="]),
    st.sampled_from([4, 8, 64, 4096]),
)
def test_every_point_is_fitted_or_held_out(name, sign, limit):
    measured = exact()
    wanted = [eval(f"{getattr(entry, name)} {sign} {limit}") for entry in measured.points]
    if all(wanted) or not any(wanted):
        with pytest.raises(UserError, match="holds out"):
            split_points(measured, f"{name} {sign} {limit}")
        return
    parts = split_points(measured, f"{name} {sign} {limit}")
    pairs = list(zip(measured.points, measured.seconds, strict=True))
    for part, flag in ((parts.held_out, True), (parts.fitted, False)):
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
def test_held_out_expressions_use_the_column_names_of_the_matrix(where, count):
    bcast = {"operation": "bcast", "algorithm": "binomial", "ranks": 6, "bytes": 8}
    entries = (
        bcast | {"layout": "block:4"},
        bcast,
        {"operation": "reduce", "topology": "flat:4", "bytes": 8},
    )
    points = [make_point(PlatformResources.unlimited(), entry) for entry in entries]
    assert len(split_points(Measured(points, [1.0, 2.0, 3.0], 0), where).held_out.points) == count


@pytest.mark.parametrize(
    "where", ["bytes > 0", "bytes < 0", "rank > 4", "log2(bytes - 8) > 1", "bytes >"]
)
def test_a_held_out_expression_that_is_invalid_or_selects_none_or_all_is_refused(where):
    with pytest.raises(UserError) as caught:
        split_points(exact(), where)
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
def test_the_model_that_generated_the_times_predicts_held_out_points_exactly(truth, where):
    assert held_out(exact(truth), where, truth.model)["mu"].max() < 1.001


def test_hockney_fitted_to_loggp_times_overestimates_held_out_linear_broadcasts():
    """A Hockney port is busy for α + β·m per message, and cannot fit both the gap (4 µs) and the
    message time (13.5 µs) of LogGP."""
    bursts = tabulate_errors(
        held_out(exact(), "algorithm == 'linear'", "hockney"), ["operation"]
    ).set_index("operation")
    assert bursts.loc["bcast", "mu_median"] > 1.2
    assert bursts.loc["bcast", "bias"] > 0.2


def test_the_fit_does_not_see_the_times_that_are_held_out():
    measured = exact(HOCKNEY)
    later = [
        time * (10 if entry.ranks > 4 else 1)
        for entry, time in zip(measured.points, measured.seconds, strict=True)
    ]
    parts, changed = (
        split_points(measured, "ranks > 4"),
        split_points(replace(measured, seconds=later), "ranks > 4"),
    )
    assert changed.held_out.seconds == [10 * time for time in parts.held_out.seconds]
    assert fit_without_held_out(changed, "hockney", "t.csv") == fit_without_held_out(
        parts, "hockney", "t.csv"
    )


def test_a_parameter_set_states_the_held_out_points():
    parameters = fit_without_held_out(split_points(exact(), "ranks > 4"), "hockney", "t.csv")
    source = (
        "fitted from 20 points of t.csv; these points are not held out; the other 20, where ranks "
        "> 4, are"
    )
    assert parameters.source == source
    assert parameters.provenance["held_out_where"] == "ranks > 4"
    assert parameters.provenance["held_out_points"] == 20


def test_tabulated_errors_equal_the_definitions_of_mu_and_bias():
    rows = predict_held_out(HOCKNEY, exact())
    table = tabulate_errors(rows, ["operation", "alternative"])
    assert list(zip(table["operation"], table["alternative"], strict=True)) == WAYS
    for row in table.to_dict("records"):
        of_choice = rows[
            (rows["operation"] == row["operation"]) & (rows["alternative"] == row["alternative"])
        ]
        ratios = [p / m for p, m in zip(of_choice["seconds"], of_choice["measured"], strict=True)]
        mu = [max(ratio, 1 / ratio) for ratio in ratios]
        assert row["mu_mean"] == pytest.approx(np.mean(mu))
        assert row["mu_median"] == pytest.approx(np.median(mu))
        assert row["bias"] == pytest.approx(np.median(ratios) - 1)
        assert row["mu_worst"] == pytest.approx(max(mu))
        worst = of_choice.iloc[int(np.argmax(mu))]
        assert row["worst"].startswith(f"{worst['ranks']} ranks, ")
    (total,) = tabulate_errors(rows, ["model"]).to_dict("records")
    assert total["points"] == len(rows) == 40
    assert total["worst"].startswith(f"{rows.loc[rows['mu'].idxmax(), 'operation']} ")


def at(choice, ranks, size, operation="bcast"):
    return make_point(
        PlatformResources.unlimited(),
        {"operation": operation, "algorithm": choice, "ranks": ranks, "bytes": size},
    )


def table(rows, **more):
    """Return measured points from rows of (choice, ranks, bytes, seconds)."""
    return Measured([at(*row[:3]) for row in rows], [row[3] for row in rows], 0, **more)


SEEN = table(
    [
        ("linear", 4, 64, 1.0),
        ("linear", 16, 64, 2.0),
        ("linear", 4, 4096, 3.0),
        ("binomial", 4, 64, 9.0),
    ]
)


@pytest.mark.parametrize(
    ("row", "seconds"),
    [
        (("linear", 4, 64), 1.0),
        (("linear", 4, 256), 1.0),  # two doublings, and four to the other size
        (("linear", 4, 2048), 3.0),
        (("linear", 12, 64), 2.0),
        (("binomial", 16, 4096), 9.0),  # the only one
        (("chain", 4, 64), np.nan),
    ],
)
def test_the_nearest_point_is_that_of_the_fewest_doublings(row, seconds):
    assert predict_by_nearest_point(SEEN, table([(*row, 1.0)])) == pytest.approx(
        [seconds], nan_ok=True
    )


def test_the_nearest_point_is_of_the_same_setting_where_there_is_one():
    seen = replace(SEEN, settings=["a", "b", "a", "b"])
    requested = table([("linear", 4, 64, 1.0)] * 3, settings=["a", "b", "c"])
    assert predict_by_nearest_point(seen, requested).tolist() == [1.0, 2.0, 1.0]


def test_of_equally_near_points_that_of_the_same_layout_then_the_smaller_one_is_the_nearest():
    """256 B lies two doublings from 64 B and from 1 KiB, in any order of the table."""
    rows = [("linear", 8, 1024, 3.0), ("linear", 8, 64, 1.0)]
    for order in (rows, rows[::-1]):
        assert predict_by_nearest_point(
            table(order), table([("linear", 8, 256, 1.0)])
        ).tolist() == [1.0]
    shared, apart = (
        make_point(PlatformResources.unlimited(), {**entry, "layout": layout})
        for entry in [{"operation": "bcast", "algorithm": "linear", "ranks": 8, "bytes": 64}]
        for layout in ("block:4", "block:1")
    )
    seen = Measured([shared, apart], [1.0, 5.0], 0)
    assert predict_by_nearest_point(seen, Measured([apart, shared], [9.0, 9.0], 0)).tolist() == [
        5.0,
        1.0,
    ]


# seconds = bytes × ranks² × 1 ns, at three sizes of two numbers of ranks
POWER_LAW = [
    ("linear", ranks, size, size * ranks**2 * 1e-9) for ranks in (4, 16) for size in (64, 512, 4096)
]


@pytest.mark.parametrize(
    ("ranks", "size"),
    [
        (4, 128),
        (8, 64),
        (8, 1000),
        (16, 4096),
        (4, 8),
        (16, 1 << 20),
        (64, 512),
        (2, 512),
        (64, 1 << 16),
    ],
)
def test_interpolation_is_exact_for_a_power_law_within_and_beyond_the_points(ranks, size):
    requested = table([("linear", ranks, size, 1.0)])
    assert predict_by_interpolation(table(POWER_LAW), requested) == pytest.approx(
        [size * ranks**2 * 1e-9]
    )


@pytest.mark.parametrize(
    ("row", "seconds"),
    [
        (("linear", 4, 64), 1.0),
        (("linear", 4, 512), math.sqrt(3.0)),  # halfway to 4 KiB in log2
        (("linear", 8, 64), math.sqrt(2.0)),
        (("linear", 64, 64), 4.0),  # another two doublings with the last slope
        # 16 ranks have one size, whose time holds for all
        (("linear", 8, 512), math.sqrt(math.sqrt(3.0) * 2.0)),
        (("binomial", 16, 4096), 9.0),  # the only point
        (("chain", 4, 64), np.nan),
    ],
)
def test_interpolation_over_sizes_and_then_over_ranks(row, seconds):
    assert predict_by_interpolation(SEEN, table([(*row, 1.0)])) == pytest.approx(
        [seconds], nan_ok=True
    )


def test_interpolation_uses_the_same_setting_where_it_has_one():
    rows = [("linear", 4, 64, 1.0), ("linear", 4, 64, 100.0), ("linear", 4, 1024, 4.0)]
    seen = table(rows, settings=["a", "b", "a"])
    requested = table([("linear", 4, 256, 1.0)] * 3, settings=["a", "b", "c"])
    of_all = 2 * math.sqrt(10.0)  # at 64 B the median of logarithms of 1 and 100
    assert predict_by_interpolation(seen, requested) == pytest.approx([2.0, 100.0, of_all])


def test_interpolation_without_a_finite_time_is_blank():
    steep = table([("linear", 4, 64, 1e-9), ("linear", 4, 65, 1e9)])
    assert np.isnan(predict_by_interpolation(steep, table([("linear", 4, 1 << 30, 1.0)]))).all()


def test_the_nearest_ratio_corrects_a_model_that_is_wrong_by_a_factor_for_each_alternative():
    """Measured times are 3 and 5 times the predictions. The nearest point alone is wrong by the
    growth in between."""
    factors = {"linear": 3.0, "binomial": 5.0}
    places = [
        (choice, ranks, size) for choice in factors for ranks in (4, 8, 32) for size in (64, 4096)
    ]
    predicted = predict(HOCKNEY, [at(*place) for place in places])
    rows = [
        (*place, factors[place[0]] * entry.seconds)
        for place, entry in zip(places, predicted, strict=True)
    ]
    parts = split_points(table(rows), "ranks == 32")
    assert predict_by_nearest_ratio(parts, *rows_at(HOCKNEY, parts)) == pytest.approx(
        parts.held_out.seconds
    )
    assert (predict_by_nearest_point(parts.fitted, parts.held_out) < parts.held_out.seconds).all()
    by_name = predict_baselines(parts, "", *rows_at(HOCKNEY, parts)).groupby("model")["mu"].max()
    assert by_name["hockney" + NEAREST_RATIO] == pytest.approx(1)
    assert {NEAREST, INTERPOLATION} < set(by_name.index)


def test_a_ratio_that_a_model_cannot_have_is_blank():
    """LogP ignores the size, so it has no valid prediction of long messages."""
    parts = split_points(exact(), "bytes > 8")
    logp = fit_without_held_out(parts, "logp", "t.csv")
    assert np.isnan(predict_by_nearest_ratio(parts, *rows_at(logp, parts))).all()
    rows = predict_baselines(parts, "", *rows_at(logp, parts))
    assert rows.loc[rows["model"] == "logp" + NEAREST_RATIO, "mu"].isna().all()


def test_a_regression_is_of_one_algorithm_alone():
    """The times follow the form of the regression, with different coefficients for each
    algorithm."""
    rows = [
        (choice, ranks, size, scale * (1e-6 * np.log2(ranks) + 1e-9 * size))
        for choice, scale in (("linear", 1.0), ("binomial", 7.0))
        for ranks in (4, 8, 16, 32)
        for size in (64, 512, 4096, 32768)
    ]
    known = table(rows)
    parts = split_points(known, "ranks == 16 and bytes == 512")
    assert predict_by_regression(parts.fitted, parts.held_out) == pytest.approx(
        parts.held_out.seconds, rel=0.02
    )
    few = replace(parts.fitted, points=parts.fitted.points[:2], seconds=parts.fitted.seconds[:2])
    assert np.isnan(predict_by_regression(few, parts.held_out)).all()


WORKLOADS = [
    *[("linear", 4, size, 1.0) for size in (8, 64, 512)],
    *[("binomial", 4, size, seconds) for size, seconds in ((8, 2.0), (64, 2.0), (512, 0.5))],
    *[("chain", 4, 8, 0.1)],  # best where it was tried, which is in too few workloads
]


def test_baselines_are_the_best_fixed_alternative_and_the_library_default(tmp_path):
    """Linear was fastest and takes 1.5 times as long as binomial in the first held-out workload.
    The second held-out workload has no time of the library default."""
    unseen = [
        ("linear", 8, 8, 1.5),
        ("binomial", 8, 8, 1.0),
        ("linear", 8, 64, 1.0),
        ("binomial", 8, 64, 4.0),
    ]
    text = [
        f"bcast,{choice},{ranks},{size},{time}"
        for choice, ranks, size, time in [*WORKLOADS, *unseen]
    ]
    path = tmp_path / "t.csv"
    library = [
        "bcast,library,8,8,0.8",
        "bcast,library,8,8,0.6",
        "bcast,library,8,8,0.8",
        "bcast,library,x,8,1",
    ]
    path.write_text("\n".join(["operation,algorithm,ranks,bytes,seconds", *text, *library]) + "\n")
    measured = read_points(path)
    assert measured.unpredicted == 4
    parts = split_points(measured, "ranks == 8")
    rows = predict_held_out(fit_without_held_out(parts, "hockney", "t"), parts.held_out)
    judgement = score_choices(rows, parts).set_index("model")
    assert judgement.loc[ALWAYS_SAME, "workloads"] == 2
    assert judgement.loc[ALWAYS_SAME, "over_fastest"] == pytest.approx(np.sqrt(1.5))
    assert judgement.loc[ALWAYS_SAME, "over_fastest_worst"] == pytest.approx(1.5)
    assert judgement.loc[LIBRARY, ["workloads", "over_fastest"]].tolist() == [1, pytest.approx(0.8)]
    assert judgement["baseline"].to_dict() == {name: name in BASELINES for name in judgement.index}
    by_rule = choose_by_rule(parts).set_index(["model", "workload"])
    assert by_rule.loc[ALWAYS_SAME, "measured"].tolist() == [1.5, 1.0]
    assert by_rule.loc[ALWAYS_SAME, "fastest"].tolist() == [1.0, 1.0]
    assert by_rule.loc[LIBRARY, "measured"].tolist() == [0.8]


def test_baselines_stand_apart_from_families():
    assert not any(is_baseline(name) for name in list_family_names())
    parts = split_points(table(WORKLOADS), "bytes == 64")
    rows = predict_baselines(parts, "")
    assert set(rows["model"]) < set(BASELINES)
    assert set(rows["validity"]) == {"baseline"}
    assert rows["covered"].isna().all()


@given(st.permutations(range(len(WORKLOADS))))
def test_the_order_of_a_table_does_not_matter(order):
    shuffled = table([WORKLOADS[number] for number in order])
    requested = table([("linear", 8, 100, 1.0), ("binomial", 5, 600, 1.0), ("chain", 9, 9, 1.0)])
    assert (
        predict_by_nearest_point(shuffled, requested).tolist()
        == predict_by_nearest_point(table(WORKLOADS), requested).tolist()
    )


MACHINE = make_given_set("hockney", ["alpha=10us", "beta=1ns"])
SLOWNESS = {"job=1": 1.0, "job=2": 2.0}
LIBRARY_SECONDS = 1e-3
POINTS = [
    point("bcast", choice, ranks=ranks, bytes=size)
    for choice in ("linear", "binomial")
    for ranks in (4, 16)
    for size in (64, 1 << 10, 1 << 14, 1 << 18)
]


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    lines = ["operation,algorithm,ranks,bytes,seconds,setting"]
    for job, slower in SLOWNESS.items():
        for entry, prediction in zip(POINTS, predict(MACHINE, POINTS), strict=True):
            lines.append(
                f"bcast,{entry.alternative},{entry.ranks},{entry.bytes},{slower * prediction.seconds!r},{job}"
            )
            lines.append(f"bcast,library,{entry.ranks},{entry.bytes},{LIBRARY_SECONDS!r},{job}")
    path = tmp_path_factory.mktemp("bench") / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    (_, rows), *_ = heldout.score_table(path, ["hockney"])
    return {(row["held out"], row["model"]): row for row in rows}


def test_sizes_ranks_and_jobs_are_held_out_in_turn(scored):
    held_out = list(dict.fromkeys(title for title, _ in scored))
    assert held_out == [
        "every second size",
        "ranges of sizes",
        "16 ranks (2 doublings)",
        "a setting",
    ]
    families = {
        "hockney",
        "nearest point",
        "interpolation",
        "hockney × nearest ratio",
        "always one",
        "library",
    }
    assert {family for _, family in scored} >= families


def test_the_error_between_settings_is_the_slowdown_of_the_slower_setting(scored):
    """In the splits by size and by ranks, half of the points belong to the slower setting."""
    row = scored["a setting", "hockney"]
    assert row["mean μ"] == row["worst"] + "0" == "2.00"
    for title in ("ranges of sizes", "16 ranks (2 doublings)"):
        assert scored[title, "hockney"]["mean μ"] == "1.50"
        assert scored[title, "hockney"]["covered"] == "100 %"
        assert scored[title, "hockney × nearest ratio"]["worst"] == "1.0"


def test_choices_are_the_fastest_and_their_gain_over_the_library_is_reported(scored):
    row = scored["a setting", "hockney"]
    assert (row["points"], row["workloads"], row["regret"], row["worst regret"]) == (
        32,
        "16",
        "0.0 %",
        "0 %",
    )
    fastest = [
        prediction.seconds
        for prediction in predict(
            MACHINE, [entry for entry in POINTS if entry.alternative == "binomial"]
        )
    ]
    ratios = [
        slower * seconds / LIBRARY_SECONDS for seconds in fastest for slower in SLOWNESS.values()
    ]
    assert row["time / library"] == f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}"
    assert scored["a setting", "always one"]["regret"] == "0.0 %"
    assert scored["a setting", "always one"]["time / library"] == row["time / library"]
    assert scored["a setting", "library"]["time / library"] == "1.00"


def grid(ranks, sizes):
    return table([("linear", count, size, 1.0) for count in ranks for size in sizes])


def test_splits_hold_out_sizes_and_the_largest_numbers_of_ranks():
    measured = grid((2, 4, 8, 16, 32, 64, 128, 256), (1, 8, 64, 512))
    held_out = {}
    for kind in list_splits(measured):
        assert len(kind.flags) == 1
        flagged = zip(measured.points, kind.flags[0], strict=True)
        held_out[kind.title] = {(entry.ranks, entry.bytes) for entry, flag in flagged if flag}
    everything = {(entry.ranks, entry.bytes) for entry in measured.points}
    assert held_out["every second size"] == {place for place in everything if place[1] in (8, 512)}
    assert held_out["ranges of sizes"] == {place for place in everything if place[1] in (1, 64)}
    assert held_out["ranks"] == {place for place in everything if place[0] > 32}
    assert held_out["larger half of ranks"] == {place for place in everything if place[0] > 16}
    known = {(ranks, size) for ranks in (2, 32, 256) for size in (1, 64)}
    assert held_out["all but 3 ranks, half of sizes"] == everything - known


def test_splits_that_a_table_does_not_have_are_left_out():
    assert [kind.title for kind in list_splits(grid((4, 8), (8,)))] == ["ranks"]
    assert not list(list_splits(grid((4,), (8,))))


def test_points_left_out_by_the_bench_are_counted(tmp_path, capsys, monkeypatch):
    """Times grow with the square of the ranks, so that a doubling is a factor of four."""
    rows = [
        f"bcast,{choice},{ranks},{size},{factor * ranks**2 * 1e-6!r}"
        for choice, factor in (("linear", 1.0), ("binomial", 2.0))
        for ranks in (2, 4, 8, 16, 32)
        for size in (8, 64, 512)
    ]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["operation,algorithm,ranks,bytes,seconds", *rows]) + "\n")
    scores = list(heldout.score_table(path, ["hockney"], 16))
    (_, rows), *others = scores
    printed = capsys.readouterr().err
    assert (
        "t.csv: 24 of 30 points; 30 points of completion; left out by number of ranks: 6 of 32 (RANKS=16)"
        in printed
    )
    worst = {row["held out"]: row["worst"] for row in rows if row["model"] == NEAREST}
    assert worst["4 ranks (1 doubling)"] == "4.0"
    assert worst["8 ranks (2 doublings)"] == "16.0"
    assert worst["16 ranks (3 doublings)"] == "64.0"
    headings = ["Median μ / mean regret by doublings of ranks beyond the fitted"]
    assert [heading for heading, _ in others] == headings
    with monkeypatch.context() as patch:
        patch.setattr(heldout, "score_table", lambda *_: scores)  # which takes seconds
        heldout.main([str(path), "hockney", "--ranks", "16"])
    assert headings[0] in capsys.readouterr().out
    with pytest.raises(SystemExit, match="no point of at most 1 ranks"):
        heldout.main([str(path), "hockney", "--ranks", "1"])
