"""Eight hosts and an Open MPI in a separate folder; commodel runs on the head as a user calls it.

The workflow is a copy, so that compiling with the lab's MPI does not change this clone's
programs."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HOSTS = tuple(f"h{number}" for number in range(8))
NEEDED = ("ip", "tc", "nsenter", "unshare", "apt-get", "dpkg", "gcc")
OPEN_MPI = {  # the settings of this site; a platform file has none
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


@dataclass(frozen=True)
class Network:
    folder: Path
    mpi: Path  # where its programs are

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def agent(self) -> Path:
        return self.folder / "hosts" / "agent"

    def script(self, *arguments: object, **settings: str) -> str:
        return _script(
            "network.sh", arguments[0], self.folder / "hosts", *arguments[1:], **settings
        )

    def head(self, *command: object, **settings: str) -> subprocess.Popen:
        """Start a command on the head, in the project's folder."""
        lab_settings = {
            "COMMODEL_AGENT": str(self.agent),
            "PATH": f"{self.mpi}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.folder / "clone" / "workflow"),
        }
        argv = [HERE / "network.sh", "run", self.folder / "hosts", *command]
        return subprocess.Popen(
            [str(part) for part in argv],
            cwd=self.project,
            env=os.environ | OPEN_MPI | lab_settings | settings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def commodel(self, *arguments: object, code: int = 0, **settings: str) -> str:
        process = self.head(sys.executable, "-m", "commodel", *arguments, **settings)
        said, _ = process.communicate(timeout=1800)
        assert process.returncode == code, said
        return said

    def write(self, kind: str, name: str, text: str) -> None:
        (self.project / "params" / kind / f"{name}.yaml").write_text(text)

    def on(self, host: str, *command: object) -> str:
        return _run([self.agent, host, *command])

    def drops(self, host: str) -> int:
        """Return the number of packets that the switch dropped at its port to a host."""
        return int(self.script("drops", host))

    def timeouts(self, host: str) -> int:
        """Return the number of TCP retransmission timeouts on a host."""
        names, values = (
            line.split()
            for line in self.on(host, "cat", "/proc/net/netstat").splitlines()
            if line.startswith("TcpExt:")
        )
        return int(dict(zip(names, values, strict=True))["TCPTimeouts"])

    def processes(self) -> dict[int, str]:
        """Return the command lines of all processes on the hosts and the head, by process id."""
        commands = {}
        ours = {
            os.readlink(f"/proc/{path.read_text().strip()}/ns/net")
            for path in self.folder.glob("hosts/*.pid")
        }
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(path / "ns" / "net") in ours:
                    commands[int(path.name)] = (
                        (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    )
            except OSError:  # it has ended
                continue
        return commands


@contextmanager
def network(folder: Path, *queue: int, **settings: str) -> Iterator[Network]:
    """Start the lab. `queue` is the buffer in bytes of a switch port; `settings` are those of
    network.sh."""
    lab = Network(folder, folder / "openmpi" / "bin")
    _script("openmpi.sh", folder / "openmpi")
    for name in ("workflow", "profiles"):
        shutil.copytree(
            ROOT / name, folder / "clone" / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in ("published", "patterns"):
        shutil.copytree(ROOT / "params" / name, folder / "clone" / "params" / name)
    shutil.copytree(ROOT / "build" / "replay", folder / "clone" / "build" / "replay")
    shutil.copy(ROOT / "Snakefile", folder / "clone")
    shutil.copytree(HERE / "params", lab.project / "params")
    try:
        lab.script("up", *queue, **settings)
        yield lab
    finally:
        lab.script("down")


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        pytest.skip(f"no {', '.join(missing)} here")
    with network(tmp_path_factory.mktemp("network")) as lab:
        yield lab


def _script(name: str, *arguments: object, **settings: str) -> str:
    return _run([HERE / name, *arguments], **settings)


def _run(argv: list[object], **settings: str) -> str:
    words, lab_settings = [str(part) for part in argv], os.environ | settings
    run = subprocess.run(
        words, env=lab_settings, capture_output=True, text=True, check=False, timeout=120
    )
    if run.returncode:
        raise RuntimeError(f"{argv[0]} ended with code {run.returncode}: {run.stderr}")
    return run.stdout
