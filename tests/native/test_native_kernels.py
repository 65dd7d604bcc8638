"""SUMMA and the wave equation for real: what they compute verifies on any partition, and what is wrong is found."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from commodel.platforms.tools import NATIVE, find

HERE = Path(__file__).parent
CHECKED = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
HEADER = "rank,x,y,width,height"
PARTITIONS = {
    "alone": (1, "0,0,0,8,8"),
    "two": (2, "0,0,0,5,8\n1,5,0,3,8"),
    "even": (4, "0,0,0,4,4\n1,4,0,4,4\n2,0,4,4,4\n3,4,4,4,4"),
    "columns": (6, "0,0,0,3,1\n4,0,1,3,7\n1,3,0,4,5\n2,3,5,4,3\n3,7,0,1,8\n5,0,0,0,0"),  # rank 5 has no work
    "pinwheel": (5, "0,0,0,5,3\n1,5,0,3,5\n2,3,5,5,3\n3,0,3,3,5\n4,3,3,2,2"),
}
SUMMA = "id,partition,bytes,iteration,overlapped,barrier,compute"
WAVE = "id,partition,bytes,compute"
SPEED = "id,kernel,width,height,bytes,watched"
SUMMA_CASES = f"""{SUMMA}
    all,p,512,all,0,1,1
    odd,p,72,all,0,1,1
    overlapped,p,512,all,1,1,1
    loose,p,512,all,0,0,1
    both,p,512,all,1,0,1
    one,p,512,3,0,1,1
    last,p,8,7,1,1,1
    messages,p,100,all,0,1,0"""
WAVE_CASES = f"{WAVE}\nwave,p,8,1\nmessages,p,100,0\nnothing,p,0,0"
SPEED_CASES = f"{SPEED}\ngemm,gemm,5,3,392,1\nwave,wave,33,17,8,0"


@pytest.fixture
def partition(tmp_path):
    def write(name):
        ranks, rows = PARTITIONS[name]
        (tmp_path / "p").write_text(f"{HEADER}\n{rows}\n")
        return ranks

    return write


@pytest.fixture
def accelerator(tmp_path, monkeypatch):
    """accelerator(broken): our shared object without an accelerator is what the ranks compute with."""

    def use(broken=0):
        path = tmp_path / "accelerator.so"
        flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", f"-DBROKEN={broken}"]
        include = ["-I", NATIVE / "kernels"]
        subprocess.run([find("cc"), *flags, *include, HERE / "plain_accelerator.c", "-o", path], check=True)
        monkeypatch.setenv("COMMODEL_ACCELERATOR", str(path))
        return path

    return use


def count(cases):
    return cases.count("\n")


@pytest.mark.parametrize(("name", "blas"), [("alone", "none"), ("alone", ""), ("columns", "none")])
def test_the_product_verifies(crowded, partition, monkeypatch, name, blas):
    """Every sample is compared with A times B times a vector, and this small one with every element."""
    monkeypatch.setenv("COMMODEL_BLAS", blas)
    result = crowded(partition(name), "summa", SUMMA_CASES)
    assert result.code == 0, result.err
    assert len(result.files()) == count(SUMMA_CASES)
    assert all(float(row["computation"]) > 0 for row in result.rows("all"))
    assert result.rows("messages")[0]["computation"] == ""


@pytest.mark.parametrize("name", ["alone", "columns", "pinwheel"])
def test_the_wave_verifies(crowded, partition, name):
    result = crowded(partition(name), "wave2d", WAVE_CASES)
    assert result.code == 0, result.err
    assert len(result.files()) == count(WAVE_CASES)


def test_two_real_ranks_over_many_steps(real, tmp_path):
    """More samples than steps are verified at once: the wave starts anew, and goes on."""
    (tmp_path / "p").write_text(f"{HEADER}\n0,0,0,70,100\n1,70,0,30,100\n")
    options = ("--min-samples", 50, "--max-samples", 60, "--max-seconds", 20, "--sync", "barrier", "--precision", 0.001)
    result = real(2, "wave2d", f"{WAVE}\nwave,p,8,1", *options, "--meta", tmp_path / "meta")
    assert result.code == 0, result.err
    assert len(result.rows("wave")) >= 20
    assert json.loads((tmp_path / "meta").read_text())["computing"].startswith("rank 0: ")


def test_threads_change_no_bit_of_the_wave(real, partition, monkeypatch):
    partition("alone")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("COMMODEL_BLAS", "none")
    options = ("--min-samples", 20, "--max-samples", 20, "--sync", "barrier")
    assert not real(1, "wave2d", f"{WAVE}\nwave,p,8,1", *options, out="wave").errors
    assert not real(1, "summa", f"{SUMMA}\nall,p,512,all,0,1,1", *options, out="summa").errors


def test_an_accelerator_computes_the_same(crowded, partition, accelerator):
    """Its stencil is written in another way than ours, after the paper's equation."""
    accelerator()
    ranks = partition("two")
    for program, cases in (("summa", SUMMA_CASES), ("wave2d", WAVE_CASES), ("speed", SPEED_CASES)):
        result = crowded(ranks, program, cases, out=program)
        assert result.code == 0, result.err
        assert len(result.files()) == count(cases)


def unverified(result, *complaints):
    """One line, and no sample; every rank that sees it may say so, but only of its own part."""
    assert result.code != 0
    assert result.errors, result.err
    assert all(any(word in line for word in complaints) for line in result.errors), result.err
    assert not [name for name in result.files() if name.endswith(".csv")]


def test_an_accelerator_that_fails(crowded, partition, accelerator):
    accelerator(broken=7)
    partition("alone")
    unverified(crowded(1, "summa", f"{SUMMA}\nall,p,512,all,0,1,1"), "the accelerator failed with code 7")


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU")
def test_only_who_drives_an_accelerator_uses_it(real, partition, accelerator, tmp_path, monkeypatch):
    """One that always fails shows who does."""
    accelerator(broken=7)
    partition("alone")

    def run(cores):
        (tmp_path / "cores").write_text(cores)
        options = ("--cores", tmp_path / "cores", "--max-samples", 10, "--sync", "barrier")
        return real(2, "speed", f"{SPEED}\nwave,wave,8,8,8,0", *options, out=f"o{len(cores)}")

    assert run("0 1\n1 1\n").code == 0
    failed = run("0 1\n1 1 gpu\n")
    assert failed.errors
    assert "the accelerator failed with code 7" in failed.errors[0]
    monkeypatch.delenv("COMMODEL_ACCELERATOR")
    assert "wanted the shared object that computes for a process with a gpu" in run("0 1 gpu\n1 1\n").errors[0]


def test_a_wrong_product_keeps_no_sample(crowded, partition, tmp_path, monkeypatch):
    """A dgemm that leaves one element of C out."""
    library = tmp_path / "wrong.so"
    subprocess.run([find("cc"), "-shared", "-fPIC", HERE / "wrong_blas.c", "-o", library], check=True)
    monkeypatch.setenv("COMMODEL_BLAS", str(library))
    ranks = partition("columns")
    unverified(crowded(ranks, "summa", f"{SUMMA}\nall,p,8192,all,0,1,1"), "the product does not verify: row")
    unverified(crowded(2, "speed", f"{SPEED}\ngemm,gemm,5,3,392,1", out="speed"), "the product does not verify: C(")


@pytest.mark.parametrize(
    ("program", "cases", "complaint"),
    [
        ("summa", f"{SUMMA}\nall,p,512,all,0,1,1", "the product does not verify"),
        ("summa", f"{SUMMA}\nall,p,512,all,0,1,0", "arrived with wrong content"),
        ("wave2d", f"{WAVE}\nwave,p,8,1", "the wave does not verify"),
        ("wave2d", f"{WAVE}\nwave,p,8,0", "arrived at rank"),
    ],
)
def test_messages_that_change_on_the_way_are_found(relinked, crowded, partition, program, cases, complaint):
    folder = relinked("turned_messages.c", ["summa", "wave2d"])
    unverified(crowded(partition("even"), program, cases, build=folder), complaint)


@pytest.fixture(scope="module")
def checked(mpi_programs, tmp_path_factory):
    """The kernels with the sanitizers of addresses and of undefined behaviour."""
    folder = tmp_path_factory.mktemp("checked")
    how = [f"MPICC={find('mpicc')}", f"BUILD={folder}", f"CFLAGS={CHECKED}", "EXTRA=-fopenmp"]  # -O3 takes long
    subprocess.run(
        ["make", "-s", "-j2", "-C", NATIVE, *how, *(folder / name for name in ("summa", "wave2d", "speed"))], check=True
    )
    return folder


def test_the_sanitizers_have_no_complaint(checked, crowded, partition, monkeypatch):
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")  # MPI's own
    monkeypatch.setenv("COMMODEL_BLAS", "none")
    ranks = partition("columns")
    for program, cases in (("summa", SUMMA_CASES), ("wave2d", WAVE_CASES), ("speed", SPEED_CASES)):
        result = crowded(ranks, program, cases, build=checked, out=program)
        assert result.code == 0, result.err


def test_what_a_rank_cannot_compute_with(real, partition, accelerator, tmp_path, monkeypatch):
    partition("two")

    def refused(complaint):
        result = real(2, "wave2d", f"{WAVE}\na,p,8,1")
        assert result.code != 0
        assert len(result.errors) == 1, result.err
        assert complaint in result.errors[0]

    path = accelerator()
    path.chmod(0o666)
    refused("found a file that everybody may change")
    for value, complaint in (
        ("accelerator.so", "wanted the absolute path"),
        (str(tmp_path), "found no file"),
        (str(tmp_path / "absent.so"), "No such file"),
        (str(tmp_path / "p"), "p: "),
    ):
        monkeypatch.setenv("COMMODEL_ACCELERATOR", value)
        refused(complaint)
    monkeypatch.delenv("COMMODEL_ACCELERATOR")
    monkeypatch.setenv("COMMODEL_BLAS", "libm.so.6")
    refused("wanted none or a library with the function dgemm_")
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    refused("OMP_NUM_THREADS: found 'many'")
