"""A GPU by CUDA. Without one, a fake driver in plain C does the work of each stream as late as it
may, so that a missing wait gives a wrong result. NVRTC compiles the kernel where it is installed."""

import ctypes
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from commodel import doctor
from commodel.files.tables import COMPARISON, read_table
from tests.kernels import gpus
from tests.kernels.gpus import compile_library
from tests.kernels.test_native import (
    HERE,
    SPEED,
    SPEED_CASES,
    SUMMA,
    SUMMA_CASES,
    WAVE,
    WAVE_CASES,
    count,
    partition,
)
from tests.once import made_once

__all__ = ["partition"]

# of gpus.py, in a process of its own, since a library is found once in a process
CALLS = """
import sys
from pathlib import Path
from tests.kernels.gpus import Task, assert_product, assert_wave, describe, open_gpu
gpu, problem = open_gpu(Path(sys.argv[1]), "cuda", 0)
assert gpu, problem
for shape in [(1, 1, 1), (7, 5, 3), (64, 33, 16)]:
    assert_product(gpu, *shape)
for shape in [(1, 1), (1, 9), (9, 1), (67, 131)]:
    assert_wave(gpu, *shape)
task = Task(gpu, "wave", 262141, 1)
assert not task.state
assert task.problem == "CUDA: found 262141 rows of cells, wanted at most 262140"
print(describe(gpu), gpu.address.decode())
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the library of cuda.c, and the fake libraries."""

    def make(folder):
        sources = (gpus.SOURCES / "cuda.c", gpus.SOURCES / "gpu.c")
        compile_library(folder, "cuda.so", *sources)
        path = compile_library(folder, "libcuda.so.1", HERE / "fake_cuda.c")
        for name in ("libcublas.so.12", "libnvrtc.so.12"):
            (folder / name).symlink_to(path)

    return made_once(tmp_path_factory, "cuda", make)


@pytest.fixture
def fake(folder, tmp_path, monkeypatch):
    """Let programs find one device, by libraries that are fake."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    monkeypatch.setenv("FAKE_DEVICES", "1")
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "calls"))
    monkeypatch.setenv("COMMODEL_ACCELERATOR", "cuda")
    return tmp_path / "calls"


def test_results_are_the_processor_s_to_1e_12(fake, folder):
    done = subprocess.run(
        [sys.executable, "-c", CALLS, folder / "cuda.so"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    described = done.stdout.split()
    assert " ".join(described[:4]) == "Fake 0, 80.0 GiB,"
    assert "CUDA 12.4, compute capability 9.0, cuBLAS 12.11.10, NVRTC 12.4" in done.stdout
    assert described[-1] == "0000:a0:00.0"


@pytest.mark.parametrize("processes", ["alone", "two"])
def test_all_kernels_verify(fake, oversubscribed, partition, processes):
    ranks = partition(processes)
    for program, cases in (("summa", SUMMA_CASES), ("wave2d", WAVE_CASES), ("speed", SPEED_CASES)):
        if program == "speed" and ranks == 1:
            continue
        result = oversubscribed(ranks, program, cases, out=program)
        assert result.code == 0, result.err
        assert len(result.files()) == count(cases)


def test_the_sanitizers_have_no_complaint(sanitized, fake, oversubscribed, partition, monkeypatch):
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")  # MPI's own
    ranks = partition("two")
    for program, cases in (("summa", SUMMA_CASES), ("wave2d", WAVE_CASES), ("speed", SPEED_CASES)):
        result = oversubscribed(ranks, program, cases, build=sanitized, out=program)
        assert result.code == 0, result.err


def test_memory_is_freed_and_the_input_is_awaited(fake, oversubscribed, partition):
    partition("alone")
    result = oversubscribed(1, "summa", f"{SUMMA}\na,p,512,3,0,1,1")
    assert result.code == 0, result.err
    calls = fake.read_text().split()
    for made, freed in (
        ("cuMemAlloc", "cuMemFree"),
        ("cuMemHostAlloc", "cuMemFreeHost"),
        ("cuStreamCreate", "cuStreamDestroy"),
        ("cuEventCreate", "cuEventDestroy"),
        ("cublasCreate", "cublasDestroy"),
    ):
        assert calls.count(made) == calls.count(freed) > 0, made
    first = calls.index("cublasDgemm")
    assert calls[first - 3 : first + 3] == [
        "cuMemcpyHtoDAsync",
        "cuEventRecord",
        "cuStreamWaitEvent",
        "cublasDgemm",
        "cuEventRecord",
        "cuEventSynchronize",
    ]


def test_with_overlap_the_next_input_is_copied_during_a_product(fake, oversubscribed, partition):
    """The copy is begun before the product is finished, and nothing waits for the device except in
    the last iteration."""
    partition("alone")
    result = oversubscribed(1, "summa", f"{SUMMA}\na,p,512,all,1,1,1")
    assert result.code == 0, result.err
    calls = fake.read_text().split()
    first, second = [place for place, call in enumerate(calls) if call == "cublasDgemm"][:2]
    between = calls[first + 1 : second]
    assert between.index("cuMemcpyHtoDAsync") < between.index("cuEventQuery")
    assert "cuEventSynchronize" not in between


@pytest.mark.parametrize(
    ("fails", "complaint"),
    [
        ("cuInit:1", "CUDA: cuInit failed with code 999: fake error"),
        ("cuMemAlloc:1", "CUDA: cuMemAlloc failed with code 2: out of memory"),
        ("cuMemHostAlloc:2", "CUDA: cuMemHostAlloc failed with code 2: out of memory"),
        (
            "nvrtcCompileProgram:1",
            "for --gpu-architecture=sm_90: NVRTC_ERROR_OUT_OF_MEMORY line 1 ?",
        ),
        ("cuLaunchKernel:2", "CUDA: cuLaunchKernel failed with code 2: out of memory"),
        ("cuEventSynchronize:2", "CUDA: cuEventSynchronize failed with code 2: out of memory"),
    ],
)
def test_a_call_that_fails_is_one_line(
    fake, oversubscribed, partition, monkeypatch, fails, complaint
):
    """Also in the middle of the steps, as of a card that is lost. Then no sample is kept."""
    monkeypatch.setenv("FAKE_FAILS", fails)
    partition("alone")
    result = oversubscribed(1, "wave2d", f"{WAVE}\na,p,8,1")
    (line,) = result.errors
    assert complaint in line
    assert not [name for name in result.files() if name.endswith(".csv")]


def test_cublas_that_fails_is_one_line(fake, oversubscribed, partition, monkeypatch):
    monkeypatch.setenv("FAKE_FAILS", "cublasDgemm:4")
    partition("alone")
    result = oversubscribed(1, "summa", f"{SUMMA}\na,p,512,all,0,1,1")
    (line,) = result.errors
    assert line.endswith(": cuBLAS: cublasDgemm failed with code 2: see cublas_api.h")


def test_a_process_that_drives_a_gpu_takes_cuda_s_own(fake, real, partition, tmp_path, monkeypatch):
    """Without COMMODEL_ACCELERATOR. Too few GPUs are one line."""
    monkeypatch.delenv("COMMODEL_ACCELERATOR")
    partition("alone")
    (tmp_path / "cores").write_text("0 1 gpu:0\n0 1 gpu:1\n")
    options = ("--cores", tmp_path / "cores", "--max-samples", 10, "--sync", "barrier")
    result = real(2, "speed", f"{SPEED}\nwave,wave,8,8,8,0", *options)
    (line,) = result.errors
    assert line.startswith("error: rank 1 on ")
    assert line.endswith(
        ": found 1 GPU by CUDA, wanted at least 2; processes share a GPU if their layout says gpu:0"
    )
    monkeypatch.setenv("FAKE_DEVICES", "2")
    result = real(2, "speed", f"{SPEED}\nwave,wave,8,8,8,0", *options, out="two")
    assert result.code == 0, result.err
    monkeypatch.delenv("FAKE_DEVICES")
    result = real(2, "speed", f"{SPEED}\nwave,wave,8,8,8,0", *options, out="none")
    assert result.errors[0].startswith("error: found 0 GPUs by CUDA, wanted at least 1; ")


FULL = """
title: a card that is full
platform: local
models: [hockney]
measure: {sync: barrier, precision: 50%, min_samples: 6, max_samples: 6, seconds: 0.2, passes: 1, warmup: 1}
probe_bytes: [1, 64KiB]
library: false
matrix:
  - axes:
      operation: summa
      algorithm: paper
      layout: "processes:params/l.csv"
      parameters: {n: [4, 32, 6], grid: 1x2}
      bytes: 8KiB
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU")
def test_a_card_that_is_full_costs_one_point_and_the_rest_goes_on(fake, project, monkeypatch):
    monkeypatch.setenv("FAKE_MEMORY", str(1 << 20))
    monkeypatch.delenv("COMMODEL_ACCELERATOR")
    (project.folder / "params/l.csv").write_text("rank,node,cores,device\n0,0,1,cpu\n1,0,1,gpu\n")
    project.experiment("full", FULL)
    results = project.compare("full")
    (path,) = results.glob("raw/*/*.unmeasured.json")
    marker = json.loads(path.read_text())
    assert marker["status"] == "crash"
    assert "CUDA: cuMemAlloc failed with code 2: out of memory" in marker["reason"]
    rows = read_table(results / "comparison.csv", COMPARISON)
    measured = rows[rows["measured"] > 0]
    assert set(measured["operation"]) == {"summa:n=4:grid=1x2", "summa:n=6:grid=1x2"}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU")
def test_two_processes_share_a_card_if_their_layout_says_so(fake, project, monkeypatch):
    """With the device gpu they would need a second one, which is told."""
    monkeypatch.delenv("COMMODEL_ACCELERATOR")
    layout = project.folder / "params/l.csv"
    layout.write_text("rank,node,cores,device\n0,0,1,gpu\n1,0,1,gpu\n")
    options = (
        "--layout processes:params/l.csv --sizes 4:9 --seconds 0.1 --most 2 --quiet --out s.yaml"
    )
    with pytest.raises(
        AssertionError, match=r"at sizes up to 4 for node/gpu: .* wanted at least 2; "
    ):
        project.verb("measure", "speeds", "gemm", *options.split())
    layout.write_text("rank,node,cores,device\n0,0,1,gpu:0\n1,0,1,gpu:0\n")
    said = project.verb("measure", "speeds", "gemm", *options.split())
    assert "of 1 kind of processes" in said
    assert "node/gpu/2:" in (project.folder / "s.yaml").read_text()
    project.experiment("shared", FULL.replace("[4, 32, 6]", "4"))
    (path,) = project.compare("shared").glob("raw/*/summa-2r-*.json")
    assert json.loads(path.read_text())["computing"].startswith("ranks 0-1: cuda, Fake 0, ")


def test_doctor_lists_the_devices(fake, mpi_programs, monkeypatch):
    monkeypatch.setenv("FAKE_DEVICES", "2")
    notes = [note for note in doctor().notes if "GPU" in note]
    assert notes[0].startswith("GPU cuda 0: Fake 0, 80.0 GiB, driver ")
    assert notes[1].startswith("GPU cuda 1: Fake 1, 80.0 GiB, driver ")
    assert notes[1].endswith(", cuBLAS 12.11.10, NVRTC 12.4.")
    assert "opencl" in notes[2]
    monkeypatch.delenv("FAKE_DEVICES")
    assert "No GPU by cuda: found 0 GPUs by CUDA, wanted at least 1." in doctor().notes


def find_nvrtc():
    """Return the folder of libnvrtc of the package nvidia-cuda-nvrtc-cu12, or None."""
    spec = find_spec("nvidia")
    folders = spec.submodule_search_locations if spec else []
    paths = [Path(folder) / "cuda_nvrtc/lib" for folder in folders or []]
    return next((path for path in paths if path.exists()), None)


@pytest.mark.skipif(
    find_nvrtc() is None, reason="the package nvidia-cuda-nvrtc-cu12 (85 MiB) is not installed"
)
@pytest.mark.parametrize("capability", [(7, 0), (8, 0), (9, 0)])
def test_nvrtc_compiles_the_wave(folder, capability):
    """It needs no GPU."""
    program = (
        "import sys; from tests.kernels.test_cuda import compile_wave;"
        "sys.stdout.buffer.write(compile_wave(*sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, folder / "cuda.so", *map(str, capability)]
    variables = {**os.environ, "LD_LIBRARY_PATH": str(find_nvrtc())}
    done = subprocess.run(command, capture_output=True, env=variables)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.startswith(b"\x7fELF")
    assert b"\0.text.wave_step\0" in done.stdout  # as C names it


def compile_wave(library, major, minor):
    """Return the binary of the wave's kernel."""
    compile_it = ctypes.CDLL(library).compile_cuda_wave
    compile_it.restype = ctypes.c_void_p
    length, problem = ctypes.c_size_t(), ctypes.create_string_buffer(gpus.TEXT)
    binary = compile_it(int(major), int(minor), ctypes.byref(length), problem)
    assert binary, problem.value
    return ctypes.string_at(binary, length.value)
