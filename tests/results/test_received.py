"""A results folder that came by mail or lies on a shared disk: whatever stands below it in the place of a file or a
folder, no verb follows it, waits for it, or lets anything outside be changed or read into what it writes.

What a plan rests on beside its experiment is kept with the results: a folder that is copied elsewhere gives the same
predictions and reports where the project's file has changed or is gone, and says so where it cannot.

A copy of a file that a plan names: packed where it is large, what the plan says it is, and read in its place.
"""

import gzip
import hashlib
import json
import os
import shutil
import signal
from contextlib import chdir, contextmanager

import numpy as np
import openpyxl
import pytest
from click.testing import CliRunner

from commodel.api.snakemake_runs import run_snakemake
from commodel.cli import main
from commodel.errors import UserError
from commodel.files import cache
from commodel.files.cache import archive_input, find_input, record_input, use_archived_inputs
from commodel.files.results_folder import Results
from commodel.files.safe_paths import SafePath
from commodel.files.safe_reading import MIB, open_unpacked
from commodel.measure.provenance import collect_provenance
from commodel.models.parameter_sets import read_published
from commodel.patterns.layouts import place_ranks
from commodel.patterns.pattern_files import read_pattern
from commodel.patterns.trees.topologies import make_tree
from commodel.plan.planning import load_plan
from commodel.predictions.papers import find_paper, list_papers
from commodel.results.campaign import open_lock, read_lock_holder
from tests.results.received import FOLDER, NAMED, OTHERS, copy_of

RAW = "raw/BATCH"
SENT = (  # what a report reads
    *("plan.json", "inputs", "inputs/platforms", "inputs/experiments/e.yaml", "inputs/platforms/two-cores.yaml"),
    *("observations.csv", "summary.csv", "distributions.csv", "unmeasured.csv", "comparison.csv", "fitted"),
    *("fitted/two-cores/hockney.yaml", "predictions/hockney.csv", "raw", RAW, f"{RAW}/CASE.csv"),
    *(f"{RAW}/provenance.json", f"{RAW}/player-2r-block2.json"),
    *("inputs/files", copy_of("halo.csv")),
)
COPIES = ("inputs/files", copy_of("halo.csv"), copy_of("ranks.txt"), copy_of("tree.csv"))
EVERYTHING = (*SENT, ".holder", "run.log", "logs/fit.log", "batches/BATCH.txt", f"{RAW}/done", f"{RAW}/.pass-1")
TOUCHED = {
    "plan": EVERYTHING,
    "run": EVERYTHING,
    "measure": (
        *(*COPIES, "plan.json", "raw", RAW, f"{RAW}/.holder", f"{RAW}/state.json", f"{RAW}/.work", f"{RAW}/.pass-1"),
        *(f"{RAW}/.pass-1/CASE.csv", f"{RAW}/.pass-1/.now", f"{RAW}/provenance.json"),
    ),
    "collect": ("plan.json", "raw", RAW, f"{RAW}/CASE.csv", "observations.csv", "summary.csv", "unmeasured.csv"),
    "fit": ("plan.json", "observations.csv", "fitted", "fitted/two-cores", "fitted/two-cores/hockney.yaml"),
    "predict": (
        *COPIES,
        "plan.json",
        "fitted/two-cores/hockney.yaml",
        "fitted",
        "predictions",
        "predictions/hockney.csv",
    ),
    "compare": (
        *COPIES,
        "plan.json",
        "observations.csv",
        "predictions/hockney.csv",
        "unmeasured.csv",
        "comparison.csv",
    ),
    "report": SENT,
    "verify": SENT,
    "status": ("plan.json", "raw", RAW, f"{RAW}/state.json", ".holder"),
    "advise": ("fitted", "fitted/two-cores", "fitted/two-cores/hockney.yaml", "comparison.csv"),
}
REPLACED = {  # what is written there takes the place of a link: it was not read
    "measure": (f"{RAW}/state.json",),
    "collect": ("observations.csv", "summary.csv", "unmeasured.csv"),
    "fit": ("fitted/two-cores/hockney.yaml",),
    "predict": ("predictions/hockney.csv",),
    "compare": ("comparison.csv",),
}
UNHARMED = {"status": (f"{RAW}/state.json",), "measure": (f"{RAW}/provenance.json",)}  # by a pipe, which is not read


@contextmanager
def no_longer_than(seconds):
    """A net, for what waits for ever."""

    def over(*_):
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outside(folder):
    return {str(path): (path.lstat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in folder.rglob("*")}


def changed(content: bytes) -> bytes:
    """Content of the same form that says something else."""
    return content.translate(bytes.maketrans(b"123", b"312"))


def links(place, away):
    """In its place a link to a copy that says something else."""
    if place.is_dir():
        shutil.copytree(place, away / "there")
        shutil.rmtree(place)
    else:
        (away / "there").write_bytes(changed(place.read_bytes()) if place.exists() else b"something\n")
        place.unlink(missing_ok=True)
    for path in (away / "there").rglob("*.*"):
        if path.is_file():
            path.write_bytes(changed(path.read_bytes()))
    place.symlink_to(away / "there")


def link_to_device(place, away):
    shutil.rmtree(place, ignore_errors=True)
    place.unlink(missing_ok=True)
    place.symlink_to("/dev/zero")


def link_to_folder(place, away):
    """A link to a folder of somebody's, with files named as ours are."""
    (away / "there").mkdir()
    for name in ("0123456789ab.csv", "precious.csv", "x.yaml", "done"):
        (away / "there" / name).write_text("precious")
    shutil.rmtree(place, ignore_errors=True)
    place.unlink(missing_ok=True)
    place.symlink_to(away / "there")


def pipes(place, away):
    shutil.rmtree(place, ignore_errors=True)
    place.unlink(missing_ok=True)
    os.mkfifo(place)


PLANTED = [(verb, plant) for plant in (links, pipes) for verb in TOUCHED]
# What stands behind a link makes no difference where none is followed: verbs that write much show it.
PLANTED += [(verb, plant) for plant in (link_to_device, link_to_folder) for verb in ("plan", "measure", "fit")]


@pytest.mark.parametrize(("verb", "plant"), PLANTED, ids=lambda part: getattr(part, "__name__", part))
def test_nothing_below_a_results_folder_is_followed(verb, plant, original, tmp_path):
    for number, name in enumerate(TOUCHED[verb]):
        root, away = tmp_path / str(number) / "root", tmp_path / str(number) / "away"
        here = original.copy(root)
        away.mkdir()
        case = min(path.stem for path in (here.results / "raw" / here.batch).glob("????????????.csv"))
        name = name.replace("BATCH", here.batch).replace("CASE", case)
        place = here.results / name
        place.parent.mkdir(exist_ok=True)
        before = here.files()
        plant(place, away)
        untouched = outside(away)
        with no_longer_than(300):
            done = here.invoke(verb)
        what = f"{verb}, {name}: {done.output[-400:]} {done.exception!r}"
        assert outside(away) == untouched, what
        assert isinstance(done.exception, SystemExit | None), what
        may_end_well = name.replace(here.batch, "BATCH") in REPLACED.get(verb, ())
        may_end_well |= plant is pipes and name.replace(here.batch, "BATCH") in UNHARMED.get(verb, ())
        may_end_well |= verb == "status" and name.endswith("state.json")  # damaged, which stops nobody
        if done.exit_code == 0 and may_end_well:
            after = here.files()
            assert {key: after.get(key) for key in before if key in after} == {
                k: before[k] for k in before if k in after
            }, what
        else:
            assert done.exit_code == 2, what
            assert done.output.startswith("commodel: "), what
            assert done.output.count("\n") == 1, what
            assert place.name in done.output or name.split("/")[0] in done.output, what


def test_the_folder_itself_may_be_a_link(original, tmp_path):
    """Results on a scratch disk."""
    root = tmp_path / "root"
    here = original.copy(root)
    (root / "results").rename(tmp_path / "scratch")
    (root / "results").symlink_to(tmp_path / "scratch")
    before = here.files()
    for verb in ("measure", "collect", "fit", "predict", "compare", "status"):
        done = here.invoke(verb)
        assert done.exit_code == 0, done.output
    assert here.files() == before


def test_a_project_may_be_copied_with_its_results(original, tmp_path):
    """No path of where it was made stands in it, so that nothing is planned or measured anew."""
    here = original.copy(tmp_path / "root")
    before = here.files()
    assert not [name for name, content in before.items() if str(original.root).encode() in content]
    for verb in ("plan", "measure", "collect", "fit", "predict", "compare", "status"):
        done = here.invoke(verb)
        assert done.exit_code == 0, done.output
    assert here.files() == before


def test_inputs_that_are_no_names_of_ours_are_left_alone(original, tmp_path):
    """Planning removes a platform that the experiment no longer has, and nothing else."""
    here = original.copy(tmp_path / "root")
    for name in ("inputs/platforms/gone.yaml", "inputs/platforms/notes.txt", "inputs/.hidden", "inputs/mine/x.yaml"):
        (here.results / name).parent.mkdir(exist_ok=True)
        (here.results / name).write_text("launcher: local\n")
    assert here.invoke("plan").exit_code == 0
    left = {str(path.relative_to(here.results / "inputs")) for path in (here.results / "inputs").rglob("*.*")}
    ours = {copy_of(name).removeprefix("inputs/") for name in ("halo.csv", "ranks.txt", "tree.csv")}
    ours |= {"platforms/two-cores.yaml", "experiments/e.yaml"}
    assert left == ours | {"platforms/notes.txt", ".hidden", "mine/x.yaml"}


@pytest.mark.parametrize("plant", ["link", "pipe", "other name"])
def test_logs_and_locks_are_files_of_their_own(plant, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "e").mkdir()
    folder = SafePath(tmp_path / "e")
    for name in (".holder", "run.log", "run.stop"):
        place = tmp_path / "e" / name
        if plant == "pipe":
            os.mkfifo(place)
        elif plant == "link":
            place.symlink_to(precious)
        else:
            place.hardlink_to(precious)
    with pytest.raises(UserError, match=r"\.holder: found a |\.holder: cannot be read: found a pipe"):
        open_lock(folder, "it")
    if plant != "other name":
        with pytest.raises(UserError):
            read_lock_holder(folder)
        with pytest.raises(UserError, match=r"run\.log: "):
            run_snakemake(["true"], Results(folder).log("run"), lambda line: None, lambda: None)
    else:
        assert run_snakemake(["echo", "x"], Results(folder).log("run"), lambda line: None, lambda: None) == (0, 0)
        assert (tmp_path / "e" / "run.log").read_text() == "x\n"
    assert precious.read_text() == "precious"


def test_a_file_that_is_large_on_no_disk_is_refused(original, tmp_path):
    """Files with holes fit into a small archive."""
    here = original.copy(tmp_path / "root")
    for name, verb in (
        ("plan.json", "status"),
        ("observations.csv", "compare"),
        ("inputs/experiments/e.yaml", "report"),
    ):
        os.truncate(here.results / name, 1 << 40)
        done = here.invoke(verb)
        assert (done.exit_code, done.output.count("\n")) == (2, 1)
        assert f"{name}: found more than" in done.output
        shutil.copy(original.results / name, here.results / name)


PLAN = f"{FOLDER}/plan.json"


@pytest.fixture
def here(original, tmp_path):
    make_tree.cache_clear()  # as a new run would
    return original.copy(tmp_path / "root")


def predictions(here):
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
        assert collect_provenance(plan, batch)["files"] == {name: file.digest for name, file in files.items()}


@pytest.mark.parametrize("others", [OTHERS, dict.fromkeys(OTHERS)], ids=["changed", "gone"])
def test_an_old_folder_gives_the_same_predictions_and_report(here, others):
    before, reports = predictions(here), here.files()
    for name, text in others.items():
        change(here, name, text)
    assert predictions(here) == before
    for verb in ("compare", "report", "verify", "measure"):
        done = here.invoke(verb)
        assert done.exit_code == 0, done.output
    assert here.files() == reports


def test_a_folder_is_read_far_from_its_project(here, tmp_path):
    before = predictions(here)
    shutil.copytree(here.results, tmp_path / "mail" / "e")
    with chdir(tmp_path / "mail"):
        sets = ["--params", "e/fitted/two-cores/hockney.yaml"]
        for words in (
            ["predict", *sets, "--plan", "e/plan.json", "--out", "p.csv"],
            ["report", "--in", "e", "--out", "r"],
            ["predict", "--matrix", "e/inputs/experiments/e.yaml", *sets, "--out", "all.csv"],
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
    assert ("differs" if verb == "verify" else "differs from the plan's copy") in done.output


@pytest.mark.parametrize("name", ["../../../../precious", "/etc/passwd", "a/b", "..", ".x", "x" * 200, 3])
def test_a_plan_names_no_copy_elsewhere(name, here):
    plan = json.loads((here.root / PLAN).read_text())
    plan["files"]["halo.csv"]["copy"] = name
    (here.root / PLAN).write_text(json.dumps(plan))
    done = here.invoke("predict")
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert "files.halo.csv.copy: found" in done.output


def test_without_a_copy_the_project_s_file_is_read_if_it_is_still_the_same(here):
    before = predictions(here)
    (here.results / copy_of("halo.csv")).unlink()
    assert predictions(here) == before
    change(here, "halo.csv", OTHERS["halo.csv"])
    done = here.invoke("predict")
    assert done.output == (
        "commodel: halo.csv: has changed since it was planned, and results/e has no copy of it; plan again\n"
    )
    change(here, "halo.csv", None)
    done = here.invoke("predict")
    assert done.output == (
        "commodel: halo.csv: cannot be read: No such file or directory, and results/e has no copy of it\n"
    )


def test_planning_again_keeps_what_there_is_now(here):
    change(here, "halo.csv", OTHERS["halo.csv"])
    assert here.invoke("plan").exit_code == 0
    assert not (here.results / copy_of("halo.csv")).exists()
    (copy,) = (here.results / "inputs/files").glob("*-halo.csv")
    assert copy.read_text() == OTHERS["halo.csv"]


def test_a_plan_of_an_older_commodel_has_no_files(here):
    before = predictions(here)
    plan = json.loads((here.root / PLAN).read_text())
    del plan["files"]
    (here.root / PLAN).write_text(json.dumps(plan))
    shutil.rmtree(here.results / "inputs/files")
    assert predictions(here) == before


def test_reports_state_what_they_rest_on(here):
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


def test_of_too_large_a_file_the_digest_is_kept_and_that_is_stated(here, monkeypatch):
    monkeypatch.setattr(cache, "MAX_COPY_BYTES", 20)
    monkeypatch.setattr("commodel.plan.plan_tables.MAX_COPY_BYTES", 20)
    done = here.invoke("plan")
    lines = [line for line in done.output.splitlines() if "no copy" in line]
    assert lines[0].partition(". ")[2] == (
        f"halo.csv: {len(NAMED['halo.csv'])} B, of which the results keep the digest and no copy (limit 20 B): "
        "keep the file to predict or play it again."
    )
    assert not (here.results / copy_of("halo.csv")).exists()
    predictions(here)
    change(here, "halo.csv", OTHERS["halo.csv"])
    assert "has changed since it was planned" in here.invoke("predict").output


@pytest.mark.parametrize("name", list_papers())
def test_a_paper_s_sets_are_there(name):
    for called in find_paper(name).published:
        assert read_published(called).source


def random_table(rows):
    sizes = np.random.default_rng(3).integers(0, 1 << 20, rows)
    return "step,kind,rank,peer,bytes\n" + "".join(f"{step},send,0,1,{size}\n" for step, size in enumerate(sizes))


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Results.of(tmp_path / "results")


def test_a_large_file_is_packed(results, tmp_path):
    (tmp_path / "long.csv").write_text(random_table(80_000))
    wanted, file = read_pattern("file:long.csv").encode(), record_input("pattern", "long.csv")
    assert file.bytes > MIB
    assert file.copy.endswith("-long.csv.gz")
    archive_input("long.csv", file, results)
    copy = tmp_path / "results/inputs/files" / file.copy
    assert copy.stat().st_size < 0.6 * file.bytes
    assert gzip.decompress(copy.read_bytes()) == (tmp_path / "long.csv").read_bytes()
    first = copy.stat().st_ino
    archive_input("long.csv", file, results)
    assert copy.stat().st_ino == first  # it is left alone
    (tmp_path / "long.csv").unlink()
    with use_archived_inputs(results, {"long.csv": file}):
        assert read_pattern("file:long.csv").encode() == wanted


def test_a_packed_file_is_a_pattern_and_kept_as_it_is(results, tmp_path):
    text = random_table(80_000).encode()
    (tmp_path / "long.csv.gz").write_bytes(gzip.compress(text) + b"")
    (tmp_path / "long.csv").write_bytes(text)
    wanted, file = read_pattern("file:long.csv").encode(), record_input("pattern", "long.csv.gz")
    archive_input("long.csv.gz", file, results)
    (tmp_path / "long.csv.gz").unlink()
    with use_archived_inputs(results, {"long.csv.gz": file}):
        assert read_pattern("file:long.csv.gz").encode() == wanted


def test_a_bomb_is_no_copy(results, tmp_path):
    """No more of it is unpacked than the plan's file is long."""
    (tmp_path / "a.csv").write_text(NAMED["halo.csv"])
    file = record_input("pattern", "a.csv")
    place = tmp_path / "results/inputs/files" / file.copy
    place.parent.mkdir(parents=True)
    with gzip.open(place, "wb", compresslevel=1) as stream:
        for _ in range(256):
            stream.write(bytes(MIB))
    with pytest.raises(UserError, match="differs from the plan"), use_archived_inputs(results, {"a.csv": file}):
        pass


@pytest.mark.parametrize(
    "damage", [lambda b: b[: len(b) // 2], lambda b: b[:60] + b"\xff" * 40 + b[100:], lambda b: b[:2]]
)
def test_what_cannot_be_unpacked_is_stated(damage, tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(damage(gzip.compress(random_table(100).encode())))
    with pytest.raises(UserError, match=r"a\.csv\.gz: cannot be unpacked") as error:
        read_pattern(f"file:{path}")
    assert error.value.format_message().count("\n") == 0


def test_a_file_that_changes_while_it_is_planned(results, tmp_path):
    (tmp_path / "a.csv").write_text(NAMED["halo.csv"])
    file = record_input("pattern", "a.csv")
    (tmp_path / "a.csv").write_text(OTHERS["halo.csv"])
    with pytest.raises(UserError, match="has changed while it was planned"):
        archive_input("a.csv", file, results)
    assert list((tmp_path / "results/inputs/files").iterdir()) == []


def test_names_of_copies_are_names(results, tmp_path):
    for name in ("ä ö/…b.csv", "-rf", ".hidden", f"{'x' * 200}.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(NAMED["halo.csv"])
        file = record_input("pattern", name)
        archive_input(name, file, results)
        assert [path.name for path in results.inputs()] == [file.copy]
        results.copy(file.copy).unlink()


def test_outside_of_results_the_project_s_files_are_read(results, tmp_path):
    (tmp_path / "ranks.txt").write_text("0\n0\n1\n")
    file = record_input("layout", "ranks.txt")
    archive_input("ranks.txt", file, results)
    os.utime(tmp_path / "ranks.txt", (1, 1))
    (tmp_path / "ranks.txt").write_text("0\n1\n2\n")
    with use_archived_inputs(results, {"ranks.txt": file}):
        assert place_ranks("file:ranks.txt", 3).tolist() == [0, 0, 1]
        assert place_ranks("file:ranks.txt@5,7", 3).tolist() == [5, 5, 7]
    assert place_ranks("file:ranks.txt", 3).tolist() == [0, 1, 2]
    assert find_input("ranks.txt") == find_input("ranks.txt").relative_to(".")


def test_unpacked_takes_an_empty_file(tmp_path):
    (tmp_path / "empty").touch()
    with open_unpacked(tmp_path / "empty") as stream:
        assert stream.read() == b""
