"""Paths: no name leads out of a folder, and names in received files lead to files of the project
only."""

import json
import stat
from contextlib import chdir

import pytest

from commodel.errors import UserError
from commodel.files.safe_paths import SafePath, check_inside
from commodel.fits.measured_tables import read_points
from commodel.interchange import StatedProperties, csv, read_all_times
from commodel.patterns.trees.topologies import make_tree
from commodel.plan.config import load_experiment
from commodel.plan.planning import load_plan
from tests.fuzz.readers import make_plan_text


def test_names_do_not_lead_out(tmp_path):
    for name in ("..", ".", "a/../b", "/etc", "a\0", "a//b", ""):
        with pytest.raises(UserError, match="found the name"):
            SafePath(tmp_path) / name


def test_a_new_file_has_the_rights_that_the_user_s_mask_gives(tmp_path):
    with chdir(tmp_path), (SafePath(tmp_path) / "a/b").replace_atomically() as stream:
        stream.write(b"x")
    (tmp_path / "plain").touch()
    assert stat.S_IMODE((tmp_path / "a/b").stat().st_mode) == stat.S_IMODE(
        (tmp_path / "plain").stat().st_mode
    )
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


def test_nothing_is_added_to_a_file_that_has_another_name(tmp_path):
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "log").hardlink_to(tmp_path / "precious")
    with pytest.raises(UserError, match="log: found a file with a second hard link"):
        (SafePath(tmp_path) / "log").open("a+")
    with (SafePath(tmp_path) / "log").open("w") as stream:  # a new file of that name
        stream.write("x")
    assert (tmp_path / "precious").read_text() == "precious"


TREE = "node,parent\n0,\n1,0\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project with a tree inside, a tree outside, and links from inside to outside."""
    home = tmp_path / "project"
    home.mkdir()
    (tmp_path / "outside.csv").write_text(TREE)
    (home / "inside.csv").write_text(TREE)
    (home / "link.csv").symlink_to("../outside.csv")
    (home / "folder").symlink_to("..")
    (home / "circle.csv").symlink_to("circle.csv")
    monkeypatch.chdir(home)
    return home


OUTSIDE = ("file:../outside.csv", "file:link.csv", "file:folder/outside.csv", "file:/etc/passwd", "file:link.csv@1,0",
           "file:circle.csv", " file :/etc/passwd", "file:a/../../outside.csv", "summa:n=9: partition = /etc/passwd",
           "wave2d:partition=inside.csv:partition=link.csv", "processes:../outside.csv",
           "strange:matrix=link.csv")  # fmt: skip
INSIDE = (
    "summa:partition=inside.csv",
    "strange:each=1ns/B:matrix=inside.csv",
    "halo:grid=4x2",
    "file:inside.csv",
    "file:./inside.csv",
    "file:folder/project/inside.csv",
    "flat:2",
    "file:none.csv",
    "block",
)


def test_specs_with_files_outside_the_project_are_refused(project):
    for spec in (*INSIDE, f"file:{project}/inside.csv"):
        check_inside(spec)
    for spec in OUTSIDE:
        with pytest.raises(UserError, match="leads out of the project's folder"):
            check_inside(spec)
    assert make_tree("file:../outside.csv").nodes == 2  # typed by the user


@pytest.mark.parametrize("spec", [spec for spec in OUTSIDE if spec[0] not in " sw"])
@pytest.mark.parametrize(
    ("block", "line"),
    [
        ("- axes:\n    operation: bcast\n    bytes: 1\n    topology: ['flat:2', 'SPEC']\n", 7),
        (
            "- axes: {operation: bcast, bytes: 1}\n  zips:\n    z:\n      ranks: 2\n      layout: 'SPEC'\n",
            8,
        ),
        ("- include:\n  - operation: bcast\n    bytes: 1\n    topology: 'SPEC'\n", 7),
    ],
)
def test_experiments(project, spec, block, line):
    file = project / "e.yaml"
    file.write_text("platform: p\nmodels: all\nmatrix:\n" + block.replace("SPEC", spec))
    with pytest.raises(
        UserError, match=f"^{file}:{line}: matrix.*leads out of the project's folder"
    ):
        load_experiment(file)


@pytest.mark.parametrize(
    ("block", "line"),
    [
        ("- axes: {operation: 'summa:partition=link.csv', bytes: 1}\n", 4),
        (
            "- axes:\n    operation: wave2d\n    bytes: 1\n    parameters: {partition: [inside.csv, link.csv]}\n",
            7,
        ),
        (
            "- include:\n  - operation: wave2d\n    bytes: 1\n    parameters: {partition: folder/outside.csv}\n",
            7,
        ),
    ],
)
def test_partitions_of_experiments(project, block, line):
    file = project / "e.yaml"
    file.write_text("platform: p\nmodels: all\nmatrix:\n" + block)
    with pytest.raises(
        UserError, match=f"^{file}:{line}: matrix.*leads out of the project's folder"
    ):
        load_experiment(file)


def test_tables(project):
    table = project / "t.csv"
    table.write_text("operation,topology,bytes,seconds\nreduce,file:../outside.csv,8,1us\n")
    with pytest.raises(UserError, match=f"^{table}:2: topology: .*leads out"):
        read_points(table)
    table.write_text(
        "operation,algorithm,ranks,bytes,seconds\nsumma:partition=link.csv,paper,2,8,1us\n"
    )
    with pytest.raises(UserError, match=f"^{table}:2: operation: .*leads out"):
        read_points(table)
    table.write_text(
        "operation,algorithm,ranks,layout,bytes,seconds\nbcast,linear,2,file:/etc/passwd,8,1us\n"
    )
    with pytest.raises(UserError, match=f"^{table}:2: .*leads out"):
        read_points(table)
    with pytest.raises(UserError, match=f"^{table}:2: .*leads out"):
        read_all_times(csv.FORMAT, [table], StatedProperties())


@pytest.mark.parametrize(
    "change",
    [
        ("layout", "file:/etc/passwd"),
        ("topology", "file:../outside.csv"),
        ("operation", "summa:partition=link.csv"),
    ],
)
def test_plans(project, change):
    plan = json.loads(make_plan_text())
    batch = next(batch for batch in plan["batches"] if batch["points"])
    batch["points"][0][change[0]] = change[1]
    (project / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(UserError, match="leads out"):
        load_plan(project / "plan.json")
