"""Intervals of advice: each alternative has the interval of its placement; alternatives without
residuals are noted."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from commodel.advice import Ranking, Workload, advise
from commodel.advice.decision_tables import _put_first, decide, describe_weights
from commodel.advice.evidence import (
    Evidence,
    LibraryDefault,
    describe_library_default,
    find_measured_default,
)
from commodel.api.advice import Advice
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.points import PlatformResources
from commodel.predictions.interval_basis import PARAMETERS_ONLY_TEXT
from commodel.progress import listen_with
from tests.predictions.residuals import make_stored

RESOURCES = PlatformResources("p", nodes=2, cores=8)
WORKLOAD, WAYS = Workload("bcast", 64, ranks=8), ["linear", "binomial"]


def measured(ratios_within, ratios_between):
    """Return held-out rows of models at ten workloads within a node and ten between nodes.
    `ratios`: predicted over measured time by model."""
    rows = []
    for nodes, ratios in ((1, ratios_within), (2, ratios_between)):
        for family, ratio in ratios.items():
            rows += [(family, nodes, number, 1e-5 * ratio * 1.01**number) for number in range(10)]
    frame = pd.DataFrame(rows, columns=["model", "nodes", "workload", "seconds"])
    workload = {
        "measured": 1e-5,
        "measured_low": 1e-5,
        "measured_high": 1e-5,
        "operation": "bcast",
        "validity": "valid",
        "ranks": 8,
        "bytes": 64,
        "leaves": 0,
    }
    workload |= {
        "batch": "b",
        "simulated": False,
        "algorithm": "linear",
        "alternative": "linear",
        "layout": "block:1",
    }
    points = frame["workload"].astype(str) + "/" + frame["nodes"].astype(str)
    return frame.assign(
        **workload, held_out=True, mu=frame["seconds"] / 1e-5, workload=points, point=points
    )


def weights(held_out, *layouts):
    sets = [
        make_given_set("hockney", ["alpha=10us", "beta=1ns"]),
        make_given_set("loggp", ["L=9us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"]),
    ]
    advice = advise(WORKLOAD, Evidence(sets, RESOURCES, held_out), layouts, WAYS, streams=False)
    return advice.weights, advice.notes


def advised(carried, *layouts):
    carrying = replace(make_given_set("hockney", ["alpha=10us", "beta=1ns"]), residuals=carried)
    return advise(WORKLOAD, Evidence([carrying], RESOURCES), layouts, WAYS, streams=False)


def test_progress_messages_name_the_workload_and_the_predicted_alternative():
    evidence, messages = (
        Evidence([make_given_set("hockney", ["alpha=10us", "beta=1ns"])], RESOURCES),
        [],
    )
    with listen_with(messages.append):
        decide([WORKLOAD, replace(WORKLOAD, bytes=8)], evidence, ["block:8"], lambda workload: WAYS)
    assert [text for text in messages if "alternative" not in text] == [
        "workload 1 of 2",
        "workload 2 of 2",
    ]
    assert messages[-1] == "workload 2 of 2, alternative 2 of 2 by hockney"


def test_alternatives_between_nodes_have_no_interval_where_all_was_measured_within_one():
    within = make_stored(np.linspace(-0.2, 0.4, 45), size=64.0, nodes=1.0)
    advice = advised(within, "block:8", "block:4")
    rows = advice.frame.set_index("layout")
    near, far = rows.loc["block:8"], rows.loc["block:4"]
    assert near["high"].between(1.2 * near["seconds"], 2 * near["seconds"]).all()
    assert far[["low", "high"]].isna().all(axis=None)
    assert set(far["basis"]) == {f"{PARAMETERS_ONLY_TEXT}: nothing measured between nodes"}
    assert advice.interval == advice.frame["basis"].iloc[0]
    (note,) = [note for note in advice.notes if note.startswith("NO PREDICTION INTERVAL")]
    assert "2 of 4 alternatives: no measurement between nodes" in note


def test_where_both_were_measured_there_is_nothing_to_state():
    both = make_stored(np.linspace(-0.2, 0.4, 45), size=64.0, nodes=np.tile([1.0, 2.0, 2.0], 15))
    advice = advised(both, "block:8", "block:4")
    assert not [note for note in advice.notes if note.startswith("NO PREDICTION INTERVAL")]
    assert (advice.frame["high"] > advice.frame["seconds"]).all()


def test_the_advised_time_of_a_set_is_corrected_by_its_residuals():
    """All measured broadcasts, binomial ones, took e times as long as predicted."""
    exact, slower = (
        advised(make_stored(np.full(45, log), size=64.0, nodes=1.0), "block:8").frame.set_index(
            "alternative"
        )
        for log in (0.0, 1.0)
    )
    ratios = slower["seconds"] / exact["seconds"]
    assert ratios["binomial"] == pytest.approx(np.e, rel=0.02)
    assert 1.0 < ratios["linear"] < ratios["binomial"]
    assert (slower["low"] <= slower["seconds"]).all()
    assert (slower["seconds"] <= slower["high"]).all()


def test_families_are_weighed_where_ranks_are_to_sit():
    """One model is accurate within a node and wrong by a factor of 12 between nodes; the other one
    vice versa."""
    held_out = measured({"hockney": 1.1, "loggp": 12.0}, {"hockney": 12.0, "loggp": 1.1})
    near, far = (weights(held_out, layout)[0] for layout in ("block:8", "block:4"))
    assert near["within one node"]["hockney"] > 0.95
    assert far["between nodes"]["loggp"] > 0.95
    assert weights(held_out, "block:8", "block:4")[0] == near | far
    without_nodes, _ = weights(held_out.drop(columns="nodes"), "block:8")
    assert without_nodes["within one node"]["hockney"] == pytest.approx(
        without_nodes["within one node"]["loggp"]
    )


def test_predictions_use_the_model_weights_for_the_placement_of_each_alternative():
    """Alternatives of two layouts in one list have the same predictions as in a list per layout."""
    held_out = measured({"hockney": 1.1, "loggp": 12.0}, {"hockney": 12.0, "loggp": 1.1})
    sets = [
        make_given_set("hockney", ["alpha=10us", "beta=1ns"]),
        make_given_set("loggp", [f"{key}=1us" for key in ("L", "o_s", "o_r", "g", "G")]),
    ]
    advice_by_layouts = [
        advise(WORKLOAD, Evidence(sets, RESOURCES, held_out), layouts, WAYS, streams=False)
        for layouts in (["block:8", "block:4"], ["block:8"], ["block:4"])
    ]
    columns = ["alternative", "layout", "seconds", "low", "high", "basis"]
    mixed, near, far = (
        advice.frame.set_index(["alternative", "layout"]).sort_index()
        for advice in advice_by_layouts
    )
    pd.testing.assert_frame_equal(
        mixed[columns[2:]], pd.concat([near, far])[columns[2:]].sort_index()
    )
    assert (
        describe_weights(advice_by_layouts[0])
        == "within one node hockney 100 %; between nodes loggp 100 %"
    )
    assert mixed["support"].sum() == pytest.approx(1)


def test_points_of_another_placement_do_not_affect_model_weights():
    held_out = measured({"hockney": 1.1, "loggp": 12.0}, {})
    alike, _ = weights(held_out, "block:4")
    assert alike == {"between nodes": {"hockney": 0.5, "loggp": 0.5}}
    mixed, _ = weights(held_out, "block:8", "block:4")
    assert mixed["within one node"]["hockney"] > 0.95
    assert mixed["between nodes"] == alike["between nodes"]


def with_default(seconds_by_size):
    """Return measured points that include the library default at some sizes, with a confidence
    interval of ±10 %."""
    rows = measured({"hockney": 1.0, "loggp": 1.0}, {"hockney": 1.0, "loggp": 1.0})
    default_rows = pd.DataFrame(
        {"bytes": list(seconds_by_size), "measured": list(seconds_by_size.values())}
    )
    default_rows = default_rows.assign(
        operation="bcast",
        layout="block:4",
        ranks=8,
        leaves=0,
        algorithm="library",
        model="",
        validity="",
        held_out=True,
    )
    default_rows = default_rows.assign(
        measured_low=default_rows["measured"] / 1.1,
        measured_high=default_rows["measured"] * 1.1,
        batch="b",
        simulated=False,
        nodes=2,
    )
    names = "library/" + default_rows["bytes"].astype(str)
    return pd.concat(
        [rows, default_rows.assign(point=names, workload=names, seconds=np.nan, mu=np.nan)],
        ignore_index=True,
    )


@pytest.mark.parametrize(
    ("times", "seconds"), [({32: 2e-5, 64: 3e-5}, 3e-5), ({128: 3e-5}, None), ({}, None)]
)
def test_a_measured_time_of_the_mpi_default_is_that_of_the_workload(times, seconds):
    default = find_measured_default(with_default(times), "bcast", 8, 0, 64)
    if seconds is None:
        assert default is None
        return
    assert (default.seconds, default.source) == (seconds, "measured")
    assert (default.low, default.high) == pytest.approx((seconds / 1.1, seconds * 1.1))


def test_the_mpi_default_has_the_requested_layouts():
    rows = pd.concat(
        [
            with_default({64: seconds}).assign(layout=layout)
            for layout, seconds in (("block:4", 4e-5), ("cyclic:4", 2e-5))
        ],
        ignore_index=True,
    )
    times = {
        layouts: find_measured_default(rows, "bcast", 8, 0, 64, layouts)
        for layouts in ((), ("block:4",), ("cyclic:4",), ("block:8",))
    }
    assert [default and default.seconds for default in times.values()] == [2e-5, 4e-5, 2e-5, None]
    sets = [make_given_set("hockney", ["alpha=10us", "beta=1ns"])]
    advice = advise(WORKLOAD, Evidence(sets, RESOURCES, rows), ["block:4"], WAYS, streams=False)
    assert advice.default.seconds == 4e-5


def advise_default(ranks, size):
    """Return the advice for a workload, from times of the MPI default over 8 to 64 ranks."""
    parts = []
    for count in (8, 16, 32, 64):
        times = {bytes: np.log2(count) * (4e-6 + 1e-9 * bytes) for bytes in (64, 1024, 16384)}
        rows = with_default(times).assign(ranks=count, nodes=count // 4)
        parts.append(rows.assign(point=rows["point"] + f" {count}"))
    rows = pd.concat(parts, ignore_index=True)
    sets = [make_given_set("hockney", ["alpha=10us", "beta=1ns"])]
    evidence = Evidence(sets, PlatformResources("p", nodes=64, cores=4), rows, rows)
    workload = Workload("bcast", size, ranks=ranks)
    return advise(workload, evidence, ["block:4"], ["binomial", "linear"], streams=False)


def test_the_mpi_default_is_predicted_between_the_measured_sizes_and_ranks():
    default = advise_default(24, 4096).default
    exact = np.log2(24) * (4e-6 + 4096e-9)
    assert default.source == "predicted from its measured times on block:4"
    assert default.seconds == pytest.approx(exact, rel=0.15)
    assert default.low < exact < default.high


def test_the_mpi_default_is_predicted_beyond_the_measured_ranks():
    """From the times of a run, for a workload that was never measured."""
    advice = advise_default(128, 1024)
    assert advice.default.seconds == pytest.approx(7 * (4e-6 + 1024e-9), rel=0.1)
    assert advice.default.low < advice.default.seconds < advice.default.high
    assert advice.default.source == (
        "predicted from its measured times on block:4, extrapolated by 1 doubling of the ranks "
        "beyond the measured times"
    )
    assert advice.keeps_default
    assert any("predicted from its measured times" in note for note in advice.notes)


@pytest.mark.parametrize(("seconds", "kept"), [(1e-6, True), (1.0, False)])
def test_the_mpi_default_is_kept_if_no_alternative_is_clearly_faster(seconds, kept):
    sets = [make_given_set("hockney", ["alpha=10us", "beta=1ns"])]
    advice = advise(
        WORKLOAD,
        Evidence(sets, RESOURCES, with_default({64: seconds})),
        ["block:4"],
        WAYS,
        streams=False,
    )
    assert advice.keeps_default is kept
    assert advice.default.seconds == seconds
    assert (
        advise(WORKLOAD, Evidence(sets, RESOURCES), ["block:4"], WAYS, streams=False).keeps_default
        is False
    )


@pytest.mark.parametrize(
    ("nodes", "seconds", "simulated", "named"),
    [
        (1, 1e-6, False, True),
        (1, 1.0, False, False),
        (1, 1e-6, True, False),
        (2, 1e-6, False, False),
    ],
)
def test_shared_memory_is_named_where_the_mpi_default_is_faster_within_a_node(
    nodes, seconds, simulated, named
):
    layout = f"block:{8 // nodes}"
    sets = [replace(make_given_set("hockney", ["alpha=10us", "beta=1ns"]), simulated=simulated)]
    rows = with_default({64: seconds}).assign(layout=layout)
    advice = advise(WORKLOAD, Evidence(sets, RESOURCES, rows), [layout], WAYS, streams=False)
    (note,) = (note for note in advice.notes if note.startswith("the MPI default "))
    assert ("it may use collectives over shared memory" in note) is named


@pytest.mark.parametrize(
    ("measured", "note"),
    [
        (427e-6, "the MPI default takes 1.60 times as long (both measured)"),
        (np.nan, "the MPI default takes 1.67 times as long (measured, against a predicted time)"),
    ],
)
def test_the_mpi_default_is_compared_with_the_measured_time_of_the_alternative_if_there_is_one(
    measured, note
):
    default = LibraryDefault(685e-6, 680e-6, 690e-6, "measured")
    assert describe_library_default(default, 409e-6, measured, within_real_node=False) == [note]


@pytest.mark.parametrize(("seconds", "kept"), [(1e-6, True), (1.0, False)])
def test_a_decision_table_names_the_mpi_default_where_the_default_is_kept(seconds, kept):
    evidence = Evidence(
        [make_given_set("hockney", ["alpha=10us", "beta=1ns"])],
        RESOURCES,
        with_default({64: seconds}),
    )
    (row,) = decide([WORKLOAD], evidence, ["block:4"], lambda workload: WAYS).to_dict("records")
    assert (row["algorithm"] == "library") is kept
    assert (row["seconds"] == seconds) is kept
    assert (row["basis"] == "measured") is kept
    assert not (kept and row["as_good"])


def test_a_common_alternative_of_all_sizes_has_the_basis_of_its_own_interval():
    rows = pd.DataFrame(
        {"alternative": ["a", "b", "c"], "layout": "block:1", "seconds": [1.0, 1.1, 1.2]}
    )
    rows["basis"] = ["9 workloads of bcast", "11 workloads of bcast", "parameters only"]
    advice = _put_first(
        Ranking(WORKLOAD, rows, {}, [], deviations=(0.1, 0.2, 0.3)), ("c", "block:1")
    )
    assert advice.frame["alternative"].tolist() == ["c", "a", "b"]
    assert advice.interval == "parameters only"
    assert advice.deviations == (0.3, 0.1, 0.2)


def test_points_to_measure_are_named_where_much_regret_is_at_stake():
    """The model is wrong by a factor of two at random, so the choice between nearly equal
    alternatives is a guess."""
    sets = [make_given_set("hockney", ["alpha=10us", "beta=1ns"])]
    rng, rows = np.random.default_rng(5), measured({}, {"hockney": 1.0})
    more = [rows.assign(alternative=f"way{n}", point=rows["point"] + f" {n}") for n in range(3)]
    noisy = pd.concat(more, ignore_index=True)
    noisy["seconds"] *= np.exp(0.7 * rng.standard_normal(len(noisy)))
    noisy["mu"] = np.maximum(noisy["seconds"] / 1e-5, 1e-5 / noisy["seconds"])
    specs = ["binomial", "knomial:3", "knomial:4"]
    evidence = Evidence(sets, RESOURCES, noisy)
    advice = advise(WORKLOAD, evidence, ["block:4"], specs, streams=False)
    assert advice.frame["regret"].iloc[0] > 0.1
    # The answer comes first, then what would settle the doubt.
    sentence = Advice.of(advice, evidence).sentence
    assert sentence.startswith(f"{advice.sentence}. Alternatives are statistically tied")
    assert ". Measure first: " in sentence
    assert len(advice.informative_points) == 2
    assert {entry.alternative for entry in advice.informative_points} <= set(specs)
    assert [entry.point.alternative for entry in advice.informative_points] == [
        entry.alternative for entry in advice.informative_points
    ]
    following = advice.frame.iloc[1]
    assert (
        f". Compared with {following['alternative']}, {following['layout_name']}, it is "
        in advice.sentence
    )
    assert advice.lead.low < 1 < advice.lead.high
    unmeasured = advise(WORKLOAD, Evidence(sets, RESOURCES), ["block:4"], specs, streams=False)
    assert unmeasured.lead is None
    assert "Compared with" not in unmeasured.sentence
    exact = advise(
        WORKLOAD,
        Evidence(sets, RESOURCES, measured({}, {"hockney": 1.0})),
        ["block:4"],
        WAYS,
        streams=False,
    )
    assert exact.informative_points == ()


def test_alternatives_without_a_row_of_their_own_are_named():
    """With 6 ranks, recursive doubling of an allgather sends the same messages as Bruck's
    algorithm."""
    sets = [make_given_set("hockney", ["alpha=10us", "beta=1ns"])]
    rows = {
        ranks: advise(
            Workload("allgather", 64, ranks=ranks),
            Evidence(sets, RESOURCES),
            ["block"],
            streams=False,
        ).frame.set_index("alternative")["same_messages"]
        for ranks in (6, 8)
    }
    assert "recursive-doubling" not in rows[6]
    assert rows[6]["bruck"] == "recursive-doubling"
    assert "recursive-doubling" in rows[8]
    assert rows[8]["bruck"] == ""


def test_alternatives_that_need_more_nodes_are_named():
    """The platform has 16 cores; some trees with 12 leaves have more nodes."""
    sets = [make_given_set("hockney", ["alpha=10us", "beta=1ns"])]
    advice = advise(Workload("bcast", 64, leaves=12), Evidence(sets, RESOURCES), streams=False)
    (note,) = (note for note in advice.notes if note.startswith("left out: "))
    assert "alternatives that need more nodes or cores than the platform has: balanced:" in note


def test_a_note_states_that_0_bytes_move_no_data():
    sets = [make_given_set("hockney", ["alpha=10us", "beta=1ns"])]
    notes = [
        advise(
            Workload(operation, 0, ranks=8), Evidence(sets, RESOURCES), ["block"], streams=False
        ).notes
        for operation in ("allgather", "barrier")
    ]
    stated = [
        [note for note in of_operation if note.startswith("0 bytes: no data move")]
        for of_operation in notes
    ]
    assert [len(of_operation) for of_operation in stated] == [1, 0]
