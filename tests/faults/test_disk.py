"""A full or read-only results folder: one error line, no incomplete file, earlier files unchanged.
The file systems are mounted in a mount namespace of the test; this needs root."""

import os
import subprocess

import pytest

from commodel.results.raw_samples import is_complete, read_samples
from tests.starting import environment, mpiexec

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root")


def run_in_mount_namespace(script, *arguments, cwd):
    """Run a shell script in a separate mount namespace, whose mounts end with the script."""
    command = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-euc",
        script,
        "sh",
        *map(str, arguments),
    ]
    return subprocess.run(
        command,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=environment(),
    )


def kept(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.csv")}


# What a tiny file system holds in the end is copied out of it: it ends with its namespace.
FULL = """
mount -t tmpfs -o size="$1" none "$2"
shift
here=$1
shift
cp -r before/. "$here"
code=0
"$@" || code=$?
mkdir after
cp -r "$here/." after
exit $code
"""


@pytest.mark.parametrize("size", ["24k", "200k"])
def test_a_full_disk_ends_the_driver_with_one_line(campaign, size):
    """24 KiB do not hold the first case file; 200 KiB hold some of the samples. There is time for
    more, also on a busy machine."""
    here = campaign(points=4, samples=3000, passes=2, seconds="2 s")
    here.raw.mkdir(parents=True)
    (here.root / "before").mkdir()
    done = run_in_mount_namespace(
        FULL, size, here.raw, *here.command(*here.arguments), cwd=here.root
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("commodel: ")]
    assert len(errors) == 1
    assert "No space left on device" in errors[0]
    after = here.root / "after"
    assert not list(after.glob("*.unmeasured.json"))  # no case's fault
    assert all(is_complete(path) for path in after.glob(".pass-*/[!.]*.csv"))
    assert all(read_samples(path, path.stem) for path in after.glob("*.csv"))
    subprocess.run(["cp", "-r", f"{after}/.", here.raw], check=True)
    samples = {path.name: path.read_bytes() for path in after.glob("*.csv")}
    here.measure()  # where there is room again
    assert here.samples() == here.ids
    assert {name: text for name, text in kept(here.raw).items() if name in samples} == samples


READ_ONLY = """
mount --bind "$1" "$1"
mount -o remount,ro,bind "$1"
shift
exec "$@"
"""


def test_a_read_only_results_folder_is_named_in_one_line(campaign):
    here = campaign(points=4, samples=10, seconds="0.1 s")
    here.measure()
    for finished in (4, 2, 0):
        for path in sorted(here.raw.glob("*.csv"))[finished:]:
            path.unlink()
        before = {path: path.read_bytes() for path in here.raw.rglob("*") if path.is_file()}
        done = run_in_mount_namespace(
            READ_ONLY, here.raw, *here.command(*here.arguments), cwd=here.root
        )
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "Read-only file system" in done.stderr
        assert here.raw.name in done.stderr
        assert {path: path.read_bytes() for path in here.raw.rglob("*") if path.is_file()} == before


CASES = "id,pairs,bytes\n" + "".join(f"case-{number},1,{8 << number}\n" for number in range(6))


def test_a_full_disk_ends_a_program_and_leaves_no_samples_under_a_final_name(
    mpi_programs, tmp_path
):
    (tmp_path / "cases").write_text(CASES)
    for folder in ("before", "out"):
        (tmp_path / folder).mkdir()
    options = ["--min-samples", "2000", "--max-samples", "2000", "--cases", "cases", "--out", "out"]
    command = [mpiexec(), "-n", "2", mpi_programs / "pairs", *options]
    # four pages for six files: full on any machine, also where load makes most samples invalid
    done = run_in_mount_namespace(FULL, "16k", tmp_path / "out", *command, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "cannot write: No space left on device" in line
    whole = list((tmp_path / "after").glob("case-*.csv"))
    assert len(whole) < 6
    assert all(is_complete(path) for path in whole)


def test_a_read_only_folder_ends_a_program_with_one_line(mpi_programs, tmp_path):
    (tmp_path / "cases").write_text(CASES)
    (tmp_path / "out").mkdir()
    command = [mpiexec(), "-n", "2", mpi_programs / "pairs", "--cases", "cases", "--out", "out"]
    done = run_in_mount_namespace(READ_ONLY, tmp_path / "out", *command, cwd=tmp_path)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "Read-only file system" in line
    assert not list((tmp_path / "out").iterdir())
