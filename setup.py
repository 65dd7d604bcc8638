"""A wheel holds, below the package, what a clone has beside it: workflow, native sources, params
and profiles; and where there is a C compiler the library that predicts times, for machines of the
builder's kind; and the scripts of a report's page, bundled."""

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
INSTALLED = Path("commodel", "clone")  # commodel.sources looks there
PROJECT_FILES = (
    "Snakefile",
    "LICENSE",
    "params/**/*",
    "profiles/**/*",
    "workflow/Snakefile",
    "workflow/native/**/*",
)
PROJECT_FILES += ("workflow/report/*", "workflow/rules/*", "workflow/schemas/*")
REPLAY = Path("build", "replay")  # commodel.models.evaluation.native_library looks there
LIBRARY = "libreplay.so"


class WithClone(build_py):
    def run(self):
        super().run()
        if self.editable_mode:
            return
        files = {path for pattern in PROJECT_FILES for path in HERE.glob(pattern) if path.is_file()}
        for path in sorted(files):
            target = Path(self.build_lib) / INSTALLED / path.relative_to(HERE)
            self.mkpath(str(target.parent))
            self.copy_file(str(path), str(target))
        (Path(self.build_lib) / INSTALLED / "COMMIT").write_text(commit() + "\n", encoding="utf-8")
        compile_replay(Path(self.build_lib).resolve() / INSTALLED / REPLAY)
        bundle_scripts(Path(self.build_lib) / INSTALLED / "build")


class OfItsPlatform(bdist_wheel):
    """Any Python may have it; with the compiled library, only on machines that run that."""

    def get_tag(self):
        python, abi, platform = super().get_tag()
        built = (
            Path(self.get_finalized_command("build_py").build_lib) / INSTALLED / REPLAY / LIBRARY
        )
        if built.exists():
            platform = self.plat_name.lower().translate(str.maketrans("-. ", "___"))
        return python, abi, platform


def compile_replay(folder: Path) -> None:
    """Where there is no C compiler a package is built all the same; what needs the library says how
    to build it."""
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier build
    folder.mkdir(parents=True)
    try:
        command = ["make", "-s", "-C", str(HERE / "workflow/native/replay"), f"BUILD={folder}"]
        subprocess.run(command, capture_output=True, text=True, check=True)
        (folder / "command").unlink()
    except (OSError, subprocess.CalledProcessError) as error:
        shutil.rmtree(folder)
        why = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1:]
        print(
            "commodel: native/replay does not compile, call commodel build replay later:",
            *why,
            file=sys.stderr,
        )


def bundle_scripts(folder: Path) -> None:
    """Write the scripts that draw charts, so that no report has to bundle them, which takes a
    second. The file name has the version of vl-convert; an installation with another version does
    not use the file."""
    try:
        scripts = runpy.run_path(str(HERE / "workflow/commodel/reports/pictures/scripts.py"))
    except ImportError as error:
        print("commodel: each report will take a second longer:", error, file=sys.stderr)
        return
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("vega-*.js"):
        old.unlink()
    (folder / scripts["BUNDLE_NAME"]).write_text(scripts["make_bundle"](), encoding="utf-8")


def commit() -> str:
    """As an image notes it. A source archive has noted it before."""
    if (HERE / "COMMIT").is_file():
        return (HERE / "COMMIT").read_text(encoding="utf-8").strip()
    command = [
        "git",
        "-C",
        str(HERE),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=40",
        "--exclude",
        "*",
    ]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


setup(cmdclass={"build_py": WithClone, "bdist_wheel": OfItsPlatform})
