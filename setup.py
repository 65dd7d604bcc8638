"""A wheel holds, below the package, what a clone has beside it: workflow, native sources, params and profiles."""

import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
INSTALLED = Path("commodel", "clone")  # commodel.sources looks there
BESIDE = ("Snakefile", "LICENSE", "params/**/*", "profiles/**/*", "workflow/Snakefile", "workflow/native/**/*")
BESIDE += ("workflow/report/*", "workflow/rules/*", "workflow/schemas/*")


class WithClone(build_py):
    def run(self):
        super().run()
        if self.editable_mode:
            return
        files = {path for pattern in BESIDE for path in HERE.glob(pattern) if path.is_file()}
        for path in sorted(files):
            target = Path(self.build_lib) / INSTALLED / path.relative_to(HERE)
            self.mkpath(str(target.parent))
            self.copy_file(str(path), str(target))
        (Path(self.build_lib) / INSTALLED / "COMMIT").write_text(commit() + "\n", encoding="utf-8")


def commit() -> str:
    """As an image notes it. A source archive has noted it before."""
    if (HERE / "COMMIT").is_file():
        return (HERE / "COMMIT").read_text(encoding="utf-8").strip()
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty", "--abbrev=40", "--exclude", "*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


setup(cmdclass={"build_py": WithClone})
