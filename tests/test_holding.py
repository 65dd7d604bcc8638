"""A folder is held by one process at a time, and free again when that process is gone, even by a kill -9."""

import signal
import subprocess
import sys

import pytest

from commodel.errors import UserError
from commodel.holding import held

HOLD = "import sys, time; from pathlib import Path; from commodel.holding import held\n"
HOLD += "with held(Path(sys.argv[1]), 'it'): print('held', flush=True); time.sleep(60)"


def test_a_second_holder_is_told_who_the_first_is_until_that_is_gone(tmp_path):
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout.readline() == "held\n"
        with (
            pytest.raises(UserError, match=f"it is at work already: .+ on .+, process {first.pid}, since 20"),
            held(tmp_path, "it"),
        ):
            pass
        first.send_signal(signal.SIGKILL)
        first.wait()
    with held(tmp_path, "it"):
        assert (tmp_path / ".holder").exists()
