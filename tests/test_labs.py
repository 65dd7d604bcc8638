"""Effects of the labs on their machine, and the files of the machine on which they depend."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from commodel.platforms.mpi_libraries import find_kind
from commodel.platforms.toolchains import compute_native_digest
from commodel.platforms.tools import ROOT, find_sibling, find_tool, read_version
from tests.labs.pinned_mpi import first_on_path

LAB = ROOT / "tests" / "labs"


@pytest.mark.parametrize("lab", ["slurm", "network", "apptainer", "gridengine", ""])
def test_lab_packages_are_installed_from_the_suite_of_the_machine(lab, tmp_path):
    """apt-get and dpkg-query are replaced, as on a machine without packages. Packages of unstable
    would replace its C library."""
    for name, text in {"apt-get": f'echo "$@" >>{tmp_path}/called', "dpkg-query": "exit 1"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    script = ["sh", str(LAB / "packages.sh"), *([lab] if lab else [])]
    done = subprocess.run(
        script, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    called = (
        (tmp_path / "called").read_text().splitlines() if (tmp_path / "called").exists() else []
    )
    installed = [
        word for line in called if line.startswith("install ") for word in line.split()[1:]
    ]
    assert not [word for word in installed if "/" in word]
    assert not {"apptainer", "libc6"} & set(installed)
    assert ("slurmctld" in installed) == (lab in ("slurm", ""))


def test_a_lab_that_does_not_exist_is_named():
    done = subprocess.run(
        ["make", "-C", str(ROOT), "--no-print-directory", "lab-test", "LAB=slrum", "READY="],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "no lab 'slrum' in tests/labs" in done.stderr


def test_labs_use_the_locked_mpi_even_if_another_is_first_on_the_path(tmp_path, monkeypatch):
    for name in ("mpicc", "mpiexec"):
        Path(tmp_path / name).write_text("#!/bin/sh\necho 'mpiexec (OpenRTE) 4.1.4'\n")
        Path(tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    find_tool.cache_clear()
    assert find_tool("mpicc") == str(tmp_path / "mpicc")
    with first_on_path():
        starter = find_sibling("mpicc", "mpiexec")
        run = subprocess.run([starter, "--version"], capture_output=True, text=True, check=True)
        assert find_kind(run.stdout) == "MPICH"
        assert read_version([starter, "--version"]).endswith(
            (ROOT / "envs/mpi.lock").read_text().strip().split("==")[1]
        )
    assert find_tool("mpicc") == str(tmp_path / "mpicc")
    find_tool.cache_clear()


def test_the_container_definition_computes_the_digest_that_a_run_compares():
    """Only the lab builds the image itself."""
    (code,) = re.findall("python -c '(.*?)'", (ROOT / "container.def").read_text())
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == (compute_native_digest(), "")
