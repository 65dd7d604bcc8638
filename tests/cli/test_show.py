"""Verbs that list operations, topologies, layouts and networks, and draw the named one."""

import csv
import io
import json
import math
import re
import shutil
from itertools import pairwise

import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.cli._output import print_rows
from commodel.files.parameter_sets import write_parameters
from commodel.files.results_folder import Results
from commodel.files.tables import write_table
from commodel.hierarchy import Hierarchy
from commodel.models.families import find_family, list_family_names
from commodel.models.parameter_sets import make_given_set
from commodel.models.probes import Site, find_probe
from commodel.patterns.operations import list_operations
from commodel.records import Batch
from commodel.registry import discover
from commodel.sources import ROOT
from tests.cli.running import output, read_rows
from tests.compare.pairs import summary
from tests.planning import planned


@pytest.mark.parametrize(
    ("verb", "folder", "constant", "column"),
    [
        ("topologies", "patterns.trees.topologies", "TOPOLOGY", "topology"),
        ("layouts", "patterns.layouts", "LAYOUT", "layout"),
    ],
)
def test_show_lists_every_topology_and_layout_by_name(verb, folder, constant, column):
    rows = read_rows(f"show {verb}")
    only_advise = ["near"] if verb == "layouts" else []
    assert [row[column].partition(":")[0] for row in rows] == [
        *discover(folder, constant),
        *only_advise,
    ]
    assert all(read_rows(f"show {verb} {name}") == rows[-1:] for name in only_advise)
    assert all(row["title"] for row in rows)
    assert list(csv.DictReader(io.StringIO(output(f"show {verb} --format csv")))) == rows
    heads = re.findall(r"^\S+", output(f"show {verb}"), re.MULTILINE)
    assert [head for row in rows for head in heads if head == row[column].split()[0]] == [
        row[column].split()[0] for row in rows
    ]
    assert read_rows(f"show {verb} {rows[0][column].partition(':')[0]}") == rows[:1]


def test_show_operations_lists_every_operation_with_all_parameters():
    rows = {row["operation"]: row for row in read_rows("show operations")}
    assert list(rows) == list(list_operations())
    assert rows["halo"]["parameters"].startswith("grid=4x2: ranks in each dimension")
    assert rows["barrier"] == {
        "operation": "barrier",
        "bytes": "none",
        "mpi": "MPI_Barrier",
        "parameters": "",
    }
    shown = re.findall(r"^\S.*", output("show operations"), re.MULTILINE)
    assert len(shown) == len(rows) + 2 + sum(
        len(entry.parameters) for entry in list_operations().values()
    )
    assert any(line.split()[:3] == ["halo", "periodic=yes|no", "whether"] for line in shown)


def test_models_are_listed_as_json_with_all_parameters():
    entries = {entry["name"]: entry for entry in read_rows("show models")}
    assert list(entries) == list_family_names()
    for name, entry in entries.items():
        assert [parameter["name"] for parameter in entry["parameters"]] == [
            parameter.name for parameter in find_family(name).parameters
        ]
    assert read_rows("show models loggp") == entries["loggp"]
    assert {"per": "pair", "unit": "s"}.items() <= next(
        parameter for parameter in entries["hloggp"]["parameters"] if parameter["name"] == "L"
    ).items()


def test_every_algorithm_is_listed():
    rows = read_rows("show algorithms")
    assert len(rows) == len(discover("patterns.algorithms", "ALGORITHM"))
    linear = {
        "operation": "bcast",
        "algorithm": "linear",
        "title": "root sends to one rank after the other",
        "order": "",
    }
    assert linear in rows
    assert "over any topology" in output("show algorithms reduce")


@pytest.mark.parametrize("verb", [["predict"], ["show", "schedule"], ["export", "goal"]])
def test_help_names_every_operation(verb):
    # a line may end within reduce-scatter
    names = re.split(r"[^a-z0-9-]+", output(*verb, "--help").replace("-\n", "-"))
    assert set(list_operations()) <= {*names, *map("".join, pairwise(names))}


def test_algorithms_of_one_operation():
    rows = read_rows("show algorithms broadcast")
    assert {row["operation"] for row in rows} == {"bcast"}


def test_layout_shows_the_ranks_of_every_node():
    assert output("show layout cyclic:2 --ranks 6") == "0 3 | 1 4 | 2 5\n"
    assert (
        output("show layout kinds:0@1,1core+1accelerator@2 --ranks 3")
        == "- | 0 1:accelerator | 2\n"
    )
    assert read_rows("show layout block:2 --ranks 3")[2] == {"rank": 2, "node": 1}
    text = output("show layout kinds:1core@1,1accelerator@1 --ranks 2 --format csv")
    assert text.split() == ["rank,node,kind", "0,0,core", "1,1,accelerator"]


def test_layout_on_a_platform():
    two = "tests/workflow/two-types.yaml"
    assert (
        output(f"show layout kinds:fat=2core,thin=1core --ranks 9 --platform {two}")
        == "0 1 | 2 3 | 4 5 | 6 7 | 8\n"
    )
    assert "0 1 | 2 3 |" in output(f"show layout block --ranks 16 --platform {two}")


def test_layout_of_a_file_that_names_far_nodes(tmp_path):
    (tmp_path / "ranks.txt").write_text("5000\n0\n")
    assert (
        output(f"show layout file:{tmp_path}/ranks.txt --ranks 2") == "node 0: 1 | node 5000: 0\n"
    )


def test_topology_drawings():
    assert output("show topology flat:2 --format text").split("\n")[:2] == ["0", "|- 1"]
    assert output("show topology b:2^2 --format svg").startswith("<svg")


def test_the_critical_path_of_a_barrier_counts_its_messages_up_and_down(tmp_path):
    path = tmp_path / "loggp.yaml"
    write_parameters(
        path, make_given_set("loggp", ["L=5us", "o_s=2us", "o_r=1us", "g=1us", "G=1ns"])
    )
    said = output(f"show topology kary:2^2 --operation barrier --params {path} --format summary")
    waited, messages = map(int, re.search(r"waits for (\d+) of (\d+) messages", said).groups())
    assert (waited <= messages, messages) == (True, 12)


def test_json_has_null_for_missing_and_infinite_numbers(capsys):
    print_rows([{"a": math.nan, "b": math.inf, "c": 1.5, "d": "x"}], "json")
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == [
        {"a": None, "b": None, "c": 1.5, "d": "x"}
    ]
    print_rows([{"a": math.nan, "b": math.inf, "c": 1.5, "d": "x"}], "csv")
    assert capsys.readouterr().out == "a,b,c,d\n,inf,1.5,x\n"


def test_functions_of_libraries_that_send_the_same():
    rows = read_rows("show algorithms allreduce --libraries")
    assert {row["library"] for row in rows} == {"Open MPI", "MPICH", "none"}
    without = {row["algorithm"].partition("[")[0] for row in rows if row["library"] == "none"}
    assert without == {"by-node:ALGORITHM", "hier", "lanes"}
    named = {(row["algorithm"], row["function"]): row["differs"] for row in rows}
    assert named["recursive-doubling", "MPIR_Allreduce_intra_recursive_doubling"] == ""
    assert (
        "Open MPI selects" in named["reduce-bcast", "ompi_coll_base_allreduce_intra_nonoverlapping"]
    )
    assert "none" in output("show algorithms barrier --libraries")


LEAVES = Hierarchy.of({"leaf": [0, 0, 0, 1, 1, 1, 1, 1]})
NAMES = [f"n{node}" for node in range(8)]


@pytest.fixture
def show_network(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = Results.of(tmp_path / "results" / "e")
    batch = Batch("b", "p", 8, cases=tuple(find_probe("nodepairs").cases("p", Site(8, 1), [8])))
    note = tmp_path / "results" / "e" / "raw" / "b" / "provenance.json"
    note.parent.mkdir(parents=True)
    note.write_text(
        json.dumps({"platform": "p", "nodes": NAMES, "levels": {"rack": [0, 0, 0, 1, 1, 1, 2, 2]}})
    )
    (tmp_path / "results" / "e" / "plan.json").write_text(json.dumps(planned(batch).as_json()))
    write_table(results.table("summary"), summary(LEAVES, 8, {6: 3.0}))

    def show_network(*arguments, code=0):
        result = CliRunner().invoke(main, ["show", "network", *arguments])
        assert result.exit_code == code, result.output
        return result.output

    return show_network


def test_show_network_names_slow_nodes_and_differing_node_groups(show_network):
    said = show_network("e")
    assert "Node n6 is slow: 3." in said
    assert "the measured times give other groups" in said
    assert said.splitlines()[0] == "# p"


def test_levels_can_be_taken_over(show_network):
    assert show_network("e", "--levels").splitlines()[1:] == [
        "levels:",
        "  rack: [[0-2], [3-5], [6-7]]",
    ]


def test_a_row_a_node_for_programs(show_network):
    rows = json.loads(show_network("e", "--format", "json"))
    assert [row["node"] for row in rows] == NAMES
    assert [row["node"] for row in rows if row["slow"]] == ["n6"]


def test_show_network_without_pair_times_names_the_probes_needed(show_network):
    assert "wanted a run with `probes: auto` on four nodes" in show_network(
        "e", "--platform", "other", code=2
    )


def test_show_network_accepts_a_platform_name_platform_file_or_experiment(show_network, tmp_path):
    platforms = tmp_path / "params" / "platforms"
    platforms.mkdir(parents=True)
    for name in "pq":
        shutil.copy(ROOT / "params/platforms/local.yaml", platforms / f"{name}.yaml")
    assert show_network("p") == show_network("params/platforms/p.yaml") == show_network("e")
    assert "on platform 'q' in results, wanted a run" in show_network("q", code=2)
    assert "nothing has been run yet" in show_network("r", code=2)
