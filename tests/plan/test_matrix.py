"""The matrix: axes, exclusions, and rows of a table beside the YAML file, which give the same
points as `include`."""

import itertools
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.files import yaml as yamltext
from commodel.plan import matrix
from commodel.plan.config import load_experiment
from commodel.plan.experiments import Block
from commodel.plan.planning import list_tables, make_plan, use_received_files, write_plan
from tests.refusals import catch_error_message


def experiment_of(tmp_path, text):
    file = tmp_path / "some.yaml"
    file.write_text(f"platform: local\nmatrix:\n{text}")
    return load_experiment(file)


def block_of(tmp_path, text):
    return experiment_of(tmp_path, text).matrix[0]


def points(block):
    return [combination for combination, _ in matrix.list_combinations(block)]


def test_axes_in_the_order_written_then_zips_then_include(tmp_path):
    block = block_of(
        tmp_path,
        "  - axes: {bytes: [1, 1KiB], operation: bcast}\n"
        "    zips: {p: {nodes: [2, 4], layout: [block, cyclic]}}\n"
        "    include: [{operation: reduce, nodes: 2, ranks_per_node: 3}]\n",
    )
    assert list(matrix.list_combinations(block)) == [
        ({"bytes": 1, "operation": "bcast", "nodes": 2, "layout": "block"}, ()),
        ({"bytes": 1, "operation": "bcast", "nodes": 4, "layout": "cyclic"}, ()),
        ({"bytes": 1024, "operation": "bcast", "nodes": 2, "layout": "block"}, ()),
        ({"bytes": 1024, "operation": "bcast", "nodes": 4, "layout": "cyclic"}, ()),
        ({"operation": "reduce", "nodes": 2, "ranks_per_node": 3, "ranks": 6}, ("include", 0)),
    ]
    assert list(next(iter(matrix.list_combinations(block)))[0]) == [
        "bytes",
        "operation",
        "nodes",
        "layout",
    ]


def test_algorithms_with_parts_need_no_quotes_without_brackets(tmp_path):
    block = block_of(
        tmp_path,
        "  - axes:\n"
        "      operation: allreduce\n"
        "      algorithm: [hier:inter=ring:intra=linear, 'hier(inter=ring,intra=linear)', lanes]\n"
        "    exclude: [{where: \"algorithm == 'lanes'\"}]\n",
    )
    assert [entry["algorithm"] for entry in points(block)] == [
        "hier:inter=ring:intra=linear",
        "hier(inter=ring,intra=linear)",
    ]


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
    """Parameters follow the operation's name (`halo:grid=8`), also in exclusions."""
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
    block = block_of(
        tmp_path, "  - axes: {operation: bcast, ranks: 5, nodes: 2, ranks_per_node: 4}\n"
    )
    assert points(block)[0]["ranks"] == 5


def test_a_failing_exclude_expression_is_refused_with_file_and_line(tmp_path):
    block = block_of(
        tmp_path,
        "  - axes: {operation: bcast}\n    exclude:\n      - where: ranks == 1\n      - where: bytes > 1\n",
    )
    with pytest.raises(
        UserError, match=r"some.yaml:6: matrix\[0\].exclude\[1\].where: 'bytes > 1' cannot"
    ):
        points(block)


def test_too_many_are_refused_before_the_first(tmp_path):
    text = (
        "  - axes: {operation: bcast, ranks: '1:90000:+1', bytes: '1:90000:+1'}\n    include: "
        "[{operation: bcast}]\n"
    )
    with pytest.raises(
        UserError, match=r"some.yaml:2: matrix: found 8100000001 combinations, wanted at most"
    ):
        matrix.check_size(experiment_of(tmp_path, text))


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
        layouts = {
            "layout": [layout for _, layout in zipped],
            "algorithm": [f"a{number}" for number, _ in zipped],
        }
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
    assert matrix.count_combinations(block) >= len(wanted)


def test_a_block_without_a_file_still_explains_itself():
    block = Block.model_validate({"axes": {"operation": ["a", "b"]}})
    assert block.error((), "found too much").message == "found too much"
    assert yamltext.key_name(block.path) == ""


INCLUDE = """\
  - axes: {operation: bcast, algorithm: linear, ranks: 4, bytes: 8}
    include:
      - {operation: bcast, algorithm: "chain:4KiB", ranks: 8, bytes: 64KiB}
      - {operation: reduce, topology: "kary:2^3", layout: "block:2", bytes: 16, waves: 5}
      - {operation: halo, algorithm: shift, bytes: 8, parameters: {grid: 4x2, periodic: yes}}
      - {operation: barrier, algorithm: dissemination, nodes: 2, ranks_per_node: 3}
"""
TABLE = """\
bytes,operation,algorithm,topology,layout,ranks,nodes,ranks_per_node,waves,parameters.grid,parameters.periodic
64KiB,bcast,chain:4KiB,,,8
16,"reduce",,kary:2^3,block:2,,,,5

8,halo,shift,,,,,,,4x2,yes
,,,,,,,,,,
,barrier,dissemination,,,,2,3
"""
BLOCK = "  - axes: {operation: bcast, algorithm: linear, ranks: 4, bytes: 8}\n    table: jobs.tsv\n"


@pytest.fixture
def project(planned, tmp_path, monkeypatch):
    """Return `planned`, in a project with a table as CSV and TSV."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.csv").write_text(TABLE)
    (tmp_path / "jobs.tsv").write_text(TABLE.replace(",", "\t"))
    return planned


@pytest.mark.parametrize("name", ["jobs.tsv", "jobs.csv"])
def test_a_row_is_an_entry_of_include(project, name):
    wanted, plan = project(INCLUDE), project(BLOCK.replace("jobs.tsv", name))
    assert plan.points == wanted.points
    assert len(wanted.points) > 5
    assert plan.digest != wanted.digest
    assert [(path, file.kind) for path, file in plan.files.items()] == [(name, "matrix")]


def test_the_results_keep_the_table(project, tmp_path):
    plan = project(BLOCK)
    write_plan(plan, "e", tmp_path)
    (tmp_path / "jobs.tsv").write_text("operation\nnothing\n")
    kept = tmp_path / "results/e/inputs/experiments/e.yaml"
    assert make_plan(str(kept), tmp_path).points == plan.points
    with use_received_files(kept):
        assert [entry.waves for entry in load_experiment(kept).matrix[0].include] == [1, 5, 1, 1]
    (copy,) = list_tables(str(kept))
    assert "results/e/inputs/files" in copy
    assert list_tables("params/experiments/e.yaml") == ["jobs.tsv"]


MISTAKES = [
    ("chain", "chian", "jobs.tsv:2: algorithm: no algorithm 'chian:4KiB'"),
    ("4x2", "0x2", "jobs.tsv:5: operation: "),
    ("4x2", "4x(", "jobs.tsv:5: parameters.grid: found '4x(', wanted "),
    ("64KiB", "64KB", "jobs.tsv:2: bytes: found the unit 'KB' in '64KB'; did you mean"),
    ("reduce", "", "jobs.tsv:3: operation: found nothing, wanted a name"),
    (
        "chain:4KiB\t",
        "chain:4KiB\tflat:4",
        "jobs.tsv:2: topology: found beside an algorithm, wanted one of the two",
    ),
    (
        "kary:2^3",
        "file:../x",
        "jobs.tsv:3: topology: found 'file:../x', which leads out of the project's folder",
    ),
    ("4x2\tyes", "4x2\tyes\tyes", "jobs.tsv:5: found more cells than the 11 columns"),
    ("\twaves", "\twave", "jobs.tsv:1: wave: found an unknown column; did you mean 'waves'?"),
    ("\twaves", "\tbytes", "jobs.tsv:1: found the column 'bytes' twice"),
    ("operation", "", "jobs.tsv:1: found no column 'operation' among bytes, "),
]


@pytest.mark.parametrize(("old", "new", "wanted"), MISTAKES)
def test_mistakes_name_file_line_and_column(project, tmp_path, old, new, wanted):
    text = TABLE.replace(",", "\t")
    assert text.count(old) == 1
    (tmp_path / "jobs.tsv").write_text(text.replace(old, new))
    assert catch_error_message(project, BLOCK).startswith(wanted)


def test_commas_where_tabs_belong_are_seen(project, tmp_path):
    (tmp_path / "jobs.tsv").write_text(TABLE)
    assert catch_error_message(project, BLOCK).endswith("; wanted tabs between the cells")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("jobs.txt", "found 'jobs.txt', wanted a file .tsv or .csv"),
        ("none.tsv", "found no file 'none.tsv' in the project"),
        ("../a.tsv", "found '../a.tsv', wanted a file in the project"),
        ("a/../../a.tsv", "found 'a/../../a.tsv', which leads out of the project's folder"),
        ("link.tsv", "found 'link.tsv', which leads out of the project's folder"),
        ("folder.tsv", "folder.tsv: cannot be read: found a folder, wanted a file"),
    ],
)
def test_a_table_is_a_file_of_the_project(project, tmp_path, name, wanted):
    (tmp_path / "link.tsv").symlink_to("/etc/passwd")
    (tmp_path / "folder.tsv").mkdir()
    shutil.copy("jobs.tsv", "jobs.txt")
    assert wanted in catch_error_message(project, BLOCK.replace("jobs.tsv", name))
