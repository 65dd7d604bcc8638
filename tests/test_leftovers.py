"""A run of the tests fails if a process that a test started is left, and names it."""

import subprocess
import sys

import pytest

from commodel.platforms.tools import ROOT

LEAVES = """
import subprocess
import tests.conftest
tests.conftest.LEFT_SECONDS = 0.0
def test_that_leaves_a_process():
    child = subprocess.Popen(["sleep", "61.5"], start_new_session=True)
    END
"""


@pytest.mark.parametrize(
    ("end", "code"), [("pass", 1), ("child.kill(); child.wait()", 0)], ids=["left", "ended"]
)
def test_a_run_of_the_tests_fails_if_a_process_is_left(tmp_path, end, code):
    (tmp_path / "test_it.py").write_text(LEAVES.replace("END", end))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        tmp_path,
    ]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    assert ("sleep 61.5" in done.stdout) == bool(code)
