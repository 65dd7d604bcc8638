"""Failures of launchers: the message shown is the informative line of the launcher's output.
`launcher_messages/*.txt` are outputs of failed starts by mpiexec of MPICH 4.0.2 and 5.0.2 and of
Open MPI 4.1.4 and 5.0.11, and by srun of Slurm 22.05. A line with the cause and a line with the
expected message precede each output. Started processes end with the launcher, with its supervisor
and with their parent.
"""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commodel.measure.process import describe_failure, run_launcher
from tests.processes import alive, still_there
from tests.waiting import until

PROGRESS = "case 1/2 a median 1.234 us, 10 samples, samples\n"
BLOCK = re.compile(r"### (.+)\n### (.+)\n((?:(?!### ).*\n)+)")
PRINTED = [
    (f"{file.stem}: {what}", wanted, text)
    for file in sorted(Path(__file__).with_name("launcher_messages").glob("*.txt"))
    for what, wanted, text in BLOCK.findall(file.read_text())
]


def test_the_sentence_that_states_something(tmp_path):
    wrong = {}
    for what, wanted, text in PRINTED:
        for before in ("", PROGRESS):
            (tmp_path / "log").write_text(before + text)
            said = describe_failure(tmp_path / "log")
            if said != wanted:
                wrong[what] = said
    assert len(PRINTED) >= 45
    assert not wrong


def test_the_programs_own_words_come_first(tmp_path):
    for own in (
        "player/player.c:80: MPI_Waitall failed: out of memory",
        "kernels/product.c:7: the product does not verify",
    ):
        for _, _, text in PRINTED:
            (tmp_path / "log").write_text(f"{text}{own}\n")
            assert describe_failure(tmp_path / "log") == own


def test_the_innermost_call_of_mpich_s_stack_is_reported(tmp_path):
    (tmp_path / "log").write_text(
        PROGRESS + "player.c:80: MPI_Waitall failed: Other MPI error, error stack:\n"
        "internal_Waitall(98)..: MPI_Waitall(count=1) failed\n"
        "MPIR_Waitall(211).....:\n"
        "deal_with(14): connection lost\n"
    )
    assert describe_failure(tmp_path / "log") == (
        "player.c:80: MPI_Waitall failed: Other MPI error, error stack: connection lost"
    )


def test_a_log_of_progress_lines_only_is_described_as_nothing_printed(tmp_path):
    for text in ("", "\n", PROGRESS):
        (tmp_path / "log").write_text(text)
        assert describe_failure(tmp_path / "log") == "it printed nothing"


START = "import sys; from pathlib import Path; from commodel.measure.process import run_launcher\n"
START += "run_launcher(['sh', '-c', 'echo $$ > pid; exec sleep 60'], Path(sys.argv[1]) / 'log')"


def test_the_code_and_the_output_come_back(tmp_path):
    assert run_launcher(["sh", "-c", "echo said; exit 3"], tmp_path / "log") == (3, "")
    assert (tmp_path / "log").read_text() == "said\n"


def test_settings_become_environment_variables_unless_set_by_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("OF_THE_USER", "theirs")
    show = ["sh", "-c", "echo $OF_THE_USER $OF_NOBODY"]
    run_launcher(show, tmp_path / "log", settings={"OF_THE_USER": "ours", "OF_NOBODY": "ours"})
    assert (tmp_path / "log").read_text() == "theirs ours\n"


def test_a_watch_that_states_why_ends_the_whole_group(tmp_path):
    looks = iter(["", "", "enough"])
    code, why = run_launcher(
        ["sh", "-c", "sleep 60 & echo $! > child; wait"], tmp_path / "log", lambda: next(looks)
    )
    assert (code, why) == (-signal.SIGTERM, "enough")
    assert not still_there([int((tmp_path / "child").read_text())])


def test_nothing_outlives_a_killed_parent(tmp_path):
    for number in (signal.SIGTERM, signal.SIGKILL):
        (tmp_path / "pid").unlink(missing_ok=True)
        with subprocess.Popen([sys.executable, "-c", START, str(tmp_path)]) as parent:
            child = int(
                until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
            )
            assert alive(child)
            parent.send_signal(number)
            parent.wait()
        assert not still_there([child]), number


LEAVES_SESSION = """
setsid sleep 60 & echo $! > child
setsid sh -c 'sleep 60 & echo $! > grandchild; exec sleep 60' & echo $! > parent
while [ ! -s grandchild ]; do sleep 0.01; done
"""


@pytest.mark.parametrize("stops", [False, True], ids=["ended", "stopped"])
def test_processes_that_left_the_session_of_the_launcher_end_with_it(tmp_path, stops):
    """Ranks of MPICH do so. Other children of this process are not touched."""
    grandchild = tmp_path / "grandchild"
    watch = lambda: "enough" if grandchild.exists() and grandchild.read_text() else ""  # noqa: E731
    script = f"{LEAVES_SESSION}{'sleep 60' if stops else ''}"
    with subprocess.Popen(["sleep", "60"]) as own:
        _, why = run_launcher(["sh", "-c", script], tmp_path / "log", watch)
        assert why == ("enough" if stops else "")
        numbers = [int((tmp_path / name).read_text()) for name in ("child", "parent", "grandchild")]
        assert not [number for number in numbers if alive(number)]
        assert own.poll() is None
        own.kill()
