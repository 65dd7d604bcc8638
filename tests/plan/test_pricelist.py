"""How a matrix is cut into parts: by what its shapes cost to price."""

from commodel.patterns.build import Shape, schedule
from commodel.patterns.points import Setting
from commodel.plan.config import load_experiment
from commodel.plan.prediction_list import BUILDING, STEPPING, part, shapes, weight
from tests.patterns.catalogue import point


def shape(algorithm: str, sizes: tuple[int, ...], ranks: int = 6) -> Shape:
    return Shape.of(point("bcast", algorithm, ranks=ranks, bytes=1), sizes)


def test_of_few_ranks_and_two_sizes_the_weight_is_counted():
    for algorithm in ("binomial", "chain:1KiB", "scatter-allgather"):
        both = [schedule(point("bcast", algorithm, ranks=6, bytes=size)) for size in (1, 64 << 10)]
        messages = sum(len(pattern.src) for pattern in both)
        steps = sum(len(pattern.steps) for pattern in both) / 2
        assert weight(shape(algorithm, (1, 64 << 10))) == 2 * BUILDING + messages + STEPPING * steps


def test_parts_hold_every_shape_once_and_a_long_stream_weighs_as_much_as_many_short_patterns():
    heavy = shape("chain:1KiB", (1 << 24, 1 << 25))
    light = [shape("binomial", (size,), ranks) for size in (1, 2, 3) for ranks in range(4, 40)]
    halves = [part([heavy, *light], number, 2) for number in (1, 2)]
    assert [*halves[0], *halves[1]] == [heavy, *light]
    assert halves[0] == [heavy]


def test_a_pattern_from_a_file_has_the_size_that_the_file_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.csv").write_text("step,kind,rank,peer,bytes\n0,send,0,1,640\n1,send,1,0,8\n")
    (tmp_path / "e.yaml").write_text('platform: p\nfamilies: all\nmatrix: [{axes: {operation: "file:two.csv"}}]\n')
    (only,) = shapes(load_experiment("e.yaml"), Setting.unlimited())
    assert (only.point.ranks, only.sizes) == (2, (640,))
