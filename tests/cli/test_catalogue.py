"""The verbs that list what there is know all of it, and what they list can be asked for."""

import csv
import io
import json
import re
from itertools import pairwise

import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.patterns.operations import OPERATIONS
from commodel.registry import discover


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


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


def test_every_algorithm_is_listed():
    rows = json.loads(run("algorithms", "--format", "json"))
    assert len(rows) == len(discover("patterns.algorithms", "ALGORITHM"))
    linear = {"operation": "bcast", "algorithm": "linear", "title": "root sends to every rank in turn", "order": ""}
    assert linear in rows
    assert "over any topology" in run("algorithms", "reduce")


@pytest.mark.parametrize("verb", [["predict"], ["schedule"], ["export", "goal"]])
def test_help_names_every_operation(verb):
    names = re.split(r"[^a-z-]+", run(*verb, "--help").replace("-\n", "-"))  # a line may end within reduce-scatter
    assert set(OPERATIONS) <= {*names, *map("".join, pairwise(names))}


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
