"""The snakedeploy commands of config/README.md, literally. A server on this machine takes the place
of the host in the address. Uncommitted changes are not deployed."""

import os
import shlex
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from commodel.platforms.tools import ROOT
from tests.docs_project import reduce_experiment
from tests.documented import blocks

pytestmark = pytest.mark.lab
PINNED = "snakedeploy==0.17.1"
HOST = "https://github.com/"


@pytest.fixture(scope="module")
def snakedeploy():
    """Return the folder of snakedeploy's programs, in a separate environment."""
    separate = ROOT / "build" / "lab-snakedeploy"
    if not (separate / "bin" / "snakedeploy").exists():
        subprocess.run([sys.executable, "-m", "venv", separate], check=True)
        subprocess.run(
            [separate / "bin" / "pip", "install", "--quiet", PINNED], check=True, timeout=600
        )
    return separate / "bin"


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def served(tmp_path):
    """Yield git settings that redirect the address of OWNER/commodel to a local clone of this
    repository."""
    if not (ROOT / ".git").exists():
        pytest.skip("no clone")
    bare = tmp_path / "served/OWNER/commodel"
    subprocess.run(["git", "clone", "--quiet", "--bare", ROOT, bare], check=True)
    subprocess.run(["git", "-C", bare, "tag", "VERSION", "HEAD"], check=True)
    subprocess.run(["git", "-C", bare, "update-server-info"], check=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=tmp_path / "served"))
    threading.Thread(target=server.serve_forever).start()
    address = f"url.http://127.0.0.1:{server.server_port}/.insteadOf"
    yield {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": address, "GIT_CONFIG_VALUE_0": HOST}
    server.shutdown()
    server.server_close()


def commands() -> list[list[str]]:
    lines = [line for _, line in blocks((ROOT / "config/README.md").read_text(encoding="utf-8"))]
    first = next(number for number, line in enumerate(lines) if line.startswith("snakedeploy "))
    return [shlex.split(line) for line in lines[first : first + 3]]


def test_deploying_from_an_address(snakedeploy, served, simgrid_programs, tmp_path):
    tools = [Path(sys.executable).parent, os.environ["PATH"], snakedeploy]
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": os.pathsep.join(map(str, tools))}

    def run(*words: str) -> str:
        environment = os.environ | served | cache
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    deploy, init, measure = commands()
    assert deploy[2].startswith(HOST)
    run(*deploy)
    assert 'github("OWNER/commodel", path="workflow/Snakefile", tag="VERSION")' in (
        (tmp_path / "mine/workflow/Snakefile").read_text()
    )
    run(*init)
    sample = tmp_path / "mine/params/experiments/sample.yaml"
    sample.write_text(reduce_experiment(sample.read_text(encoding="utf-8")), encoding="utf-8")
    run(*measure)
    assert (tmp_path / "mine/reports/sample/sample.xlsx").exists()
    run(*measure, "--report", "all.html")
    assert "sample.xlsx" in (tmp_path / "mine/all.html").read_text(encoding="utf-8")
