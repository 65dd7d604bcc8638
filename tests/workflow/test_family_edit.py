"""The promise of the workflow's inputs: editing one family's file refits that family and nothing else."""

import os
import subprocess
import sys

from tests.workflow.conftest import ROOT


def jobs(project) -> set[tuple[str, str]]:
    """Rules that a run would execute, with the family or batch that each is about."""
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--snakefile",
        str(ROOT / "Snakefile"),
        "--directory",
        str(project.folder),
    ]
    command += ["--workflow-profile", str(ROOT / "profiles/default"), "--config", "experiment=small"]
    command += ["--cores", "2", "--dry-run"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line.strip() for line in (run.stdout + run.stderr).splitlines()]
    verbs = ("measuring", "fitting", "predicting", "comparing", "writing", "collecting", "compiling")
    return {
        tuple(line.partition(": ")[2].split(" on ")[0].split()[:3])
        for line in lines
        if any(f": {v}" in line for v in verbs)
    }


def test_editing_a_family_refits_only_that_family(project):
    project.commodel("run", "small", "-q")
    assert jobs(project) == set()
    path = ROOT / "workflow/commodel/families/hockney.py"
    times = path.stat()
    try:
        os.utime(path)
        found = {" ".join(words[:2]) for words in jobs(project)}
    finally:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert found == {"fitting hockney", "predicting with", "comparing predictions", "writing the"}


def test_editing_the_report_code_only_writes_the_report(project):
    project.commodel("run", "small", "-q")
    path = ROOT / "workflow/commodel/report/html.py"
    times = path.stat()
    try:
        os.utime(path)
        found = {" ".join(words[:2]) for words in jobs(project)}
    finally:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert found == {"writing the"}
