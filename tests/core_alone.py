"""The core without our own extensions: `make test-core` runs the tests of its rooms there, with
`--quick` contracts and one campaign after the collection of all.

The copy has links to all that the core consists of. The description of a package beside it hides
the entry points of the installed one.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Rooms whose tests are of extensions.
OF_EXTENSIONS = ("formats", "fuzz", "kernels", "labs", "overlay", "papers", "tune")
# Tests of all verbs, functions and formats, those of our extensions among them.
OF_ALL = (
    "api/test_contract.py",
    "api/test_notebooks.py",
    "cli/test_contract.py",
)
COMMIT = ("git", "-c", "user.name=core", "-c", "user.email=core@localhost", "commit", "--quiet")
COMMIT += ("--allow-empty",)
QUICK = (
    "tests/cli/test_help.py",
    "tests/cli/test_import.py",
    "tests/cli/test_refusals.py",
    "tests/interchange/test_formats.py",
    "tests/models/test_contract_of_classes.py",
    "tests/workflow/test_run.py::test_the_whole_way_on_a_platform_that_is_loggp",
)
LEFT_OUT = ("results", "reports", ".git", "workflow", "build")


def make_core(folder: Path) -> Path:
    """Make a clone without our extensions, of links to this one, and return its import path."""
    for path in ROOT.iterdir():
        if path.name not in LEFT_OUT:
            (folder / path.name).symlink_to(path)
    packages = folder / "workflow"
    packages.mkdir()
    for path in (ROOT / "workflow").iterdir():
        if not path.name.startswith("commodel_"):
            (packages / path.name).symlink_to(path)
    metadata = packages / "commodel-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: commodel\nVersion: 0.1.0\n")
    return packages


def list_rooms() -> list[str]:
    """Return the folders of the tests that need no extension."""
    rooms = sorted({path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")})
    return [f"tests/{room}" for room in rooms if room not in OF_EXTENSIONS]


def main(options: list[str]) -> int:
    with tempfile.TemporaryDirectory() as name:
        packages = make_core(Path(name))
        environment = os.environ | {"PYTHONPATH": str(packages)}
        # Provenance names the commit of the code.
        subprocess.run(["git", "init", "--quiet"], cwd=name, check=True)
        subprocess.run([*COMMIT, "--message=core"], cwd=name, check=True)
        build = [sys.executable, "-m", "commodel", "build", "replay"]
        subprocess.run(build, cwd=name, env=environment, check=True)
        tests = [option for option in options if option.startswith("tests/")] or list_rooms()
        ignored = [f"--ignore=tests/{file}" for file in OF_ALL]
        others = [option for option in options if not option.startswith("tests/")]
        pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *ignored]
        if "--quick" in others:
            others.remove("--quick")
            collect = [*pytest, "--collect-only", "-qq", *tests]
            subprocess.run(
                collect, cwd=name, env=environment, check=True, stdout=subprocess.DEVNULL
            )
            tests = list(QUICK)
        command = [*pytest, *others, *tests]
        return subprocess.run(command, cwd=name, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
