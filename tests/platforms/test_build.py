"""Compiler and launcher belong to one MPI: with two installed MPIs, they are never mixed."""

import json
import os

import pytest

from commodel.errors import UserError
from commodel.platforms import tools as toolchain
from commodel.platforms.build import (
    build_toolchain,
    find_starter,
    note_compiler,
    refuse_mismatched_starter,
)


@pytest.fixture
def mpi(tmp_path):
    """Return mpi(name, *programs), which makes a folder with these programs, as an installed MPI
    has."""

    def make(name, *programs):
        folder = tmp_path / name
        folder.mkdir()
        for program in programs:
            (folder / program).write_text("#!/bin/sh\n")
            (folder / program).chmod(0o755)
        return folder

    return make


@pytest.fixture
def on_path(monkeypatch):
    def put(*folders):
        toolchain.find_tool.cache_clear()
        monkeypatch.setenv("PATH", os.pathsep.join(map(str, folders)))

    yield put
    toolchain.find_tool.cache_clear()


def test_the_starter_beside_the_compiler_is_preferred_to_earlier_path_entries(mpi, on_path):
    system, own = mpi("system", "mpirun", "srun"), mpi("own", "mpicc", "mpiexec")
    on_path(system, own)
    assert find_starter("mpi", ("mpiexec",)) == str(own / "mpiexec")
    assert find_starter("mpi", ("mpirun", "mpiexec")) == str(own / "mpiexec")
    assert find_starter("mpi", ("srun",)) == str(system / "srun")  # belongs to no MPI
    assert find_starter("mpi", ("no-such-starter",)) is None


HYDRA = "HYDRA build details:\\n    Version:    4.0.2"
OPENRTE, PRRTE, SRUN = "mpiexec (OpenRTE) 4.1.4", "mpirun (Open MPI) 5.0.11", "slurm-wlm 22.05.8"
MPICH, OPEN_4, OPEN_5 = (
    "MPICH Version:      5.0.2",
    "Open MPI v4.1.4, package: Debian",
    "Open MPI v5.0.11, package: user",
)


@pytest.mark.parametrize(
    ("library", "starter", "slurm_mpi", "refused"),
    [
        (MPICH, HYDRA, "", ""),  # of another version
        (OPEN_4, PRRTE, "", ""),
        (OPEN_5, OPENRTE, "", ""),
        (
            MPICH,
            OPENRTE,
            "",
            "have MPICH .* is of Open MPI: .* the mpicc and the mpiexec of one MPI first on PATH",
        ),
        (
            OPEN_4,
            HYDRA,
            "",
            r"have Open MPI \(Open MPI v4.1.4, package: Debian\), but .* is of MPICH",
        ),
        (MPICH, SRUN, "pmi2", ""),
        (MPICH, SRUN, "pmix", ""),  # it may have been built for that, as others may
        (OPEN_4, SRUN, "pmi2", ""),
        (
            OPEN_5,
            SRUN,
            "pmi2",
            "has no pmi2: .* write mpi: pmix in section slurm of the platform file",
        ),
        (OPEN_5, SRUN, "pmix", ""),
        ("MPI of a stranger", HYDRA, "", ""),
        (None, HYDRA, "", ""),  # programs that start only under their own starter
    ],
)
def test_a_starter_of_another_mpi_kind_is_refused(
    mpi, on_path, tmp_path, library, starter, slurm_mpi, refused
):
    """Another mpicc beside the starter, as a distribution installs beside srun, is accepted."""
    programs = mpi("build") / "mpi"
    programs.mkdir()
    text = f"""printf '%s' '{json.dumps({"mpi": library})}'""" if library else "exit 127"
    (programs / "player").write_text(f"#!/bin/sh\n{text}\n")
    (programs / "player").chmod(0o755)
    on_path(mpi("own", "mpicc"), os.environ["PATH"])
    path = mpi("system", "mpicc", "mpiexec") / "mpiexec"
    path.write_text(f"#!/bin/sh\nprintf '{starter}'\n")
    if refused:
        with pytest.raises(UserError, match=refused):
            refuse_mismatched_starter(tmp_path, str(path), slurm_mpi)
    else:
        refuse_mismatched_starter(tmp_path, str(path), slurm_mpi)


def test_a_mismatch_cured_by_a_rebuild_names_the_build_command(mpi, on_path, tmp_path):
    programs = mpi("build") / "mpi"
    programs.mkdir()
    (programs / "player").write_text(
        f"""#!/bin/sh\nprintf '%s' '{json.dumps({"mpi": OPEN_4})}'\n"""
    )
    (programs / "player").chmod(0o755)
    own = mpi("own", "mpicc", "mpiexec")
    (own / "mpiexec").write_text(f"#!/bin/sh\nprintf '{HYDRA}'\n")
    on_path(own, os.environ["PATH"])
    with pytest.raises(UserError, match=r"is of MPICH: .*; call commodel build mpi"):
        refuse_mismatched_starter(tmp_path, str(own / "mpiexec"))


def test_the_note_is_new_when_the_compiler_is(mpi, on_path, tmp_path):
    """The workflow compiles programs again that are older than the note."""
    first, second = mpi("one", "mpicc"), mpi("two", "mpicc")
    on_path(first)
    note = note_compiler(tmp_path, "mpi")
    os.utime(note, (1, 1))
    assert note_compiler(tmp_path, "mpi").stat().st_mtime == 1
    on_path(second)
    assert note_compiler(tmp_path, "mpi").stat().st_mtime > 1
    assert note.read_text().startswith(f"{second / 'mpicc'} ")


def test_without_a_compiler_only_existing_builds_can_be_used(mpi, on_path, tmp_path, monkeypatch):
    on_path(mpi("one", "mpicc"))
    note = note_compiler(tmp_path, "mpi")
    monkeypatch.setattr("commodel.platforms.build.find_tool", lambda program: None)
    assert note_compiler(tmp_path, "mpi") == note
    with pytest.raises(UserError, match="no mpicc found; see commodel doctor"):
        note_compiler(tmp_path / "another", "mpi")


@pytest.mark.parametrize("change", ["another MPI is preferred", "an upgrade in place"])
def test_the_note_is_new_when_another_compiler_is_under_the_same_path(
    mpi, on_path, tmp_path, change
):
    """Debian's alternatives replace a compiler under the same path."""
    real, path = mpi("real", "mpicc.one", "wrapper"), mpi("bin")
    (real / "mpicc.two").symlink_to("wrapper")
    (path / "mpicc").symlink_to(real / "mpicc.one")
    on_path(path)
    note = note_compiler(tmp_path, "mpi")
    os.utime(note, (1, 1))
    assert note_compiler(tmp_path, "mpi").stat().st_mtime == 1
    if change == "an upgrade in place":
        (real / "mpicc.one").write_text("#!/bin/sh\n# version 2\n")
    else:
        (path / "mpicc").unlink()
        (path / "mpicc").symlink_to(real / "mpicc.two")
    assert note_compiler(tmp_path, "mpi").stat().st_mtime > 1


def test_srun_is_the_one_on_the_path_also_where_another_lies_beside_the_compiler(mpi, on_path):
    slurm, system = mpi("slurm", "srun"), mpi("usr", "mpicc", "srun")
    on_path(slurm, system)
    assert find_starter("mpi", ("srun",)) == str(slurm / "srun")


def test_programs_are_rebuilt_if_the_compiler_at_the_same_path_changes(mpi, on_path, tmp_path):
    compilers, chosen = mpi("compilers", "one", "two"), mpi("chosen")
    for name in ("one", "two"):
        touch = 'while [ $# -gt 1 ]; do [ "$1" != -o ] || : >"$2"; shift; done'
        (compilers / name).write_text(f"#!/bin/sh\n# {name}\n{touch}\n")
    on_path(chosen, os.environ["PATH"])
    built = []
    for name in ("one", "one", "two"):
        (chosen / "mpicc").unlink(missing_ok=True)
        (chosen / "mpicc").symlink_to(compilers / name)
        built.append((build_toolchain(tmp_path, "mpi") / "player").stat().st_mtime_ns)
    assert built[0] == built[1] < built[2]


def test_a_build_removes_programs_and_objects_of_deleted_sources(mpi, on_path, tmp_path):
    """A program that is no longer among the sources is removed; the others stay. The compiler of
    this test only makes empty files."""
    compiler = mpi("own") / "mpicc"
    compiler.write_text(
        '#!/bin/sh\nwhile [ $# -gt 1 ]; do [ "$1" = -o ] && : > "$2"; shift; done\n'
    )
    compiler.chmod(0o755)
    on_path(compiler.parent, *os.environ["PATH"].split(os.pathsep))
    folder = build_toolchain(tmp_path, "mpi")
    for old in ("obj/probes/ring.o", "obj/probes/ring.d", "ring"):
        (folder / old).write_text("")
    build_toolchain(tmp_path, "mpi")
    assert not [path for path in folder.rglob("*") if path.stem == "ring"]
    assert (folder / "player").exists()
    assert (folder / "obj" / "harness" / "text.o").exists()


def test_a_compile_error_is_reported_in_one_line(mpi, on_path, tmp_path):
    compiler = mpi("own") / "mpicc"
    compiler.write_text(
        "#!/bin/sh\nprintf 'mpi.h:7: note: here\\nmpi.h:9: error: no such type\\n' >&2\nexit 1\n"
    )
    compiler.chmod(0o755)
    on_path(compiler.parent, *os.environ["PATH"].split(os.pathsep))
    with pytest.raises(
        UserError, match=r"do not compile with .*own/mpicc: mpi\.h:9: error: no such type"
    ) as refused:
        build_toolchain(tmp_path, "mpi")
    assert "\n" not in refused.value.message
