"""Compiler and starter belong to one MPI: of two that are here, neither is mixed with the other."""

import os

import pytest

from commodel import toolchain
from commodel.build import compiler_note, refuse_foreign, starter
from commodel.errors import UserError


@pytest.fixture
def mpi(tmp_path):
    """mpi(name, *programs): a folder with these, as an MPI is installed."""

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
        toolchain.find.cache_clear()
        monkeypatch.setenv("PATH", os.pathsep.join(map(str, folders)))

    yield put
    toolchain.find.cache_clear()


def test_the_starter_is_beside_the_compiler_whatever_comes_first_on_the_path(mpi, on_path):
    system, own = mpi("system", "mpirun", "srun"), mpi("own", "mpicc", "mpiexec")
    on_path(system, own)
    assert starter("mpi", ("mpiexec",)) == str(own / "mpiexec")
    assert starter("mpi", ("mpirun", "mpiexec")) == str(own / "mpiexec")
    assert starter("mpi", ("srun",)) == str(system / "srun")  # belongs to no MPI
    assert starter("mpi", ("no-such-starter",)) is None


def test_programs_of_another_mpi_are_refused(mpi, tmp_path):
    one, two = mpi("one", "mpicc", "mpirun"), mpi("two", "mpicc", "mpirun")
    bare = mpi("bare", "srun")
    command = tmp_path / "build" / "mpi" / "obj" / "command"
    command.parent.mkdir(parents=True)
    command.write_text(f"{one / 'mpicc'} -std=c11\n")
    for fits in (one / "mpirun", bare / "srun"):
        refuse_foreign(tmp_path, "mpi", str(fits))
    with pytest.raises(UserError, match=f"{one / 'mpicc'} compiled, wanted those of {two / 'mpicc'}"):
        refuse_foreign(tmp_path, "mpi", str(two / "mpirun"))


def test_the_note_is_new_when_the_compiler_is(mpi, on_path, tmp_path):
    """The workflow compiles anew what is older than it."""
    one, two = mpi("one", "mpicc"), mpi("two", "mpicc")
    on_path(one)
    note = compiler_note(tmp_path, "mpi")
    os.utime(note, (1, 1))
    assert compiler_note(tmp_path, "mpi").stat().st_mtime == 1
    on_path(two)
    assert compiler_note(tmp_path, "mpi").stat().st_mtime > 1
    assert note.read_text() == f"{two / 'mpicc'}\n"
