"""What a plan rests on beside its experiment is kept with the results: a folder that is copied elsewhere gives the same
prices and reports where the project's file has changed or is gone, and says so where it cannot."""

import hashlib
import json
import shutil
from contextlib import chdir

import openpyxl
import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.files import cache
from commodel.measure.provenance import provenance
from commodel.models.parameter_sets import published
from commodel.patterns.trees.topologies import tree
from commodel.plan.planning import load_plan
from commodel.price.papers import paper, paper_names
from tests.results.received import FOLDER, NAMED, OTHERS, copy_of, make_received

PLAN = f"{FOLDER}/plan.json"


@pytest.fixture(scope="module")
def original(tmp_path_factory, mpi_programs):
    return make_received(tmp_path_factory.mktemp("original"))


@pytest.fixture
def here(original, tmp_path):
    tree.cache_clear()  # as a new run would
    return original.copy(tmp_path / "root")


def prices(here):
    done = here.invoke("predict")
    assert done.exit_code == 0, done.output
    return (here.results / "predictions/hockney.csv").read_text()


def change(here, name, text):
    (here.root / name).unlink()
    if text is not None:
        (here.root / name).write_text(text)


def test_copies_and_digests_lie_in_the_results(here):
    files = load_plan(here.results / "plan.json").files
    assert {name: file.kind for name, file in files.items()} == {
        "halo.csv": "pattern",
        "ranks.txt": "layout",
        "tree.csv": "tree",
    }
    for name, text in NAMED.items():
        assert (here.results / copy_of(name)).read_text() == text
        assert files[name].digest == hashlib.sha256(text.encode()).hexdigest()
    plan = load_plan(here.results / "plan.json")
    (batch,) = [batch for batch in plan.batches if batch.points]
    with chdir(here.root):
        assert provenance(plan, batch)["files"] == {name: file.digest for name, file in files.items()}


@pytest.mark.parametrize("others", [OTHERS, dict.fromkeys(OTHERS)], ids=["changed", "gone"])
def test_an_old_folder_gives_the_same_prices_and_report(here, others):
    before, reports = prices(here), here.files()
    for name, text in others.items():
        change(here, name, text)
    assert prices(here) == before
    for verb in ("compare", "report", "verify", "measure"):
        done = here.invoke(verb)
        assert done.exit_code == 0, done.output
    assert here.files() == reports


def test_a_folder_is_read_far_from_its_project(here, tmp_path):
    before = prices(here)
    shutil.copytree(here.results, tmp_path / "mail" / "e")
    with chdir(tmp_path / "mail"):
        sets = ["--params", "e/fitted/two-cores/hockney.yaml"]
        for words in (
            ["predict", *sets, "--plan", "e/plan.json", "--out", "p.csv"],
            ["report", "--in", "e", "--out", "r"],
            ["price", "e/inputs/experiments/e.yaml", *sets, "--out", "all.csv"],
        ):
            done = CliRunner().invoke(main, words)
            assert done.exit_code == 0, done.output
        assert (tmp_path / "mail/p.csv").read_text() == before
        by_matrix = {line.split(",")[0]: line for line in (tmp_path / "mail/all.csv").read_text().splitlines()[1:]}
        assert by_matrix["file:halo.csv"].split(",")[5] == "65536"


def test_it_is_played_again_in_another_project(here, original, tmp_path):
    """The experiment that lies in the results takes its files from there; they are kept with the new results, too."""
    root = tmp_path / "other"
    shutil.copytree(here.results, root / "mail" / "e")
    shutil.copytree(here.root / "params" / "platforms", root / "params" / "platforms")
    with chdir(root):
        done = CliRunner().invoke(main, ["plan", "mail/e/inputs/experiments/e.yaml", "--write"])
        assert done.exit_code == 0, done.output
        assert load_plan(root / PLAN).files == load_plan(original.results / "plan.json").files
        assert [batch.ids for batch in load_plan(root / PLAN).batches] == [
            batch.ids for batch in load_plan(original.results / "plan.json").batches
        ]
        for name, text in NAMED.items():
            assert (root / FOLDER / copy_of(name)).read_text() == text


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("verb", ["predict", "compare", "report", "verify", "measure"])
def test_a_copy_that_is_not_the_plan_s_is_refused(verb, name, here):
    copy = here.results / copy_of(name)
    copy.write_text(copy.read_text().replace("0", "1", 1))
    done = here.invoke(verb)
    assert (done.exit_code, done.output.count("\n")) == ((1, done.output.count("\n")) if verb == "verify" else (2, 1))
    assert copy.name in done.output
    assert ("differs" if verb == "verify" else "something else than the plan's copy") in done.output


@pytest.mark.parametrize("name", ["../../../../precious", "/etc/passwd", "a/b", "..", ".x", "x" * 200, 3])
def test_a_plan_names_no_copy_elsewhere(name, here):
    plan = json.loads((here.root / PLAN).read_text())
    plan["files"]["halo.csv"]["copy"] = name
    (here.root / PLAN).write_text(json.dumps(plan))
    done = here.invoke("predict")
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert "files.halo.csv.copy: found" in done.output


def test_without_a_copy_the_project_s_file_is_read_if_it_is_still_the_same(here):
    before = prices(here)
    (here.results / copy_of("halo.csv")).unlink()
    assert prices(here) == before
    change(here, "halo.csv", OTHERS["halo.csv"])
    done = here.invoke("predict")
    assert done.output == (
        "commodel: halo.csv: is not what it was when it was planned, and results/e holds no copy of it; plan again\n"
    )
    change(here, "halo.csv", None)
    done = here.invoke("predict")
    assert done.output == (
        "commodel: halo.csv: cannot be read: No such file or directory, and results/e holds no copy of it\n"
    )


def test_planning_again_keeps_what_there_is_now(here):
    change(here, "halo.csv", OTHERS["halo.csv"])
    assert here.invoke("plan").exit_code == 0
    assert not (here.results / copy_of("halo.csv")).exists()
    (copy,) = (here.results / "inputs/files").glob("*-halo.csv")
    assert copy.read_text() == OTHERS["halo.csv"]


def test_a_plan_of_an_older_commodel_has_no_files(here):
    before = prices(here)
    plan = json.loads((here.root / PLAN).read_text())
    del plan["files"]
    (here.root / PLAN).write_text(json.dumps(plan))
    shutil.rmtree(here.results / "inputs/files")
    assert prices(here) == before


def test_reports_say_what_they_rest_on(here):
    book = openpyxl.load_workbook(here.root / "reports/e/e.xlsx", read_only=True)
    rows = {sheet: list(book[sheet].iter_rows(values_only=True)) for sheet in ("Provenance", "Inputs")}
    named = {row[0]: row for row in rows["Provenance"] if row[0] in NAMED}
    for name, text in NAMED.items():
        digest = hashlib.sha256(text.encode()).hexdigest()
        assert named[name][2:5] == (len(text), digest, copy_of(name).rpartition("/")[2])
    shown = [row[0] for row in rows["Inputs"]]
    assert [line for line in shown if line in NAMED["halo.csv"].splitlines()] == NAMED["halo.csv"].splitlines()
    assert "node,parent" not in shown  # trees and rank files may name machines
    page = (here.root / "reports/e/index.html").read_text()
    assert hashlib.sha256(NAMED["tree.csv"].encode()).hexdigest() in page


def test_of_too_large_a_file_the_digest_is_kept_and_that_is_said(here, monkeypatch):
    monkeypatch.setattr(cache, "LARGEST_KEPT", 20)
    monkeypatch.setattr("commodel.plan.view.LARGEST_KEPT", 20)
    done = here.invoke("plan")
    lines = [line for line in done.output.splitlines() if "no copy" in line]
    assert lines[0] == (
        f"halo.csv: {len(NAMED['halo.csv'])} B, of which the results keep the digest and no copy (limit 20 B): "
        "keep the file to price or play it again"
    )
    assert not (here.results / copy_of("halo.csv")).exists()
    prices(here)
    change(here, "halo.csv", OTHERS["halo.csv"])
    assert "is not what it was when it was planned" in here.invoke("predict").output


@pytest.mark.parametrize("name", paper_names())
def test_a_paper_s_sets_are_there(name):
    for called in paper(name).published:
        assert published(called).source
