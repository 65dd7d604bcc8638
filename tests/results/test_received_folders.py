"""A results folder that came by mail or lies on a shared disk: whatever stands below it in the place of a file or a
folder, no verb follows it, waits for it, or lets anything outside be changed or read into what it writes."""

import os
import shutil
import signal
from contextlib import contextmanager

import pytest

from commodel.api.snakemake_runs import run_snakemake
from commodel.errors import UserError
from commodel.files.results_folder import Results
from commodel.files.safe_paths import SafePath
from commodel.results.campaign import hold, holder
from tests.results.received import VERBS, copy_of, make_received

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
    "anonymous": SENT,
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


@pytest.fixture(scope="module")
def original(tmp_path_factory, mpi_programs):
    return make_received(tmp_path_factory.mktemp("original"))


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


def empty_folder_links(place, away):
    """A link to a folder of somebody's, with files named as ours are."""
    (away / "there").mkdir()
    for name in ("0123456789ab.csv", "precious.csv", "x.yaml", "done"):
        (away / "there" / name).write_text("precious")
    shutil.rmtree(place, ignore_errors=True)
    place.unlink(missing_ok=True)
    place.symlink_to(away / "there")


def devices(place, away):
    shutil.rmtree(place, ignore_errors=True)
    place.unlink(missing_ok=True)
    place.symlink_to("/dev/zero")


def pipes(place, away):
    shutil.rmtree(place, ignore_errors=True)
    place.unlink(missing_ok=True)
    os.mkfifo(place)


@pytest.mark.parametrize("plant", [links, empty_folder_links, devices, pipes], ids=lambda plant: plant.__name__)
@pytest.mark.parametrize("verb", VERBS)
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
        hold(folder, "it")
    if plant != "other name":
        with pytest.raises(UserError):
            holder(folder)
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
