"""The library as `make install` installs it: the C examples are built against the installed copy
alone."""

import re
import shutil
import subprocess

import pytest

import commodel
from commodel.platforms.tools import ROOT
from tests.overlay.building import FLAGS, run_clean
from tests.overlay.conftest import kary
from tests.overlay.test_overlay_live import LINES

EXAMPLES = ROOT / "examples" / "overlay"
MAKEFILE_FOLDER = ROOT / "workflow" / "commodel_overlay" / "native"
INSTALLED_FILES = {
    "bin/overlay-node",
    "include/overlay.h",
    "lib/liboverlay.a",
    "lib/liboverlay.so",
    "lib/pkgconfig/overlay.pc",
    "share/man/man1/overlay-node.1",
}


def install(build, *settings):
    """Install the library from a build folder."""
    run_clean(["make", "-s", "-j2", "-C", MAKEFILE_FOLDER, "install", f"BUILD={build}", *settings])


def list_files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return the folder of an installed library, whose build is gone."""
    build, prefix = tmp_path_factory.mktemp("build"), tmp_path_factory.mktemp("prefix")
    install(build, f"PREFIX={prefix}")
    shutil.rmtree(build)
    return prefix


@pytest.fixture(params=["shared", "static"])
def compile_example(request, installed, tmp_path, monkeypatch):
    """Return a function that compiles a C example with the flags of pkg-config, and returns the
    program."""
    if shutil.which("pkg-config") is None:
        pytest.skip("no pkgconfig here")
    monkeypatch.setenv("PKG_CONFIG_PATH", str(installed / "lib" / "pkgconfig"))
    monkeypatch.delenv("COMMODEL_OVERLAY", raising=False)
    is_static = request.param == "static"
    flags = run_clean(["pkg-config", "--cflags", "overlay"]).stdout.split()
    libraries = run_clean(
        ["pkg-config", "--libs", *(["--static"] if is_static else []), "overlay"]
    ).stdout.split()
    if is_static:
        # Filters in shared objects call functions of the library in the program.
        libraries = [
            "-rdynamic",
            *(word.replace("-loverlay", "-l:liboverlay.a") for word in libraries),
        ]
    else:
        libraries.append(f"-Wl,-rpath,{installed / 'lib'}")

    def compile_one(name):
        program = tmp_path / name
        run_clean(
            ["cc", *FLAGS, *flags, EXAMPLES / f"{name}.c", "-o", program, *libraries, "-lpthread"]
        )
        linked = run_clean(["ldd", program]).stdout
        assert ("liboverlay" in linked) != is_static
        return program

    return compile_one


def test_all_is_installed_and_nothing_else(installed):
    assert list_files(installed) == INSTALLED_FILES


def test_examples_run_with_the_installed_library(compile_example, tmp_path):
    tree = tmp_path / "tree"
    tree.write_text(kary(4, 2))
    printed = run_clean([compile_example("uptime"), tree], cwd=tmp_path).stdout
    assert re.fullmatch(r"16 hosts, load average: [\d.]+, [\d.]+, [\d.]+\n", printed)
    tree.write_text(kary(2, 2))
    printed = run_clean([compile_example("threads"), tree]).stdout
    assert printed.startswith("4 names, the last back-end 3")
    assert compile_example("joining").exists()


def test_filters_of_a_user_run_with_the_installed_library(compile_example, installed, tmp_path):
    (tmp_path / "tree").write_text(kary(2, 2))
    filters = tmp_path / "live_filters.so"
    source = EXAMPLES / "live_filters.c"
    run_clean(
        ["cc", *FLAGS, "-I", installed / "include", "-shared", "-fPIC", source, "-o", filters]
    )
    assert (
        run_clean([compile_example("live"), tmp_path / "tree", filters]).stdout.splitlines()
        == LINES
    )


def test_the_static_library_has_only_the_functions_of_its_header(installed):
    listed = run_clean(
        ["nm", "--defined-only", "--extern-only", installed / "lib" / "liboverlay.a"]
    ).stdout
    names = {line.split()[-1] for line in listed.splitlines() if len(line.split()) == 3}
    header = (installed / "include" / "overlay.h").read_text()
    assert names
    assert all(name.startswith("overlay_") for name in names)
    assert set(re.findall(r"\b(overlay_\w+)\(", header)) - {"overlay_filter"} <= names


def test_a_package_is_staged_below_destdir(tmp_path):
    stage = tmp_path / "stage"
    install(tmp_path / "build", "PREFIX=/usr", "LIBDIR=/usr/lib64", f"DESTDIR={stage}")
    expected = {"usr/" + name.replace("lib/", "lib64/") for name in INSTALLED_FILES}
    assert list_files(stage) == expected
    description = (stage / "usr/lib64/pkgconfig/overlay.pc").read_text()
    assert str(stage) not in description
    assert "libdir=/usr/lib64\n" in description
    assert b"/usr/bin/overlay-node" in (stage / "usr/lib64/liboverlay.so").read_bytes()
    run_clean(
        [
            "make",
            "-s",
            "-C",
            MAKEFILE_FOLDER,
            "uninstall",
            "PREFIX=/usr",
            "LIBDIR=/usr/lib64",
            f"DESTDIR={stage}",
        ]
    )
    assert list_files(stage) == set()


def test_a_relative_prefix_is_refused(tmp_path):
    command = ["make", "-C", MAKEFILE_FOLDER, "install", f"BUILD={tmp_path}", "PREFIX=here"]
    refused = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "found PREFIX=here, wanted an absolute path" in refused.stderr


def test_the_version_is_that_of_commodel(installed):
    assert (
        f"Version: {commodel.__version__}\n" in (installed / "lib/pkgconfig/overlay.pc").read_text()
    )
    assert (
        f'"commodel {commodel.__version__}"'
        in (installed / "share/man/man1/overlay-node.1").read_text()
    )
