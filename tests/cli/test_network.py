"""commodel network, on results that a campaign could have left."""

import json

import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.files.results_folder import Results
from commodel.files.tables import write_table
from commodel.hierarchy import Hierarchy
from commodel.models.probes import Site, probe
from commodel.records import Batch
from tests.compare.pairs import summary
from tests.planning import planned

LEAVES = Hierarchy.of({"leaf": [0, 0, 0, 1, 1, 1, 1, 1]})
NAMES = [f"n{node}" for node in range(8)]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = Results.of(tmp_path / "results" / "e")
    batch = Batch("b", "p", 8, cases=tuple(probe("nodepairs").cases("p", Site(8, 1), [8])))
    note = tmp_path / "results" / "e" / "raw" / "b" / "provenance.json"
    note.parent.mkdir(parents=True)
    note.write_text(json.dumps({"platform": "p", "nodes": NAMES, "levels": {"rack": [0, 0, 0, 1, 1, 1, 2, 2]}}))
    (tmp_path / "results" / "e" / "plan.json").write_text(json.dumps(planned(batch).as_json()))
    write_table(results.table("summary"), summary(LEAVES, 8, {6: 3.0}))

    def run(*arguments, code=0):
        result = CliRunner().invoke(main, ["network", *arguments])
        assert result.exit_code == code, result.output
        return result.output

    return run


def test_it_names_classes_and_slow_nodes(run):
    said = run("e")
    assert "Node n6 is slower than its like: 3." in said
    assert "by the times groups are others" in said
    assert said.splitlines()[0] == "# p"


def test_levels_can_be_taken_over(run):
    assert run("e", "--levels").splitlines()[1:] == ["levels:", "  rack: [[0-2], [3-5], [6-7]]"]


def test_a_row_a_node_for_programs(run):
    rows = json.loads(run("e", "--format", "json"))
    assert [row["node"] for row in rows] == NAMES
    assert [row["node"] for row in rows if row["slow"]] == ["n6"]


def test_results_without_pairs_say_which_probe_is_lacking(run):
    assert "probes: [auto, nodepairs]" in run("e", "--platform", "other", code=2)
