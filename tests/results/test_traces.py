"""Digests of a results folder beside those of sha256sum; what is told of the attempts at a batch."""

import json
import subprocess

import pytest

from commodel.records import Batch, Point
from commodel.results.provenance import attempts, digests, texts
from tests.planning import planned

BATCH = Batch("p-1n-0", "p", 1, points=(Point("p", "bcast", "linear", "", "block:1", 2, 8),))
PLAN = planned(BATCH, families=("loggp",))


def sha256sum(folder, *names):
    run = subprocess.run(["sha256sum", *names], cwd=folder, capture_output=True, text=True, check=True)
    return run.stdout


@pytest.fixture
def folder(tmp_path):
    files = {
        "plan.json": "{}",
        "comparison.csv": "a\n1\n",
        "unmeasured.csv": "id\n",
        "fitted/p/loggp.yaml": "family: loggp\n",
        "inputs/experiments/e.yaml": "title: é\n",
        "raw/p-1n-0/0a.csv": "id\n0a\n",
        "raw/p-1n-0/0b.unmeasured.json": "{}",
        "raw/p-1n-0/0c.late.csv": "id\n0c\n",
        "raw/p-1n-0/provenance.json": "{}",
        "raw/p-1n-0/state.json": '{"attempts": []}',
        "raw/p-1n-0/.0c.csv.7.tmp": "half",
        "raw/p-1n-0/done": "",
        "raw/other-1n-0/0a.csv": "of another plan",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_digests_are_those_of_sha256sum(folder):
    sums = digests(PLAN, folder)
    single = [name for name in sums if not name.startswith("raw/")]
    assert set(single) == {
        *("plan.json", "comparison.csv", "unmeasured.csv", "fitted/p/loggp.yaml", "inputs/experiments/e.yaml")
    }
    assert "".join(f"{sums[name]}  {name}\n" for name in single) == sha256sum(folder, *single)
    listed = sha256sum(folder / "raw/p-1n-0", "0a.csv", "0b.unmeasured.json", "0c.late.csv", "provenance.json")
    (folder / "listed").write_text(listed)
    assert sums["raw/p-1n-0"] == sha256sum(folder, "listed").split()[0]
    assert "raw/other-1n-0" not in sums


def test_a_batch_looked_at_again_is_the_same_batch(folder):
    before = digests(PLAN, folder)
    (folder / "raw/p-1n-0/state.json").write_text('{"attempts": [{}]}')
    assert digests(PLAN, folder) == before
    (folder / "raw/p-1n-0/0a.csv").write_text("id\n0a\n0a\n")
    assert {name for name in before if digests(PLAN, folder)[name] != before[name]} == {"raw/p-1n-0"}


def test_how_attempts_ended(folder):
    listed = [
        {"host": "n1", "job": "7", "started": 1.0, "ended": None, "outcome": ""},
        {"host": "n2", "job": "8", "started": 2.0, "ended": 3.0, "outcome": "error: no srun"},
        {"host": "n2", "job": "9", "started": 4.0, "ended": None, "outcome": ""},
    ]
    listed = [entry | {"pid": 7, "updated": 5.0} for entry in listed]
    (folder / "raw/p-1n-0/state.json").write_text(json.dumps({"attempts": listed}))
    rows = list(attempts(BATCH, folder / "raw"))
    assert [entry["outcome"] for entry in rows] == ["died without a word", "error: no srun", "no end noted"]
    assert [entry["attempt"] for entry in rows] == [1, 2, 3]
    assert {entry["batch"] for entry in rows} == {"p-1n-0"}


def test_results_of_an_older_commodel_have_no_attempts_or_texts(tmp_path):
    assert list(attempts(BATCH, tmp_path)) == []
    assert texts(tmp_path) == {}
    assert digests(PLAN, tmp_path) == {}
