"""Front-ends of overlay networks, controlled by commands; built with and without sanitizers."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from tests.once import made_once
from tests.overlay.building import link
from tests.processes import family, still_there
from tests.waiting import until

CASE_COLUMNS = "id,operation,topology,bytes,filter,compute,mode,period,waves"


@pytest.fixture(scope="session")
def overlay_programs(overlay_programs, tmp_path_factory):
    """Return a folder with the programs of users and those of tests."""

    def build(folder: Path) -> None:
        for path in overlay_programs.iterdir():
            if path.is_file():
                shutil.copy(path, folder)
        link(folder, "-O2", ("drive", "parts", "speed"))

    return made_once(tmp_path_factory, "overlay", build)


class Tool:
    """A front-end that executes one command a line and answers each."""

    def __init__(self, command: list[object], errors: Path, environment: Mapping[str, str]) -> None:
        self.errors = errors
        with errors.open("w") as file:
            self.process = subprocess.Popen(
                list(map(str, command)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                env=environment,
            )

    def answer(self) -> dict:
        line = self.process.stdout.readline()
        assert line, f"no answer; standard error: {self.read_stderr()}"
        return json.loads(line)

    def execute(self, command: str) -> dict:
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.answer()

    def execute_ok(self, command: str) -> dict:
        answer = self.execute(command)
        assert answer["code"] == "ok", (command, answer, self.read_stderr())
        return answer

    def read_stderr(self) -> str:
        return self.errors.read_text(errors="replace")

    def wait_for_losses(self, count: int) -> list[int]:
        """Return the lost back-ends, once there are `count`."""

        def has_lost() -> bool:
            self.execute("any 0")
            return len(self.execute_ok("lost 0")["lost"]) >= count

        until(has_lost, 60)
        return self.execute_ok("lost 0")["lost"]

    def processes(self) -> list[int]:
        return family(self.process.pid)

    def kill(self) -> None:
        """Kill the front-end; all other processes must end by themselves."""
        all_processes = self.processes()
        self.process.kill()
        self.process.wait()
        assert not still_there(all_processes)

    def end(self) -> int:
        """Return the exit code after the command quit; no process may be left."""
        all_processes = self.processes()
        # a front-end that has refused its topology may be ending now
        with suppress(BrokenPipeError):
            if self.process.poll() is None:
                self.process.stdin.write("quit\n")
                self.process.stdin.close()
        code = self.process.wait(timeout=120)
        assert not still_there(all_processes)
        return code


@pytest.fixture
def start(tmp_path, request) -> Callable[..., Tool]:
    """Return start(topology, checked=False, **settings), which starts a front-end for a topology
    given as text. The front-end is ended after the test, unless the test has ended it."""
    tools: list[Tool] = []

    def begin(topology: str, checked: bool = False, up: bool = True, **settings: str) -> Tool:
        folder = request.getfixturevalue("checked_programs" if checked else "overlay_programs")
        file = tmp_path / f"topology-{len(tools)}"
        file.write_text(topology)
        tool = Tool(
            [folder / "drive", file], tmp_path / f"errors-{len(tools)}", os.environ | settings
        )
        tools.append(tool)
        if up:
            tool.up = tool.answer()
            assert tool.up["code"] == "ok", tool.up
        return tool

    yield begin
    for tool in tools:
        if tool.process.returncode is None:
            try:
                assert tool.end() in (0, 2), tool.read_stderr()
            finally:
                tool.process.kill()
        assert "ERROR:" not in tool.read_stderr(), tool.read_stderr()
        assert "runtime error" not in tool.read_stderr(), tool.read_stderr()


@pytest.fixture
def bench(overlay_programs, tmp_path):
    """bench(rows, *options): start overlay-bench with these rows of a case file, and return its
    process."""
    (tmp_path / "flat.top").write_text("l:0 => l:1 l:2 l:3 ;\n")
    (tmp_path / "unequal.top").write_text("l:0 => l:1 l:2 ;\nl:1 => l:3 l:4 l:5 ;\nl:2 => l:6 ;\n")
    (tmp_path / "chain.top").write_text("l:0 => l:1 ;\nl:1 => l:2 ;\n")

    def start(rows, *options, header=CASE_COLUMNS):
        (tmp_path / "cases.csv").write_text("\n".join([header, *rows]) + "\n")
        command = [
            overlay_programs / "overlay-bench",
            "--cases",
            "cases.csv",
            "--out",
            "out",
            *options,
        ]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(list(map(str, command)), cwd=tmp_path, **pipes)

    return start


def flat(leaves: int) -> str:
    return "h:0 => " + " ".join(f"h:{i}" for i in range(1, leaves + 1)) + " ;\n"


def kary(fanout: int, height: int) -> str:
    lines, level, known = [], [0], 1
    for _ in range(height):
        below = []
        for parent in level:
            children = list(range(known, known + fanout))
            known += fanout
            below += children
            lines.append(f"h:{parent} => " + " ".join(f"h:{i}" for i in children) + " ;\n")
        level = below
    return "".join(lines)


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)
