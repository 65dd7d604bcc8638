"""What is started does not outlive its end, who watches it or its parent."""

import signal
import subprocess
import sys

from commodel.measure.process import run
from tests.processes import alive, still_there
from tests.waiting import until

START = "import sys; from pathlib import Path; from commodel.measure.process import run\n"
START += "run(['sh', '-c', 'echo $$ > pid; exec sleep 60'], Path(sys.argv[1]) / 'log')"


def test_the_code_and_the_output_come_back(tmp_path):
    assert run(["sh", "-c", "echo said; exit 3"], tmp_path / "log") == (3, "")
    assert (tmp_path / "log").read_text() == "said\n"


def test_settings_are_in_the_environment_but_for_what_the_user_has_set(tmp_path, monkeypatch):
    monkeypatch.setenv("OF_THE_USER", "theirs")
    show = ["sh", "-c", "echo $OF_THE_USER $OF_NOBODY"]
    run(show, tmp_path / "log", settings={"OF_THE_USER": "ours", "OF_NOBODY": "ours"})
    assert (tmp_path / "log").read_text() == "theirs ours\n"


def test_a_watch_that_says_why_ends_the_whole_group(tmp_path):
    looks = iter(["", "", "enough"])
    code, why = run(["sh", "-c", "sleep 60 & echo $! > child; wait"], tmp_path / "log", lambda: next(looks))
    assert (code, why) == (-signal.SIGTERM, "enough")
    assert not still_there([int((tmp_path / "child").read_text())])


def test_nothing_outlives_a_killed_parent(tmp_path):
    for number in (signal.SIGTERM, signal.SIGKILL):
        (tmp_path / "pid").unlink(missing_ok=True)
        with subprocess.Popen([sys.executable, "-c", START, str(tmp_path)]) as parent:
            child = int(until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
            assert alive(child)
            parent.send_signal(number)
            parent.wait()
        assert not still_there([child]), number
