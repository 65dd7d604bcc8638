"""The verbs that list what there is know all of it, and what they list can be asked for."""

import csv
import io
import json
import re
from itertools import pairwise

import pytest

from commodel.patterns.operations import operations
from commodel.registry import discover
from tests.cli.running import output as run


@pytest.mark.parametrize(
    ("verb", "folder", "constant", "column"),
    [
        ("topologies", "patterns.trees.topologies", "TOPOLOGY", "topology"),
        ("layouts", "patterns.layouts", "LAYOUT", "layout"),
    ],
)
def test_every_form_starts_with_its_name(verb, folder, constant, column):
    rows = json.loads(run(verb, "--format", "json"))
    assert [row[column].partition(":")[0] for row in rows] == list(discover(folder, constant))
    assert all(row["title"] for row in rows)
    assert list(csv.DictReader(io.StringIO(run(verb, "--format", "csv")))) == rows
    assert len(run(verb).splitlines()) == len(rows) + 1


def test_every_operation_is_listed_with_its_parameters():
    rows = {row["operation"]: row for row in json.loads(run("operations", "--format", "json"))}
    assert list(rows) == list(operations())
    assert rows["halo"]["parameters"].startswith("grid=4x2: ranks in each dimension")
    assert rows["barrier"] == {"operation": "barrier", "bytes": "none", "mpi": "MPI_Barrier", "parameters": ""}
    shown = run("operations").splitlines()
    assert len(shown) == len(rows) + 3 + sum(len(entry.parameters) for entry in operations().values())
    assert any(line.split()[:3] == ["halo", "periodic=yes|no", "whether"] for line in shown)


def test_every_algorithm_is_listed():
    rows = json.loads(run("algorithms", "--format", "json"))
    assert len(rows) == len(discover("patterns.algorithms", "ALGORITHM"))
    linear = {"operation": "bcast", "algorithm": "linear", "title": "root sends to every rank in turn", "order": ""}
    assert linear in rows
    assert "over any topology" in run("algorithms", "reduce")


@pytest.mark.parametrize("verb", [["predict"], ["schedule"], ["export", "goal"]])
def test_help_names_every_operation(verb):
    names = re.split(r"[^a-z0-9-]+", run(*verb, "--help").replace("-\n", "-"))  # a line may end within reduce-scatter
    assert set(operations()) <= {*names, *map("".join, pairwise(names))}


def test_algorithms_of_one_operation():
    rows = json.loads(run("algorithms", "broadcast", "--format", "json"))
    assert {row["operation"] for row in rows} == {"bcast"}
    assert "did you mean 'bcast'" in run("algorithms", "bcasst", code=2)


def test_layout_shows_the_ranks_of_every_node():
    assert run("layout", "cyclic:2", "--ranks", 6) == "0 3 | 1 4 | 2 5\n"
    assert run("layout", "kinds:0@1,1core+1accelerator@2", "--ranks", 3) == "- | 0 1:accelerator | 2\n"
    assert json.loads(run("layout", "block:2", "--ranks", 3, "--format", "json"))[2] == {"rank": 2, "node": 1}
    text = run("layout", "kinds:1core@1,1accelerator@1", "--ranks", 2, "--format", "csv")
    assert text.split() == ["rank,node,kind", "0,0,core", "1,1,accelerator"]


def test_layout_on_a_platform():
    two = "tests/workflow/two-types.yaml"
    assert run("layout", "kinds:fat=2core,thin=1core", "--ranks", 9, "--platform", two) == "0 1 | 2 3 | 4 5 | 6 7 | 8\n"
    assert "0 1 | 2 3 |" in run("layout", "block", "--ranks", 16, "--platform", two)
    assert "platform 'two-types' has 8 of 2" in run("layout", "block:3", "--ranks", 9, "--platform", two, code=2)


def test_layout_of_a_file_that_names_far_nodes(tmp_path):
    (tmp_path / "ranks.txt").write_text("5000\n0\n")
    assert run("layout", f"file:{tmp_path}/ranks.txt", "--ranks", 2) == "node 0: 1 | node 5000: 0\n"


def test_topology_drawings():
    assert run("topology", "flat:2", "--format", "text").split("\n")[:2] == ["0", "|- 1"]
    assert run("topology", "b:2^2", "--format", "svg").startswith("<svg")
    assert "wanted at most 2,000 to draw" in run("topology", "flat:2001", "--format", "svg", code=2)


def test_functions_of_libraries_that_send_the_same():
    rows = json.loads(run("algorithms", "allreduce", "--libraries", "--format", "json"))
    assert {row["library"] for row in rows} == {"Open MPI", "MPICH"}
    named = {(row["algorithm"], row["function"]): row["differs"] for row in rows}
    assert named["recursive-doubling", "MPIR_Allreduce_intra_recursive_doubling"] == ""
    assert "Open MPI chooses" in named["reduce-bcast", "ompi_coll_base_allreduce_intra_nonoverlapping"]
    assert "none" in run("algorithms", "barrier", "--libraries")
