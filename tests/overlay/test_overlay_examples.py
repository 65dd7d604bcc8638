"""The examples of attaching back-ends and of threads, in C and in Python, run as users run them."""

import re
import subprocess
import sys

import pytest

from commodel.platforms.tools import ROOT
from tests.overlay.building import FLAGS, SOURCES, run_clean
from tests.overlay.conftest import kary, kill

EXAMPLES = ROOT / "examples" / "overlay"


@pytest.fixture(params=["c", "python"])
def example(request, tmp_path, overlay_programs):
    """Return a function that gives the command of an example, which it compiles if the language is
    C."""
    (tmp_path / "tree").write_text(kary(2, 2))

    def command(name):
        if request.param == "python":
            return [sys.executable, str(EXAMPLES / f"{name}.py")]
        program = tmp_path / name
        link = [
            overlay_programs / "liboverlay.so",
            f"-Wl,-rpath,{overlay_programs}",
            "-lpthread",
            "-o",
            program,
        ]
        run_clean(["cc", *FLAGS, "-I", SOURCES, EXAMPLES / f"{name}.c", *link])
        return [str(program)]

    return command


def test_threads_share_a_network(example, tmp_path):
    command = example("threads")
    said = run_clean([*command, tmp_path / "tree"]).stdout
    assert re.fullmatch(r"4 names, the last back-end 3; load average at most \d+\.\d\d\n", said)
    wrong = subprocess.run(
        [*command, tmp_path / "none"], capture_output=True, text=True, check=False
    )
    assert wrong.returncode in (1, 2)
    assert len(wrong.stderr.splitlines()) == 1
    assert "none: cannot read the topology" in wrong.stderr


def test_back_ends_join_and_replace_lost_ones(example, tmp_path):
    command = example("joining")
    front_end = subprocess.Popen(
        [*command, str(tmp_path / "tree"), str(tmp_path / "file")],
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    others = {}

    def join(number, said):
        others[number] = subprocess.Popen([*command, str(tmp_path / "file"), str(number)])
        assert front_end.stdout.readline() == said

    join(2, "joined: 1 of 4 answer\n")
    join(0, "joined: 2 of 4 answer\n")
    kill(others[2].pid)
    others.pop(2).wait()
    assert front_end.stdout.readline() == "lost: 1 of 4 answer\n"
    join(2, "joined: 2 of 4 answer\n")
    join(1, "joined: 3 of 4 answer\n")
    join(3, "joined: 4 of 4 answer\n")
    assert front_end.stdout.read() == ""
    assert front_end.wait(60) == 0
    assert [process.wait(60) for process in others.values()] == [0] * 4
