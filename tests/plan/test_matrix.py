import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.files import yaml as yamltext
from commodel.plan import matrix
from commodel.plan.config import load_experiment
from commodel.plan.experiments import Block


def experiment_of(tmp_path, text):
    file = tmp_path / "some.yaml"
    file.write_text(f"platform: local\nmatrix:\n{text}")
    return load_experiment(file)


def block_of(tmp_path, text):
    return experiment_of(tmp_path, text).matrix[0]


def points(block):
    return [combination for combination, _ in matrix.combinations(block)]


def test_axes_in_the_order_written_then_zips_then_include(tmp_path):
    block = block_of(
        tmp_path,
        "  - axes: {bytes: [1, 1KiB], operation: bcast}\n"
        "    zips: {p: {nodes: [2, 4], layout: [block, cyclic]}}\n"
        "    include: [{operation: reduce, nodes: 2, ranks_per_node: 3}]\n",
    )
    assert list(matrix.combinations(block)) == [
        ({"bytes": 1, "operation": "bcast", "nodes": 2, "layout": "block"}, ()),
        ({"bytes": 1, "operation": "bcast", "nodes": 4, "layout": "cyclic"}, ()),
        ({"bytes": 1024, "operation": "bcast", "nodes": 2, "layout": "block"}, ()),
        ({"bytes": 1024, "operation": "bcast", "nodes": 4, "layout": "cyclic"}, ()),
        ({"operation": "reduce", "nodes": 2, "ranks_per_node": 3, "ranks": 6}, ("include", 0)),
    ]
    assert list(next(iter(matrix.combinations(block)))[0]) == ["bytes", "operation", "nodes", "layout"]


def test_waves_are_an_axis_and_a_name_in_exclusions(tmp_path):
    block = block_of(
        tmp_path,
        "  - axes: {operation: bcast, waves: [1, 10, 50]}\n"
        "    exclude: [{where: waves == 10}]\n"
        "    include: [{operation: reduce, ranks: 2, waves: 1e2}]\n",
    )
    assert [combination.get("waves") for combination in points(block)] == [1, 50, 100]
    none = block_of(tmp_path, "  - axes: {operation: bcast}\n    exclude: [{where: waves > 1}]\n")
    assert points(none) == [{"operation": "bcast"}]


def test_parameters_of_the_operation_are_axes(tmp_path):
    """Written behind its name, as everywhere else; so exclusions see them."""
    block = block_of(
        tmp_path,
        "  - axes: {operation: halo, parameters: {grid: [4x2, 8], periodic: [yes, 'no']}, bytes: 8}\n"
        "    zips: {p: {algorithm: [shift, nonblocking], parameters: {N: [1, 2]}}}\n"
        "    exclude: [{where: \"operation == 'halo:grid=8:periodic=no:N=2'\"}]\n"
        "    include: [{operation: halo, algorithm: shift, parameters: {grid: 2x2}}]\n",
    )
    names = [(values["operation"], values["algorithm"]) for values in points(block)]
    switches = {"shift": 1, "nonblocking": 2}
    assert names == [
        *(
            (f"halo:grid={grid}:periodic={periodic}:N={number}", choice)
            for grid in ("4x2", "8")
            for periodic in ("yes", "no")
            for choice, number in switches.items()
            if (grid, periodic, number) != ("8", "no", 2)
        ),
        ("halo:grid=2x2", "shift"),
    ]
    assert all(set(values) <= {"operation", "algorithm", "bytes"} for values in points(block))


def test_only_include(tmp_path):
    assert points(block_of(tmp_path, "  - include: [{operation: bcast}]\n")) == [{"operation": "bcast"}]


def test_exclude_sees_derived_and_missing_names(tmp_path):
    block = block_of(
        tmp_path,
        "  - axes: {operation: bcast, nodes: [2, 3], ranks_per_node: [1, 2]}\n"
        "    exclude:\n"
        "      - where: not is_power_of_two(ranks)\n"
        "      - where: topology == 'flat:2' or layout != ''\n",
    )
    assert [point["ranks"] for point in points(block)] == [2, 4]


def test_given_ranks_win(tmp_path):
    block = block_of(tmp_path, "  - axes: {operation: bcast, ranks: 5, nodes: 2, ranks_per_node: 4}\n")
    assert points(block)[0]["ranks"] == 5


def test_types(tmp_path):
    block = block_of(tmp_path, "  - axes: {operation: bcast, layout: block, ranks: 2:4:+1, bytes: [1e3, '2 kB']}\n")
    for point in points(block):
        assert {name: type(value) for name, value in point.items()} == {
            "operation": str, "layout": str, "ranks": int, "bytes": int
        }  # fmt: skip


def test_expression_that_fails_names_its_line(tmp_path):
    block = block_of(
        tmp_path, "  - axes: {operation: bcast}\n    exclude:\n      - where: ranks == 1\n      - where: bytes > 1\n"
    )
    with pytest.raises(UserError, match=r"some.yaml:6: matrix\[0\].exclude\[1\].where: 'bytes > 1' cannot"):
        points(block)


def test_too_many_are_refused_before_the_first(tmp_path):
    text = "  - axes: {operation: bcast, ranks: '1:90000:+1', bytes: '1:90000:+1'}\n    include: [{operation: bcast}]\n"
    with pytest.raises(UserError, match=r"some.yaml:2: matrix: found 8100000001 combinations, wanted at most"):
        matrix.check_size(experiment_of(tmp_path, text))


def test_a_condition_drops_what_it_names_of_many(tmp_path):
    block = block_of(
        tmp_path,
        "  - axes: {operation: x, algorithm: [a, b], layout: [block, cyclic], ranks: '1:1000:+1', bytes: '1:25:+1'}\n"
        "    exclude: [{where: \"algorithm == 'a' and not is_power_of_two(ranks)\"}]\n",
    )
    assert len(points(block)) == 50_000 + 10 * 50


NUMBERS = ("ranks", "nodes", "ranks_per_node", "bytes")
values = st.lists(st.integers(1, 9), min_size=1, max_size=4)


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from(NUMBERS), values, max_size=3),
    st.lists(st.tuples(st.integers(1, 9), st.sampled_from(["block", "cyclic"])), max_size=3),
    st.integers(1, 9),
)
def test_is_the_obvious_loop(axes, zipped, bound):
    data = {"axes": {"operation": ["bcast", "reduce"], **axes}}
    if zipped:
        layouts = {"layout": [layout for _, layout in zipped], "algorithm": [f"a{number}" for number, _ in zipped]}
        data["zips"] = {"z": layouts}
    if "nodes" in axes:
        data["exclude"] = [{"where": f"nodes > {bound}"}]
    wanted = []
    for picked in itertools.product(*data["axes"].values()):
        for number, layout in zipped or [(None, None)]:
            point = dict(zip(data["axes"], picked, strict=True))
            if layout:
                point |= {"layout": layout, "algorithm": f"a{number}"}
            if "nodes" in point and "ranks_per_node" in point and "ranks" not in point:
                point["ranks"] = point["nodes"] * point["ranks_per_node"]
            if point.get("nodes", 0) <= bound:
                wanted.append(point)
    block = Block.model_validate(data)
    assert points(block) == wanted
    assert matrix.size(block) >= len(wanted)


def test_a_block_without_a_file_still_explains_itself():
    block = Block.model_validate({"axes": {"operation": ["a", "b"]}})
    assert block.error((), "found too much").message == "found too much"
    assert yamltext.key_name(block.path) == ""
