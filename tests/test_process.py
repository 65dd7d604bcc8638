"""What is started does not outlive its end, who watches it or its parent."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from commodel.process import run

START = "import sys; from pathlib import Path; from commodel.process import run\n"
START += "run(['sh', '-c', 'echo $$ > pid; exec sleep 60'], Path(sys.argv[1]) / 'log')"


def alive(pid: int) -> bool:
    """A zombie counts as gone: nobody reaps it here."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_the_code_and_the_output_come_back(tmp_path):
    assert run(["sh", "-c", "echo said; exit 3"], tmp_path / "log") == (3, "")
    assert (tmp_path / "log").read_text() == "said\n"


def test_a_watch_that_says_why_ends_the_whole_group(tmp_path):
    looks = iter(["", "", "enough"])
    code, why = run(["sh", "-c", "sleep 60 & echo $! > child; wait"], tmp_path / "log", lambda: next(looks))
    assert (code, why) == (-signal.SIGTERM, "enough")
    child = int((tmp_path / "child").read_text())
    for _ in range(50):
        if not alive(child):
            return
        time.sleep(0.1)
    raise AssertionError("the child of the launcher is still there")


def test_nothing_outlives_a_killed_parent(tmp_path):
    for number in (signal.SIGTERM, signal.SIGKILL):
        (tmp_path / "pid").unlink(missing_ok=True)
        with subprocess.Popen([sys.executable, "-c", START, str(tmp_path)]) as parent:
            while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
                time.sleep(0.05)
            child = int((tmp_path / "pid").read_text())
            assert alive(child)
            parent.send_signal(number)
            parent.wait()
        for _ in range(50):
            if not alive(child):
                break
            time.sleep(0.1)
        assert not alive(child), number
