"""Predictions of kernels: sums of iterations, messages overlapped with a matrix product,
computation, and the rules of the papers."""

from collections import defaultdict
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.fits.table_fits import fit_points
from commodel.models.evaluation.values import Values
from commodel.models.families import find_family, list_family_names
from commodel.models.keys import Pair, make_key
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.build import Shape, build_schedule, find_fan_ins, list_parts, stack_points
from commodel.patterns.layouts import place_ranks
from commodel.patterns.schedule import KINDS
from commodel.plan.duration import Durations
from commodel.predictions.model import Model
from commodel.predictions.predictions import (
    MAX_STACKED_MESSAGES,
    StackPrediction,
    predict,
    predict_shapes,
    sum_parts,
)
from commodel.predictions.validity import VALID, Validity, ValidityKind
from commodel.records import Measure
from commodel_kernels.rectangles import Rectangles, format_rectangles, make_even_grid
from commodel_kernels.speeds import Speed
from commodel_kernels.times import (
    SUMMED_FAMILIES,
    count_iterations,
    predict_by_sums,
    predict_computation,
    predict_single_messages,
)
from tests.models.synthetic import fitted_set
from tests.patterns.catalogue import point

SIDE, RANKS = 13, 6
SIZES = (8, 1000, 100_000)  # the last one overflows buffers


@pytest.fixture(scope="module")
def partition(tmp_path_factory):
    path = tmp_path_factory.mktemp("partition") / "p.csv"
    columns = [4, 0, 9, 9, 0, 4], [0, 0, 7, 0, 8, 9], [5, 4, 4, 4, 4, 5], [9, 8, 6, 7, 5, 4]
    path.write_text(format_rectangles(replace(Rectangles.of(*columns), speed=np.full(RANKS, 1e5))))
    return path


def of(partition, size, iteration=None, overlapped=False, layout="block:3"):
    more = ("" if iteration is None else f":iteration={iteration}") + (
        ":overlapped=yes" if overlapped else ""
    )
    return point(
        f"summa:partition={partition}{more}", "paper", ranks=RANKS, bytes=size, layout=layout
    )


@lru_cache
def fitted(name):
    return fitted_set(name, noise=0.03)


@pytest.mark.parametrize("name", list_family_names())
@pytest.mark.parametrize("overlapped", [False, True])
def test_the_prediction_of_a_kernel_is_the_sum_over_the_iterations(partition, name, overlapped):
    # which is about ranks that have a node each
    how = overlapped, "block:1" if name == "lmo" else "block:3"
    wholes = predict(
        fitted(name), [of(partition, size, None, *how) for size in SIZES], strict=False
    )
    for size, whole in zip(SIZES, wholes, strict=True):
        points = [of(partition, size, k, *how) for k in range(SIDE)]
        several = predict(fitted(name), points, strict=False)
        if overlapped and not find_family(name).overlaps_work:
            assert whole.validity_text.startswith("no prediction")
            continue
        assert whole.seconds == pytest.approx(
            sum(prediction.seconds for prediction in several), rel=1e-12
        )
        assert whole.validity_text in {prediction.validity_text for prediction in several}
        assert (whole.validity_text == "valid") == (
            {prediction.validity_text for prediction in several} == {"valid"}
        )


def test_a_sum_has_weight_0_where_one_iteration_has_none(partition):
    """The validity `size not modelled` of a later iteration replaces `contention not modelled` of
    an earlier one."""
    size_not_modelled = Validity(ValidityKind.SIZE, "holds for 0 B to 7 kB")
    checks = iter([Validity(ValidityKind.CONTENTION, "4 at a time"), size_not_modelled])
    ((_, kernel),) = stack_points([of(partition, 1000)], MAX_STACKED_MESSAGES)
    ones = np.ones(1)
    costs = sum_parts(
        kernel,
        lambda part, waves: StackPrediction(ones[None], ones, [next(checks, VALID)], ones, ones),
        1,
    )
    assert costs.validity == [size_not_modelled]


def test_the_single_message_ratio_of_a_sum_is_weighted_by_the_predicted_parts(partition):
    """Iterations have predictions 1, 2, 3 … and single-message ratios 2, 3, 4 …"""
    ((_, kernel),) = stack_points([of(partition, 1000)], MAX_STACKED_MESSAGES)
    parts = [count for count, _ in kernel.iterate_parts()]
    ones, numbers = np.ones(1), np.arange(1.0, 1 + len(parts))
    answers = iter(
        [
            StackPrediction(np.full((1, 1), number), (number + 1) * ones, [VALID], ones, ones)
            for number in numbers
        ]
    )
    costs = sum_parts(kernel, lambda part, waves: next(answers), 1)
    assert costs.ratios == pytest.approx(
        np.sum(parts * numbers * (numbers + 1)) / np.sum(parts * numbers)
    )


def test_the_interval_is_that_of_the_sum(partition):
    """The interval is computed from sums per draw. It is not the sum of the iterations' intervals,
    which would assume fully correlated errors."""
    parameters, node = fitted("loggp"), place_ranks("block:3", RANKS)
    model = Model.of_set(parameters, None)
    costs = sum(model.cost(build_schedule(of(partition, 1000, k)).place(node)) for k in range(SIDE))
    (kernel,) = predict(parameters, [of(partition, 1000)])
    assert kernel.seconds == pytest.approx(costs[0])
    assert (kernel.low, kernel.high) == pytest.approx(tuple(np.percentile(costs[1:], [2.5, 97.5])))
    assert kernel.low < kernel.seconds < kernel.high


def test_a_stream_of_predictions_has_the_same_numbers(partition):
    sets = {name: fitted(name) for name in ("loggp", "taulop")}
    rows = list(predict_shapes([Shape.of(of(partition, 0), SIZES)], sets))
    for (name, parameters), columns in zip(sets.items(), rows, strict=True):
        wanted = predict(parameters, [of(partition, size) for size in SIZES])
        assert columns["model"] == name
        assert columns["seconds"].tolist() == [row.seconds for row in wanted]
        assert columns["high"].tolist() == [row.high for row in wanted]


def test_equal_iterations_are_predicted_once(partition, monkeypatch):
    requested = []
    entry = find_family("loggp")
    monkeypatch.setattr(
        Model, "cost", lambda model, pattern: requested.append(pattern) or np.array([[1.0]])
    )
    (whole,) = predict(
        make_given_set("loggp", ["L=1us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"]),
        [of(partition, 8)],
    )
    assert entry.independent
    assert whole.seconds == SIDE
    # others are single messages
    iterations = [pattern for pattern in requested if pattern.ranks > 2]
    assert len(iterations) == len({0, 4, 9, 7, 8})


def test_waves_of_a_sum_are_refused_in_one_line(partition):
    parameters = make_given_set("loggp", ["L=1us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"])
    with pytest.raises(
        UserError,
        match=r"found several waves of 'summa:.*', whose ranks begin each iteration together",
    ):
        predict(parameters, [of(partition, 8)], pipelined=True)
    (row,) = predict(parameters, [of(partition, 8)], pipelined=True, strict=False)
    assert row.validity_text.startswith("no prediction: found several waves")
    assert predict(parameters, [of(partition, 8, 3)], pipelined=True)[0].seconds > 0


def test_values_are_fitted_to_kernels_too(partition):
    """The measured times are predictions with known parameters."""
    parameters = make_given_set("hockney", ["alpha.a=20us", "beta.a=2ns"])
    points = [of(partition, size, k) for size in (8, 100, 1000, 10_000) for k in (None, 0, 5)]
    seconds = [row.seconds for row in predict(parameters, points)]
    values = fit_points(find_family("hockney"), points, seconds).values
    assert values["alpha.a"][0] == pytest.approx(20e-6, rel=1e-3)
    assert values["beta.a"][0] == pytest.approx(2e-9, rel=1e-3)


def test_fan_in_and_planned_seconds_of_a_kernel(partition):
    """The fan-in of a kernel is the maximum over its iterations, and its planned time is their
    sum."""
    kernel, every = of(partition, 8), [of(partition, 8, k) for k in range(SIDE)]
    assert find_fan_ins([kernel])[kernel.id] == max(find_fan_ins(every).values())
    durations = Durations("local", Measure("barrier", 0.02, 10, 500, 2.0, 3, 2, 60.0))
    seconds = [durations._estimate_sample(point)[0] for point in (kernel, *every)]
    assert seconds[0] == pytest.approx(sum(seconds[1:]), rel=0.2)


def test_a_single_working_rank_communicates_for_no_time(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("rank,x,y,width,height\n0,0,0,5,5\n1,0,0,0,0\n")
    # which knows how many ranks there are, and no messages
    for name in set(list_family_names()) - {"pmnf"}:
        for operation in (f"summa:partition={path}", f"wave2d:partition={path}"):
            (row,) = predict(
                fitted(name), [point(operation, "paper", ranks=2, bytes=8)], strict=False
            )
            assert row.seconds == pytest.approx(0, abs=1e-5) or row.validity_text != "valid", (
                name,
                row,
            )


SIX = Rectangles.of([4, 0, 9, 9, 0, 4], [0, 0, 7, 0, 8, 9], [5, 4, 4, 4, 4, 5], [9, 8, 6, 7, 5, 4])
HIDING = [name for name in list_family_names() if find_family(name).overlaps_work]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """written(tiling, seconds): write a partition file in which each rank computes for `seconds` in
    an iteration, and return its path."""
    path = tmp_path_factory.mktemp("partitions") / "p.csv"

    def write_it(tiling, seconds):
        speed = None if seconds is None else np.maximum(tiling.area, 1) / seconds
        path.write_text(format_rectangles(replace(tiling, speed=speed)))
        return path

    return write_it


def overlapping(path, k=None, size=8192, ranks=2, layout="block:1"):
    more = "" if k is None else f":iteration={k}"
    return point(
        f"summa:partition={path}{more}:overlapped=yes",
        "paper",
        ranks=ranks,
        bytes=size,
        layout=layout,
    )


L, O_S, O_R, G, GAMMA = 20e-6, 5e-6, 3e-6, 1e-9, 0.1e-9
LOGGP = ["L=20us", "o_s=5us", "o_r=3us", "g=6us", "G=1ns", "gamma=0.1ns"]


@pytest.mark.parametrize("seconds", [1e-15, 1e-6, 30e-6, 83e-6, 84e-6, 1e-3, 2.0])
def test_loggp_overlaps_messages_with_a_product_of_any_length(written, seconds):
    """The rank with the pivot column packs one message of 8 blocks and sends it. Both overheads and
    the packing are not overlapped."""
    path, bytes = written(make_even_grid(8, (1, 2)), np.full(2, seconds)), 8 * 8192
    (prediction,) = predict(make_given_set("loggp", LOGGP), [overlapping(path, 5)])
    sent = bytes * GAMMA + O_S
    arrives = sent + L + (bytes - 1) * G
    assert prediction.seconds == pytest.approx(max(sent, max(arrives - seconds, 0) + O_R), rel=1e-7)


@pytest.mark.parametrize("seconds", [1e-15, 1e-6, 66e-6, 67e-6, 1e-3])
def test_taulop_overlaps_messages_with_a_product_of_any_length(written, seconds):
    """The product overlaps the transfer, but not the sender's overhead and the copies."""
    path, bytes = written(make_even_grid(8, (1, 2)), np.full(2, seconds)), 8 * 8192
    values = make_given_set(
        "taulop", ["o_1.a=5us", "L_1.a=2us", "L_1.b=1ns", "gamma.a=0", "gamma.b=0.1ns"]
    )
    (prediction,) = predict(values, [overlapping(path, 5)])
    one_message = 5e-6 + 2e-6 + bytes * 1e-9
    assert prediction.seconds == pytest.approx(
        bytes * GAMMA + max(one_message - seconds, 5e-6), rel=1e-7
    )


def test_the_first_iteration_overlaps_no_computation(written):
    """The first iteration takes longer than all others. The prediction of the kernel is the sum of
    its iterations."""
    path, values = (
        written(make_even_grid(8, (1, 2)), np.full(2, 1.0)),
        make_given_set("loggp", LOGGP),
    )
    first, second, kernel = (
        row.seconds
        for row in predict(values, [overlapping(path, 0), overlapping(path, 1), overlapping(path)])
    )
    assert first > 3 * second
    assert kernel == pytest.approx(first + 7 * second)
    assert [count for _, count in list_parts(overlapping(path))] == [1, 3, 4]


def without_product(pattern):
    """Return the schedule without computation between its messages."""
    copies = pattern.work.kind == KINDS.index("copy")
    work = type(pattern.work)(*(column[..., copies] for column in pattern.work.columns))
    return replace(pattern, work=work, overlapped_seconds=None)


@settings(max_examples=25)
@given(st.data(), st.sampled_from(HIDING), st.integers(1, 12), st.sampled_from([8, 1000, 100_000]))
def test_overlap_never_takes_longer_than_communication_and_computation_in_turn(
    written, data, name, k, size
):
    """The communication time that is not overlapped is at most that without computation, falls with
    longer computation, and equals that without computation if computation takes no time."""
    how = {"layout": "block:1"} if name == "lmo" else {"layout": "block:3"}
    seconds = np.array(data.draw(st.lists(st.floats(1e-7, 1e-2), min_size=6, max_size=6)))
    model = Model.of_set(fitted_set(name), 0)

    def cost(times):
        return build_schedule(overlapping(written(SIX, times), k, size, 6, **how))

    plain = without_product(cost(seconds))
    without_overlap = float(np.ravel(model.cost(plain))[0])
    nothing, some, more = (
        float(np.ravel(model.cost(cost(times)))[0])
        for times in (np.full(6, 1e-25), seconds, seconds + 1e-3)
    )
    assert nothing == pytest.approx(without_overlap, rel=1e-7)
    assert 0 <= more <= some * (1 + 1e-6) + 1e-12
    assert some <= without_overlap * (1 + 1e-6)


def test_unknown_values_give_no_prediction(written):
    path, values = written(SIX, None), make_given_set("loggp", LOGGP)
    (row,) = predict(values, [overlapping(path, ranks=6)], strict=False)
    unknown = (
        "the time of the overlapped computation is unknown: the partition has no column 'speed'"
    )
    assert (row.validity_text, np.isnan(row.seconds)) == (f"no prediction: {unknown}", True)
    with pytest.raises(UserError, match=unknown):
        predict(values, [overlapping(path, ranks=6)])
    assert predict(values, [overlapping(path, 0, ranks=6)])[0].validity_text == "valid"


@pytest.mark.parametrize("name", sorted(set(list_family_names()) - set(HIDING)))
def test_a_family_without_overlap_is_marked(written, name):
    (row,) = predict(
        fitted_set(name), [overlapping(written(SIX, np.full(6, 1.0)), ranks=6)], strict=False
    )
    assert (
        row.validity_text
        == f"no prediction: {find_family(name).title} does not model overlap with computation"
    )


FAST, SLOW = Speed.of(((1.0, 8.0, 4.0, 16.0),)), Speed.of(((1.0, 2.0),))


def test_seconds_are_shares_over_speeds_with_inverted_intervals():
    computed = predict_computation(make_even_grid(4, (2, 1)), [FAST, SLOW])
    assert list(computed.seconds) == [1, 4]
    assert (computed.low[0], computed.high[0]) == (0.5, 2)
    assert (computed.low[1], computed.high[1]) == (4, 4)
    assert computed.slowest == 4
    assert computed.imbalance == pytest.approx(4 / 2.5 - 1)


def test_a_rank_without_work_takes_no_time():
    tiling = Rectangles.of([0, 0], [0, 0], [4, 0], [4, 0])
    np.testing.assert_array_equal(predict_computation(tiling, [SLOW, FAST]).seconds, [8, 0])


def test_summa_has_an_iteration_for_each_block_of_a_side():
    assert (
        count_iterations("gemm", make_even_grid(4, (2, 1))),
        count_iterations("wave", make_even_grid(4, (2, 1))),
    ) == (4, 1)


FIGURE_8 = "summa:partition=params/partitions/taulop-summa.csv"
TYPES = {"fat": 1, "thin": 1}
TYPED_O_S, TYPED_O_R = {"fat": 1e-6, "thin": 3e-6}, {"fat": 2e-6, "thin": 5e-6}
PLACES = ("fat.same", "thin.same", "fat.thin", "thin.fat")
TYPED_L = dict(zip(PLACES, (1e-6, 2e-6, 3e-5, 4e-5), strict=True))
TYPED_G = dict(zip(PLACES, (1e-10, 2e-10, 3e-9, 4e-9), strict=True))


def hloggp():
    numbers = {make_key("o_s", kind): value for kind, value in TYPED_O_S.items()}
    numbers |= {make_key("o_r", kind): value for kind, value in TYPED_O_R.items()}
    numbers |= {
        make_key(name, Pair.parse(place)): table[place]
        for name, table in (("L", TYPED_L), ("G", TYPED_G))
        for place in PLACES
    }
    numbers |= {make_key("g", Pair.parse(place)): 1e-3 for place in PLACES}  # no rule knows of it
    values = {name: np.array([[value]]) for name, value in numbers.items()}
    return Model.of(find_family("hloggp"), Values(values, {}, {"types": TYPES}))


def message(pattern, row):
    """Return T(m) of a message by the HLogGP equation."""
    nodes = pattern.node[pattern.src[row]], pattern.node[pattern.dst[row]]
    sender, receiver = (list(TYPES)[node] for node in nodes)
    place = f"{sender}.same" if nodes[0] == nodes[1] else f"{sender}.{receiver}"
    return (
        TYPED_O_S[sender]
        + TYPED_L[place]
        + (pattern.bytes[row] - 1) * TYPED_G[place]
        + TYPED_O_R[receiver]
    )


def sum_messages(pattern, summa):
    """Return the sum of the paper, message by message: the largest sum of a process in the pivot
    column, plus for SUMMA the largest sum of a column of ranks."""
    horizontal, vertical = defaultdict(float), defaultdict(float)
    for row in range(len(pattern.src)):
        sums = vertical if summa and pattern.step[row] > 1 else horizontal
        sums[int(pattern.src[row])] += message(pattern, row)
    return max(horizontal.values(), default=0) + max(vertical.values(), default=0)


@given(
    st.sampled_from(["summa:n=9:iteration=4", "wave2d:n=30"]),
    st.integers(2, 12),
    st.integers(1, 10_000),
)
def test_rules_for_kernels_equal_explicit_sums(operation, ranks, size):
    pattern = build_schedule(
        point(operation, "paper", ranks=ranks, bytes=size, layout=f"block:{-(-ranks // 2)}")
    )
    model = hloggp()
    assert predict_by_sums(model, pattern)[0] == pytest.approx(
        sum_messages(pattern, operation.startswith("summa")), rel=1e-12
    )
    singles = [message(pattern, row) for row in range(len(pattern.src))]
    np.testing.assert_allclose(predict_single_messages(model, pattern)[0], singles, rtol=1e-12)


def test_iteration_80_of_figure_8_by_hand():
    """p1 sends 134, 146 and 12 blocks of the column, p4 104, 6 and 110. The row has 124, 97 and 35
    blocks, all over the network."""
    pattern = build_schedule(
        point(f"{FIGURE_8}:iteration=80", "paper", ranks=6, bytes=8192, layout="block:3")
    )
    within = (
        TYPED_O_S["fat"]
        + TYPED_L["fat.same"]
        + TYPED_O_R["fat"]
        + (134 * 8192 - 1) * TYPED_G["fat.same"]
    )
    out = (
        2 * (TYPED_O_S["fat"] + TYPED_L["fat.thin"] + TYPED_O_R["thin"])
        + (158 * 8192 - 2) * TYPED_G["fat.thin"]
    )
    row = (
        TYPED_O_S["fat"]
        + TYPED_L["fat.thin"]
        + TYPED_O_R["thin"]
        + (124 * 8192 - 1) * TYPED_G["fat.thin"]
    )
    assert predict_by_sums(hloggp(), pattern)[0] == pytest.approx(within + out + row, rel=1e-12)


@pytest.mark.parametrize("name", SUMMED_FAMILIES)
def test_rules_for_kernels_ignore_gaps_and_waiting(name):
    """With one message per rank and no waiting, the sum of messages is at most the general
    prediction. With many messages per rank it is larger, since it also adds overlapping parts."""
    texts = {
        "hloggp": ["L=9us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"],
        "mlognp": ["o_mem.a=1us", "o_net.a=5us"],
    }
    texts["loggph"] = [
        f"{text.replace('=', f'.{where}=')}"
        for text in texts["hloggp"]
        for where in ("within", "between")
    ]
    parameters = make_given_set(name, texts[name])
    two = point("wave2d:n=30:grid=1x2", "paper", ranks=2, bytes=8)
    (rule,), (general,) = (
        predict(parameters, [two], cost=predict_by_sums),
        predict(parameters, [two]),
    )
    assert rule.seconds <= general.seconds * (1 + 1e-12)
    many = point("summa:n=60:grid=1x12:iteration=0", "paper", ranks=12, bytes=8)
    (rule,), (general,) = (
        predict(parameters, [many], cost=predict_by_sums),
        predict(parameters, [many]),
    )
    assert rule.seconds > (1 if name == "mlognp" else 2) * general.seconds * (1 - 1e-12)


def test_all_iterations_and_stacks_of_sizes_add_up():
    parameters = make_given_set("hloggp", ["L=9us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"])
    sizes = (1, 100, 8192)
    wholes = predict(
        parameters,
        [point("summa:n=9", "paper", ranks=6, bytes=size) for size in sizes],
        cost=predict_by_sums,
    )
    for size, whole in zip(sizes, wholes, strict=True):
        points = [point(f"summa:n=9:iteration={k}", "paper", ranks=6, bytes=size) for k in range(9)]
        assert whole.seconds == pytest.approx(
            sum(row.seconds for row in predict(parameters, points, cost=predict_by_sums))
        )
