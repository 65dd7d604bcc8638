"""The statistic of measured times: which ranks they are of, in tables, fits and predictions."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.files.parameter_sets import read_parameters
from commodel.fits.measured_tables import read_points
from commodel.fits.table_fits import fit_measured
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.points import PlatformResources, make_point
from commodel.predictions.predictions import predict
from commodel.records import Statistic
from tests.cli.running import run

L, o, g, G = 5e-6, 1e-6, 2e-6, 1e-9
SET = make_given_set("loggp", ["L=5us", "o_s=1us", "o_r=1us", "g=2us", "G=1ns"])


def point(operation, algorithm, ranks, size):
    combination = {
        "operation": operation,
        "algorithm": algorithm,
        "ranks": ranks,
        "bytes": size,
        "layout": "block:1",
    }
    return make_point(PlatformResources.unlimited(), combination)


def seconds(points, statistic):
    return [
        row.seconds
        for row in predict(SET, [replace(point, statistic=statistic) for point in points], draws=0)
    ]


def test_ranks_of_a_linear_broadcast_finish_one_after_the_other():
    """Root: the last of 7 sends begins at 6·g. Rank i receives L + o later than the send that began
    at (i − 1)·g."""
    of_root = 6 * g + o
    of_others = [(number - 1) * g + o + L + o for number in range(1, 8)]
    ranks = [of_root, *of_others]
    found = [
        seconds([point("bcast", "linear", 8, 1)], name)[0]
        for name in Statistic
        if name is not Statistic.UNKNOWN
    ]
    assert found == pytest.approx([max(ranks), max(ranks), min(ranks), np.mean(ranks)], rel=1e-9)


def test_ranks_of_a_chain_broadcast_finish_one_after_the_other():
    """Rank i has the message at i·(2o + L), and each but the last sends it on for o."""
    arrivals = [number * (2 * o + L) for number in range(5)]
    ranks = [time + o for time in arrivals[:-1]] + arrivals[-1:]
    (mean,) = seconds([point("bcast", "chain", 5, 1)], Statistic.RANK_MEAN)
    assert mean == pytest.approx(np.mean(ranks), rel=1e-9)


def test_senders_of_a_linear_reduction_are_done_before_the_root():
    """Each sender is done after o. OSU prints about 1/ranks of the time until the root has the
    result."""
    reduction = [point("reduce", "linear", 256, 1)]
    (completion,) = seconds(reduction, Statistic.COMPLETION)
    (mean,) = seconds(reduction, Statistic.RANK_MEAN)
    assert mean == pytest.approx((completion + 255 * o) / 256, rel=1e-9)


def test_a_leaf_of_a_binomial_broadcast_is_done_with_its_receive():
    """Over 4 ranks, 0 sends to 2 and then to 1; 2 sends to 3."""
    first = o + L + o
    ranks = [g + o, g + first, first + o, first + first]
    (mean,) = seconds([point("bcast", "binomial", 4, 1)], Statistic.RANK_MEAN)
    assert mean == pytest.approx(np.mean(ranks), rel=1e-9)


POINTS = [
    point(operation, algorithm, ranks, size)
    for operation, algorithm in (("reduce", "linear"), ("bcast", "binomial"), ("allreduce", "ring"))
    for ranks in (4, 8, 16)
    for size in (64, 1024, 16384)
]


def write_table(path, statistics):
    """Write the true times of all points in some statistics; None: the column is missing."""
    lines = []
    for name in statistics:
        times = seconds(POINTS, name or Statistic.COMPLETION)
        for row, time in zip(POINTS, times, strict=True):
            cells = [
                row.operation,
                row.algorithm,
                row.layout,
                str(row.ranks),
                str(row.bytes),
                repr(time),
            ]
            lines.append(",".join([*cells, *([name] if name else [])]))
    columns = "operation,algorithm,layout,ranks,bytes,seconds" + (
        ",statistic" if statistics[0] else ""
    )
    path.write_text("\n".join([columns, *lines]) + "\n")
    return path


def list_statistics(table):
    return {point.statistic for point in table.points}


def test_a_fit_predicts_the_statistic_of_its_table(tmp_path):
    table = read_points(write_table(tmp_path / "t.csv", [Statistic.RANK_MEAN]))
    assert list_statistics(table) == {Statistic.RANK_MEAN}
    values = fit_measured(table.points, table.seconds, "loggp", "t.csv").numbers
    assert values["G"] == pytest.approx(G, rel=0.01)
    assert values["L"] + values["o_s"] + values["o_r"] == pytest.approx(L + 2 * o, rel=0.05)


def test_of_several_statistics_of_all_points_one_is_read(tmp_path):
    every = [Statistic.FIRST_RANK, Statistic.RANK_MEAN, Statistic.LAST_RANK]
    path = write_table(tmp_path / "t.csv", every)
    assert list_statistics(read_points(path)) == {Statistic.LAST_RANK}
    chosen = read_points(path, statistic=Statistic.RANK_MEAN)
    assert chosen.seconds == pytest.approx(seconds(POINTS, Statistic.RANK_MEAN), rel=1e-12)
    with pytest.raises(UserError, match="wanted 'completion'"):
        read_points(path, statistic=Statistic.COMPLETION)


@pytest.mark.parametrize("word", ["completion", "last rank", "first rank", "rank mean"])
def test_every_statistic_can_be_given(word, tmp_path):
    path = write_table(
        tmp_path / "t.csv", [name for name in Statistic if name is not Statistic.UNKNOWN]
    )
    fitted = tmp_path / "hockney.yaml"
    run(f"fit table {path} --model hockney -o {fitted} --statistic", word)
    assert list_statistics(read_points(path, statistic=Statistic(word))) == {word}
    assert fitted.exists()


def test_workloads_of_different_statistics_are_fitted_together(tmp_path):
    """As single messages, which are complete, and collectives of OSU."""
    path = write_table(tmp_path / "t.csv", [Statistic.RANK_MEAN])
    single_messages = [point("bcast", "linear", 2, size) for size in (64, 1024, 16384)]
    for row, time in zip(
        single_messages, seconds(single_messages, Statistic.COMPLETION), strict=True
    ):
        path.write_text(
            path.read_text() + f"bcast,linear,block:1,2,{row.bytes},{time!r},completion\n"
        )
    table = read_points(path)
    assert [row.seconds for row in predict(SET, table.points, draws=0)] == pytest.approx(
        table.seconds, rel=1e-12
    )
    assert fit_measured(table.points, table.seconds, "loggp", "t.csv").numbers[
        "G"
    ] == pytest.approx(G, rel=0.01)
    said = run(f"fit table {path} --model hockney").stdout
    assert "the times are those of 27 points of rank mean, 3 of completion" in said


def test_alternatives_of_a_workload_have_one_statistic(tmp_path):
    """The others are counted."""
    path = write_table(tmp_path / "t.csv", [Statistic.RANK_MEAN])
    line = "reduce,{},block:1,4,64,9e-6,{}\n"
    path.write_text(
        path.read_text() + line.format("binomial", "rank mean") + line.format("chain", "completion")
    )
    table = read_points(path)
    assert list_statistics(table) == {Statistic.RANK_MEAN}
    assert table.other_statistics == 1
    said = run(f"fit table {path} --model hockney").stdout
    assert "left out 1 point without a time of the statistic of the other alternatives" in said


def test_points_of_a_statistic_that_a_model_lacks_are_not_fitted(tmp_path):
    """BSP has one time for all ranks of a rooted operation. It is fitted to the allreduce only."""
    table = write_table(tmp_path / "t.csv", [Statistic.RANK_MEAN])
    run(f"fit table {table} --model bsp -o {tmp_path}/bsp.yaml")
    of_allreduce = read_points(table)
    numbers = [
        number for number, row in enumerate(of_allreduce.points) if row.operation == "allreduce"
    ]
    alone = fit_measured(
        [of_allreduce.points[number] for number in numbers],
        [of_allreduce.seconds[number] for number in numbers],
        "bsp",
        "t.csv",
    )
    assert read_parameters(tmp_path / "bsp.yaml").numbers == alone.numbers


def test_the_assumed_layout_is_said(tmp_path):
    path = write_table(tmp_path / "t.csv", [Statistic.COMPLETION])
    assert "layout" not in run(f"fit table {path} --model hockney").stdout
    path.write_text(path.read_text().replace("block:1", "", 5))
    said = run(f"fit table {path} --model hockney").stdout
    assert "5 rows without a layout: each rank is assumed to have a node of its own" in said


def test_rows_that_state_none_count_as_completions_or_as_the_wanted_statistic(tmp_path):
    path = write_table(tmp_path / "t.csv", [Statistic.COMPLETION])
    text = path.read_text()
    path.write_text(text.replace("completion", "unknown", 5).replace("completion", "", 3))
    assert len(read_points(path).points) == len(POINTS)
    path.write_text(text.replace("completion", "rank mean").replace("rank mean", "unknown", 5))
    assert len(read_points(path, statistic=Statistic.RANK_MEAN).points) == len(POINTS)


def test_a_wrong_word_is_refused_with_its_line(tmp_path):
    path = write_table(tmp_path / "t.csv", [Statistic.RANK_MEAN])
    path.write_text(path.read_text().replace("rank mean", "average", 1))
    with pytest.raises(UserError, match="statistic: found 'average', wanted one of"):
        read_points(path)


def test_an_unknown_statistic_of_rooted_operations_is_said_in_one_line(tmp_path):
    path = write_table(tmp_path / "t.csv", [None])
    line = f"fit table {path} --model hockney"
    said = run(line).stdout
    assert (
        "the statistic of some rows is unknown: times of bcast, reduce count as completions" in said
    )
    assert "statistic" not in run(line, "--statistic", "rank mean").stdout
    assert list_statistics(read_points(path, statistic=Statistic.RANK_MEAN)) == {
        Statistic.RANK_MEAN
    }
    assert (
        "No such option '--statistic'"
        in run("fit probes plan.json --statistic completion", code=2).stderr
    )
