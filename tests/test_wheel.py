"""The result of `pip install .`: a commodel with its workflow, sources and published values,
without a clone."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from commodel.platforms.tools import ROOT, find_tool

pytestmark = pytest.mark.slow
LEFT = ("build", "dist", "results", "reports", "tests", "docs", "site", "*.egg-info")
SMALL = """
platform: fast-ethernet-32
models: [hockney]
measure: {precision: 5%, min_samples: 6, max_samples: 20, seconds: 1, warmup: 1}
probe_bytes: [1, 1024, 16384]
matrix:
  - axes: {operation: bcast, algorithm: [linear, binomial], ranks: 8, bytes: 1KiB}
"""


LOADED = (
    "from commodel.models.evaluation import native_library; print(native_library.load_library() "
    "is not None)"
)
QUIET = {"check": True, "capture_output": True, "text": True}


def copy_project(sources):
    """Copy this project without hidden files, built files, tests and docs; return the copy."""
    shutil.copytree(
        ROOT,
        sources,
        ignore=lambda at, names: (
            {n for n in names if n[0] == "." or n == "slurm"}
            | set(shutil.ignore_patterns(*LEFT)(at, names))
            if Path(at) == ROOT
            else {"__pycache__"}
        ),
    )
    return sources


def wheel(sources, folder, **environment):
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        folder,
        sources,
    ]
    subprocess.run(command, env=os.environ | environment, **QUIET)
    (built,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", built], **QUIET)
    return built


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return the commodel of a wheel, built from a copy of this project and installed in a separate
    environment. Its dependencies are those of the present environment, so that nothing is
    downloaded."""
    folder = tmp_path_factory.mktemp("wheel")
    sources = copy_project(folder / "sources")
    built = wheel(sources, folder)
    shutil.rmtree(sources)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], **QUIET)
    python = folder / "venv/bin/python"
    install = ("--python", python, "install", "--no-deps", "--no-index", built)
    subprocess.run([sys.executable, "-m", "pip", *install], **QUIET)
    (place,) = (folder / "venv/lib").glob("python*/site-packages")
    (place / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "venv/bin/commodel"


def test_where_there_is_no_compiler_a_wheel_is_for_every_machine(tmp_path):
    """A library from an earlier build with a compiler is left out."""
    sources = copy_project(tmp_path / "sources")
    library = sources / "build/lib/commodel/clone/build/replay/libreplay.so"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"")
    built = wheel(sources, tmp_path, CC="false")
    assert built.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(built).namelist()
    assert not [name for name in names if name.endswith(".so")]
    assert "commodel/py.typed" in names


def test_without_a_clone(installed, tmp_path):
    def run(*arguments, folder=tmp_path, code=0, program=installed):
        tools = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        command = [program, *arguments]
        done = subprocess.run(
            command, cwd=folder, env=os.environ | tools, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    bundled = "from commodel.reports.pictures.render import ROOT, scripts; "
    bundled += "print((ROOT / 'build' / scripts.BUNDLE_NAME).is_file())"
    assert run("-c", bundled, program=installed.with_name("python")) == "True\n"
    where = run(
        "-c", "import commodel; print(commodel.__file__)", program=installed.with_name("python")
    )
    assert where.startswith(str(installed.parents[1]))
    assert run("-c", LOADED, program=installed.with_name("python")) == f"{bool(find_tool('cc'))}\n"
    assert "loggp" in run("show", "models")
    assert "params/published/tan/cab-mrnet.yaml" in run("show", "models", "tan")
    published = ("--params", "params/published/tan/cab-mrnet.yaml")
    assert "tan" in run("predict", *published, "--operation", "reduce", "--topology", "kary:2^3")
    run("init", "mine")
    workspace = tmp_path / "mine"
    assert "node-hours" in run("plan", "demo", folder=workspace)
    run("predict", "matrix", "demo", *published, "--out", "predictions.csv", folder=workspace)
    assert len((workspace / "predictions.csv").read_text().splitlines()) > 100
    if find_tool("smpicc") is None:
        return
    (workspace / "params/experiments/small.yaml").write_text(SMALL)
    assert "hockney" in run("run", "small", folder=workspace)
    assert (workspace / "reports/small/small.xlsx").exists()
    assert (workspace / "build/smpi/player").exists()
    point = ("--operation", "bcast", "--algorithm", "linear", "--ranks", "4", "--bytes", "1KiB")
    assert "hockney" in run(
        "predict", "--params", "reports/small/small.xlsx", *point, folder=workspace
    )
