"""A barrier in front of a real program: starts of the program wait while the barrier is down, fail,
or run if it is up."""

import shutil
import subprocess
import time
from pathlib import Path

SCRIPT = """#!/bin/sh
while [ -e '{folder}/down' ]; do echo $$ >> '{folder}/waiting'; sleep 0.1; done
if [ -s '{folder}/refused' ] && echo "$*" | grep -qf '{folder}/refused'; then
  echo 'error: refused by the barrier' >&2
  exit 7
fi
exec '{program}' "$@"
"""


class Barrier:
    def __init__(self, folder: Path, program: str):
        folder.mkdir()
        self.folder = folder
        script = folder / program
        script.write_text(SCRIPT.format(folder=folder, program=shutil.which(program)))
        script.chmod(0o755)

    def lower(self) -> None:
        (self.folder / "down").touch()

    def lift(self) -> None:
        (self.folder / "down").unlink(missing_ok=True)
        self.refuse("")

    def refuse(self, pattern: str) -> None:
        """Make starts whose arguments match the pattern fail with exit code 7; an empty pattern
        matches none."""
        (self.folder / "refused").write_text(f"{pattern}\n" if pattern else "")

    def await_one(self, process: subprocess.Popen) -> None:
        """Wait until a program, started by `process`, waits at the barrier."""
        while not (self.folder / "waiting").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
        (self.folder / "waiting").unlink()
