"""A matrix as a table beside the YAML: the same points as `include` makes of the same combinations, and mistakes with
line and column."""

import shutil

import pytest

from commodel.plan.config import load_experiment
from commodel.plan.planning import make_plan, received, tables_of, write_plan
from tests.refusals import message

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
    """planned, in a project with a table."""
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
    with received(kept):
        assert [entry.waves for entry in load_experiment(kept).matrix[0].include] == [1, 5, 1, 1]
    (copy,) = tables_of(str(kept))
    assert "results/e/inputs/files" in copy
    assert tables_of("params/experiments/e.yaml") == ["jobs.tsv"]


MISTAKES = [
    ("chain", "chian", "jobs.tsv:2: algorithm: no algorithm 'chian:4KiB'"),
    ("4x2", "0x2", "jobs.tsv:5: operation: "),
    ("4x2", "4x(", "jobs.tsv:5: parameters.grid: found '4x(', wanted "),
    ("64KiB", "64KB", "jobs.tsv:2: bytes: found the unit 'KB' in '64KB'; did you mean"),
    ("reduce", "", "jobs.tsv:3: operation: found nothing, wanted a name"),
    ("chain:4KiB\t", "chain:4KiB\tflat:4", "jobs.tsv:2: topology: found beside an algorithm, wanted one of the two"),
    ("kary:2^3", "file:../x", "jobs.tsv:3: topology: found 'file:../x', which leads out of the project's folder"),
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
    assert message(project, BLOCK).startswith(wanted)


def test_commas_where_tabs_belong_are_seen(project, tmp_path):
    (tmp_path / "jobs.tsv").write_text(TABLE)
    assert message(project, BLOCK).endswith("; wanted tabs between the cells")


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
    assert wanted in message(project, BLOCK.replace("jobs.tsv", name))
