"""Results folders from unknown sources: no verb follows a link, waits for a pipe, or reads or
changes a file outside.

The files that an experiment names are copied into its results. A folder that is copied elsewhere
gives the same predictions and reports, even if the project's files have changed or are missing.

Copies of these files: large ones are compressed, each has the digest of the plan, and is read in
place of the file."""

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
from commodel.plan.planning import load_plan
from commodel.predictions.papers import find_paper, list_papers
from commodel.results.campaign import open_lock, read_lock_holder
from tests.results.received import FOLDER, NAMED, OTHERS, copy_of

RAW = "raw/BATCH"
REPORT_INPUTS = (  # files that a report reads
    *(
        "plan.json",
        "inputs",
        "inputs/platforms",
        "inputs/experiments/e.yaml",
        "inputs/platforms/two-cores.yaml",
    ),
    *(
        "observations.csv",
        "summary.csv",
        "distributions.csv",
        "unmeasured.csv",
        "comparison.csv",
        "fitted",
    ),
    *("fitted/two-cores/hockney.yaml", "predictions/hockney.csv", "raw", RAW, f"{RAW}/CASE.csv"),
    *(f"{RAW}/provenance.json", f"{RAW}/player-2r-block2.json"),
    *("inputs/files", copy_of("halo.csv")),
)
COPIES = ("inputs/files", copy_of("halo.csv"), copy_of("ranks.txt"), copy_of("tree.csv"))
ALL_FILES = (
    *REPORT_INPUTS,
    ".holder",
    "run.log",
    "logs/fit.log",
    "batches/BATCH.txt",
    f"{RAW}/done",
    f"{RAW}/.pass-1",
)
USED_FILES = {
    "plan": ALL_FILES,
    "run": ALL_FILES,
    "measure": (
        *(
            *COPIES,
            "plan.json",
            "raw",
            RAW,
            f"{RAW}/.holder",
            f"{RAW}/state.json",
            f"{RAW}/.work",
            f"{RAW}/.pass-1",
        ),
        *(f"{RAW}/.pass-1/CASE.csv", f"{RAW}/.pass-1/.now", f"{RAW}/provenance.json"),
    ),
    "collect": (
        "plan.json",
        "raw",
        RAW,
        f"{RAW}/CASE.csv",
        "observations.csv",
        "summary.csv",
        "unmeasured.csv",
    ),
    "fit": (
        "plan.json",
        "observations.csv",
        "fitted",
        "fitted/two-cores",
        "fitted/two-cores/hockney.yaml",
    ),
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
    "report": REPORT_INPUTS,
    "status": ("plan.json", "raw", RAW, f"{RAW}/state.json", ".holder"),
    "advise": ("fitted", "fitted/two-cores", "fitted/two-cores/hockney.yaml", "comparison.csv"),
}
REPLACED = {  # files that a verb replaces without reading them, so that a link is replaced
    "measure": (f"{RAW}/state.json",),
    "collect": ("observations.csv", "summary.csv", "unmeasured.csv"),
    "fit": ("fitted/two-cores/hockney.yaml",),
    "predict": ("predictions/hockney.csv",),
    "compare": ("comparison.csv",),
}
# pipes here stop no verb
IGNORED_PIPES = {"status": (f"{RAW}/state.json",), "measure": (f"{RAW}/provenance.json",)}


@contextmanager
def fail_after(seconds):
    """Fail if the body takes longer, such as for ever at a pipe."""

    def fail(*_):
        raise AssertionError(f"no end after {seconds} s")

    earlier_handler = signal.signal(signal.SIGALRM, fail)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, earlier_handler)


def list_contents(folder):
    return {
        str(path): (path.lstat().st_mtime_ns, path.is_file() and path.read_bytes())
        for path in folder.rglob("*")
    }


def change_digits(content: bytes) -> bytes:
    """Return content of the same form with other digits."""
    return content.translate(bytes.maketrans(b"123", b"312"))


def link_to_changed_copy(place, away):
    """Replace a file or folder by a link to a changed copy outside."""
    if place.is_dir():
        shutil.copytree(place, away / "target")
        shutil.rmtree(place)
    else:
        (away / "target").write_bytes(
            change_digits(place.read_bytes()) if place.exists() else b"something\n"
        )
        place.unlink(missing_ok=True)
    for path in (away / "target").rglob("*.*"):
        if path.is_file():
            path.write_bytes(change_digits(path.read_bytes()))
    place.symlink_to(away / "target")


def link_to_device(place, away):
    shutil.rmtree(place, ignore_errors=True)
    place.unlink(missing_ok=True)
    place.symlink_to("/dev/zero")


def link_to_folder(place, away):
    """Replace a file or folder by a link to a folder with files of the same names."""
    (away / "target").mkdir()
    for name in ("0123456789ab.csv", "precious.csv", "x.yaml", "done"):
        (away / "target" / name).write_text("precious")
    shutil.rmtree(place, ignore_errors=True)
    place.unlink(missing_ok=True)
    place.symlink_to(away / "target")


def make_pipe(place, away):
    shutil.rmtree(place, ignore_errors=True)
    place.unlink(missing_ok=True)
    os.mkfifo(place)


CASES = [
    (verb, replace_file)
    for replace_file in (link_to_changed_copy, make_pipe)
    for verb in USED_FILES
]
# The target of a link makes no difference if no link is followed: three verbs that write many files
# are enough.
CASES += [
    (verb, replace_file)
    for replace_file in (link_to_device, link_to_folder)
    for verb in ("plan", "measure", "fit")
]


@pytest.mark.parametrize(
    ("verb", "replace_file"), CASES, ids=lambda part: getattr(part, "__name__", part)
)
def test_no_link_below_a_results_folder_is_followed(verb, replace_file, original, tmp_path):
    for number, name in enumerate(USED_FILES[verb]):
        root, away = tmp_path / str(number) / "root", tmp_path / str(number) / "away"
        received = original.copy(root)
        away.mkdir()
        case = min(
            path.stem
            for path in (received.results / "raw" / received.batch).glob("????????????.csv")
        )
        name = name.replace("BATCH", received.batch).replace("CASE", case)
        place = received.results / name
        place.parent.mkdir(exist_ok=True)
        before = received.files()
        replace_file(place, away)
        untouched = list_contents(away)
        with fail_after(300):
            done = received.invoke(verb)
        message = f"{verb}, {name}: {done.output[-400:]} {done.exception!r}"
        assert list_contents(away) == untouched, message
        assert isinstance(done.exception, SystemExit | None), message
        may_succeed = name.replace(received.batch, "BATCH") in REPLACED.get(verb, ())
        may_succeed |= replace_file is make_pipe and name.replace(
            received.batch, "BATCH"
        ) in IGNORED_PIPES.get(verb, ())
        # a damaged state file does not stop `status`
        may_succeed |= verb == "status" and name.endswith("state.json")
        if done.exit_code == 0 and may_succeed:
            after = received.files()
            kept = before.keys() & after.keys()
            assert {name: after[name] for name in kept} == {name: before[name] for name in kept}, (
                message
            )
        else:
            assert done.exit_code == 2, message
            assert done.output.startswith("commodel: "), message
            assert done.output.count("\n") == 1, message
            assert place.name in done.output or name.split("/")[0] in done.output, message


def test_the_folder_itself_may_be_a_link(original, tmp_path):
    """The results may be on a scratch disk."""
    root = tmp_path / "root"
    received = original.copy(root)
    (root / "results").rename(tmp_path / "scratch")
    (root / "results").symlink_to(tmp_path / "scratch")
    before = received.files()
    for verb in ("measure", "collect", "fit", "predict", "compare", "status"):
        done = received.invoke(verb)
        assert done.exit_code == 0, done.output
    assert received.files() == before


def test_a_copied_project_measures_nothing_again(original, tmp_path):
    """The results contain no path of the original folder."""
    received = original.copy(tmp_path / "root")
    before = received.files()
    assert not [name for name, content in before.items() if str(original.root).encode() in content]
    for verb in ("plan", "measure", "collect", "fit", "predict", "compare", "status"):
        done = received.invoke(verb)
        assert done.exit_code == 0, done.output
    assert received.files() == before


def test_other_files_among_the_inputs_are_kept(original, tmp_path):
    """Planning removes a platform that the experiment no longer names, and no other file."""
    received = original.copy(tmp_path / "root")
    for name in (
        "inputs/platforms/gone.yaml",
        "inputs/platforms/notes.txt",
        "inputs/.hidden",
        "inputs/mine/x.yaml",
    ):
        (received.results / name).parent.mkdir(exist_ok=True)
        (received.results / name).write_text("launcher: local\n")
    assert received.invoke("plan").exit_code == 0
    remaining = {
        str(path.relative_to(received.results / "inputs"))
        for path in (received.results / "inputs").rglob("*.*")
    }
    own_files = {
        copy_of(name).removeprefix("inputs/") for name in ("halo.csv", "ranks.txt", "tree.csv")
    }
    own_files |= {"platforms/two-cores.yaml", "experiments/e.yaml"}
    assert remaining == own_files | {"platforms/notes.txt", ".hidden", "mine/x.yaml"}


@pytest.mark.parametrize("kind", ["link", "pipe", "hard link"])
def test_logs_and_locks_must_be_regular_files(kind, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "e").mkdir()
    folder = SafePath(tmp_path / "e")
    for name in (".holder", "run.log", "run.stop"):
        place = tmp_path / "e" / name
        if kind == "pipe":
            os.mkfifo(place)
        elif kind == "link":
            place.symlink_to(precious)
        else:
            place.hardlink_to(precious)
    with pytest.raises(
        UserError, match=r"\.holder: found a |\.holder: cannot be read: found a pipe"
    ):
        open_lock(folder, "it")
    if kind != "hard link":
        with pytest.raises(UserError):
            read_lock_holder(folder)
        with pytest.raises(UserError, match=r"run\.log: "):
            run_snakemake(["true"], Results(folder).log("run"), lambda line: None, lambda: None)
    else:
        assert run_snakemake(
            ["echo", "x"], Results(folder).log("run"), lambda line: None, lambda: None
        ) == (0, 0)
        assert (tmp_path / "e" / "run.log").read_text() == "x\n"
    assert precious.read_text() == "precious"


def test_a_sparse_file_is_refused(original, tmp_path):
    """A small archive may contain a huge sparse file."""
    received = original.copy(tmp_path / "root")
    for name, verb in (
        ("plan.json", "status"),
        ("observations.csv", "compare"),
        ("inputs/experiments/e.yaml", "report"),
    ):
        os.truncate(received.results / name, 1 << 40)
        done = received.invoke(verb)
        assert (done.exit_code, done.output.count("\n")) == (2, 1)
        assert f"{name}: found more than" in done.output
        shutil.copy(original.results / name, received.results / name)


PLAN = f"{FOLDER}/plan.json"


@pytest.fixture
def received(original, tmp_path):
    return original.copy(tmp_path / "root")


def predict(received):
    done = received.invoke("predict")
    assert done.exit_code == 0, done.output
    return (received.results / "predictions/hockney.csv").read_text()


def replace_named_file(received, name, text):
    (received.root / name).unlink()
    if text is not None:
        (received.root / name).write_text(text)


def test_results_contain_copies_and_digests(received):
    files = load_plan(received.results / "plan.json").files
    assert {name: file.kind for name, file in files.items()} == {
        "halo.csv": "pattern",
        "ranks.txt": "layout",
        "tree.csv": "tree",
    }
    for name, text in NAMED.items():
        assert (received.results / copy_of(name)).read_text() == text
        assert files[name].digest == hashlib.sha256(text.encode()).hexdigest()
    plan = load_plan(received.results / "plan.json")
    (batch,) = [batch for batch in plan.batches if batch.points]
    with chdir(received.root):
        assert collect_provenance(plan, batch)["files"] == {
            name: file.digest for name, file in files.items()
        }


@pytest.mark.parametrize(
    "replacements", [OTHERS, dict.fromkeys(OTHERS)], ids=["changed", "missing"]
)
def test_changed_or_missing_project_files_change_no_prediction_or_report(received, replacements):
    before, reports = predict(received), received.files()
    for name, text in replacements.items():
        replace_named_file(received, name, text)
    assert predict(received) == before
    for verb in ("compare", "report", "measure"):
        done = received.invoke(verb)
        assert done.exit_code == 0, done.output
    assert received.files() == reports


def test_predict_and_report_work_on_a_results_folder_outside_the_project(received, tmp_path):
    before = predict(received)
    shutil.copytree(received.results, tmp_path / "mail" / "e")
    with chdir(tmp_path / "mail"):
        sets = ["--params", "e/fitted/two-cores/hockney.yaml"]
        for arguments in (
            ["predict", "plan", "e/plan.json", *sets, "--out", "p.csv"],
            ["report", "--in", "e", "--out", "r"],
            ["predict", "matrix", "e/inputs/experiments/e.yaml", *sets, "--out", "all.csv"],
        ):
            done = CliRunner().invoke(main, arguments)
            assert done.exit_code == 0, done.output
        assert (tmp_path / "mail/p.csv").read_text() == before
        by_matrix = {
            line.split(",")[0]: line
            for line in (tmp_path / "mail/all.csv").read_text().splitlines()[1:]
        }
        assert by_matrix["file:halo.csv"].split(",")[5] == "65536"


def test_the_experiment_in_a_results_folder_can_be_planned_in_another_project(
    received, original, tmp_path
):
    """The experiment in the results takes its files from there; the new results have copies of
    them."""
    root = tmp_path / "other"
    shutil.copytree(received.results, root / "mail" / "e")
    shutil.copytree(received.root / "params" / "platforms", root / "params" / "platforms")
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
@pytest.mark.parametrize("verb", ["predict", "compare", "report", "measure"])
def test_a_copy_that_differs_from_the_plan_is_refused(verb, name, received):
    copy = received.results / copy_of(name)
    copy.write_text(copy.read_text().replace("0", "1", 1))
    done = received.invoke(verb)
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert copy.name in done.output
    assert "differs from the plan's copy" in done.output


@pytest.mark.parametrize(
    "name", ["../../../../precious", "/etc/passwd", "a/b", "..", ".x", "x" * 200, 3]
)
def test_a_plan_may_not_name_a_copy_outside_the_results(name, received):
    plan = json.loads((received.root / PLAN).read_text())
    plan["files"]["halo.csv"]["copy"] = name
    (received.root / PLAN).write_text(json.dumps(plan))
    done = received.invoke("predict")
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert "files.halo.csv.copy: found" in done.output


def test_without_a_copy_the_unchanged_project_file_is_read(received):
    before = predict(received)
    (received.results / copy_of("halo.csv")).unlink()
    assert predict(received) == before
    replace_named_file(received, "halo.csv", OTHERS["halo.csv"])
    done = received.invoke("predict")
    assert done.output == (
        "commodel: halo.csv: has changed since it was planned, and results/e has no copy of it; plan again\n"
    )
    replace_named_file(received, "halo.csv", None)
    done = received.invoke("predict")
    assert done.output == (
        "commodel: halo.csv: cannot be read: No such file or directory, and results/e has no copy of it\n"
    )


def test_planning_again_replaces_the_copy(received):
    replace_named_file(received, "halo.csv", OTHERS["halo.csv"])
    assert received.invoke("plan").exit_code == 0
    assert not (received.results / copy_of("halo.csv")).exists()
    (copy,) = (received.results / "inputs/files").glob("*-halo.csv")
    assert copy.read_text() == OTHERS["halo.csv"]


def test_a_plan_of_an_older_commodel_has_no_files(received):
    before = predict(received)
    plan = json.loads((received.root / PLAN).read_text())
    del plan["files"]
    (received.root / PLAN).write_text(json.dumps(plan))
    shutil.rmtree(received.results / "inputs/files")
    assert predict(received) == before


def test_reports_list_the_files_with_their_digests(received):
    book = openpyxl.load_workbook(received.root / "reports/e/e.xlsx", read_only=True)
    rows = {sheet: list(book[sheet].iter_rows(values_only=True)) for sheet in ("Provenance",)}
    named = {row[0]: row for row in rows["Provenance"] if row[0] in NAMED and row[2] is not None}
    for name, text in NAMED.items():
        digest = hashlib.sha256(text.encode()).hexdigest()
        assert named[name][2:5] == (len(text), digest, copy_of(name).rpartition("/")[2])
    shown = [row[0] for row in rows["Provenance"]]
    assert [line for line in shown if line in NAMED["halo.csv"].splitlines()] == NAMED[
        "halo.csv"
    ].splitlines()
    assert "node,parent" not in shown  # trees and rank files may name machines
    page = (received.root / "reports/e/index.html").read_text()
    assert hashlib.sha256(NAMED["tree.csv"].encode()).hexdigest() in page


def test_a_file_above_the_limit_has_a_digest_but_no_copy(received, monkeypatch):
    monkeypatch.setattr(cache, "MAX_COPY_BYTES", 20)
    monkeypatch.setattr("commodel.plan.plan_tables.MAX_COPY_BYTES", 20)
    done = received.invoke("plan")
    lines = [line for line in done.output.splitlines() if "no copy" in line]
    assert "; all are done already: a run measures nothing." in done.output
    assert "measuring again would take about" in done.output
    assert lines[0].partition(". ")[2] == (
        f"halo.csv: {len(NAMED['halo.csv'])} B, of which the results keep the digest and no copy (limit 20 B): "
        "keep the file to predict or play it again."
    )
    assert not (received.results / copy_of("halo.csv")).exists()
    predict(received)
    replace_named_file(received, "halo.csv", OTHERS["halo.csv"])
    assert "has changed since it was planned" in received.invoke("predict").output


@pytest.mark.parametrize("name", list_papers())
def test_the_published_sets_of_a_paper_can_be_read(name):
    for file in find_paper(name).published:
        assert read_published(file).source


def random_table(rows):
    sizes = np.random.default_rng(3).integers(0, 1 << 20, rows)
    return "step,kind,rank,peer,bytes\n" + "".join(
        f"{step},send,0,1,{size}\n" for step, size in enumerate(sizes)
    )


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Results.of(tmp_path / "results")


def test_a_large_file_is_compressed(results, tmp_path):
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
    assert copy.stat().st_ino == first  # the same file: the copy is not written again
    (tmp_path / "long.csv").unlink()
    with use_archived_inputs(results, {"long.csv": file}):
        assert read_pattern("file:long.csv").encode() == wanted


def test_a_compressed_pattern_is_read_and_copied_unchanged(results, tmp_path):
    text = random_table(80_000).encode()
    (tmp_path / "long.csv.gz").write_bytes(gzip.compress(text) + b"")
    (tmp_path / "long.csv").write_bytes(text)
    wanted, file = read_pattern("file:long.csv").encode(), record_input("pattern", "long.csv.gz")
    archive_input("long.csv.gz", file, results)
    (tmp_path / "long.csv.gz").unlink()
    with use_archived_inputs(results, {"long.csv.gz": file}):
        assert read_pattern("file:long.csv.gz").encode() == wanted


def test_a_decompression_bomb_is_refused(results, tmp_path):
    """At most as many bytes are unpacked as the plan's file has."""
    (tmp_path / "a.csv").write_text(NAMED["halo.csv"])
    file = record_input("pattern", "a.csv")
    place = tmp_path / "results/inputs/files" / file.copy
    place.parent.mkdir(parents=True)
    with gzip.open(place, "wb", compresslevel=1) as stream:
        for _ in range(256):
            stream.write(bytes(MIB))
    with (
        pytest.raises(UserError, match="differs from the plan"),
        use_archived_inputs(results, {"a.csv": file}),
    ):
        pass


@pytest.mark.parametrize(
    "damage",
    [lambda b: b[: len(b) // 2], lambda b: b[:60] + b"\xff" * 40 + b[100:], lambda b: b[:2]],
)
def test_a_damaged_compressed_file_is_refused(damage, tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(damage(gzip.compress(random_table(100).encode())))
    with pytest.raises(UserError, match=r"a\.csv\.gz: cannot be unpacked") as error:
        read_pattern(f"file:{path}")
    assert error.value.format_message().count("\n") == 0


def test_a_file_that_changes_during_planning_is_refused(results, tmp_path):
    (tmp_path / "a.csv").write_text(NAMED["halo.csv"])
    file = record_input("pattern", "a.csv")
    (tmp_path / "a.csv").write_text(OTHERS["halo.csv"])
    with pytest.raises(UserError, match="has changed while it was planned"):
        archive_input("a.csv", file, results)
    assert list((tmp_path / "results/inputs/files").iterdir()) == []


def test_names_of_copies_are_safe(results, tmp_path):
    for name in ("ä ö/…b.csv", "-rf", ".hidden", f"{'x' * 200}.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(NAMED["halo.csv"])
        file = record_input("pattern", name)
        archive_input(name, file, results)
        assert [path.name for path in results.inputs()] == [file.copy]
        results.copy(file.copy).unlink()


def test_without_archived_inputs_the_project_s_files_are_read(results, tmp_path):
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


def test_an_empty_file_is_unpacked(tmp_path):
    (tmp_path / "empty").touch()
    with open_unpacked(tmp_path / "empty") as stream:
        assert stream.read() == b""
