"""A GPU by OpenCL, on pocl, which lets a processor compute: its results are the processor's. What
cannot be used is told in one line."""

import json
import re
import subprocess

import pytest

from tests.kernels import gpus
from tests.kernels.gpus import Task, assert_product, assert_wave, compile_library
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

__all__ = ["partition"]


@pytest.mark.parametrize(
    ("rows", "columns", "block"), [(1, 1, 1), (7, 5, 3), (32, 32, 32), (129, 65, 31)]
)
def test_products_are_the_processor_s(gpu, rows, columns, block):
    assert_product(gpu, rows, columns, block)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 9), (9, 1), (67, 131)])
def test_waves_are_the_processor_s(gpu, rows, columns):
    assert_wave(gpu, rows, columns)


def test_the_next_input_is_copied_while_the_device_computes(gpu):
    """Each input is loaded before the previous product is awaited."""
    inputs = [[gpus.np.full((64, 32), k + 1.0), gpus.np.ones((32, 64))] for k in range(4)]
    task = Task(gpu, "gemm", 64, 64, 32)
    assert gpu.load(task.state, gpus.point_to(inputs[0])) == 0
    for following in [*inputs[1:], None]:
        assert gpu.start(task.state) == 0
        if following:
            assert gpu.load(task.state, gpus.point_to(following)) == 0
        assert gpu.finished(task.state, True, gpus.point_to([])) == 1
    assert (task.end() == 32 * (1 + 2 + 3 + 4)).all()


def test_a_rectangle_larger_than_the_device_is_refused(gpu):
    task = Task(gpu, "gemm", 1 << 20, 1 << 20, 1)
    assert not task.state
    assert task.problem.startswith("OpenCL: found 8796093022208 bytes of a rectangle, wanted")


def test_the_description_has_the_device_and_its_versions(gpu):
    description = gpus.describe(gpu)
    assert "GiB, driver" in description
    assert "OpenCL" in description
    assert "CLBlast" in description


@pytest.mark.parametrize("processes", ["alone", "two"])
def test_all_kernels_verify(gpu, oversubscribed, partition, monkeypatch, processes):
    """Two processes share the device. Each result is verified by its program."""
    monkeypatch.setenv("COMMODEL_ACCELERATOR", "opencl")
    ranks = partition(processes)
    for program, cases in (("summa", SUMMA_CASES), ("wave2d", WAVE_CASES), ("speed", SPEED_CASES)):
        if program == "speed" and ranks == 1:
            continue
        result = oversubscribed(ranks, program, cases, out=program)
        assert result.code == 0, result.err
        assert len(result.files()) == count(cases)


def test_six_processes_share_a_device_and_one_has_no_work(
    gpu, oversubscribed, partition, monkeypatch
):
    monkeypatch.setenv("COMMODEL_ACCELERATOR", "opencl")
    result = oversubscribed(partition("columns"), "summa", SUMMA_CASES)
    assert result.code == 0, result.err


def test_too_few_devices_are_one_line(gpu, real, partition, tmp_path, monkeypatch):
    partition("alone")
    (tmp_path / "cores").write_text("0 1 gpu:0\n0 1 gpu:1\n")
    options = ("--cores", tmp_path / "cores", "--max-samples", 10, "--sync", "barrier")
    options += ("--meta", tmp_path / "meta")
    monkeypatch.setenv("COMMODEL_ACCELERATOR", "opencl")
    result = real(2, "speed", f"{SPEED}\nwave,wave,8,8,8,0", *options)
    (line,) = result.errors
    assert line.startswith("error: rank 1 on ")
    assert ": found 1 device by OpenCL, wanted at least 2; processes share a GPU if their" in line
    monkeypatch.setenv("POCL_DEVICES", "basic basic")
    result = real(2, "speed", f"{SPEED}\nwave,wave,8,8,8,0", *options, out="both")
    assert result.code == 0, result.err
    told = json.loads((tmp_path / "meta").read_text())["computing"]
    assert re.fullmatch(r"ranks 0-1: opencl, .* GiB, driver .*, OpenCL .*, CLBlast", told)


def test_a_process_that_drives_a_gpu_does_not_take_a_processor_s_device(
    gpu, real, partition, tmp_path, monkeypatch
):
    """Only the name opencl allows it, which the line tells."""
    monkeypatch.delenv("COMMODEL_ACCELERATOR", raising=False)
    partition("alone")
    (tmp_path / "cores").write_text("0 1\n0 1 gpu:0\n")
    options = ("--cores", tmp_path / "cores", "--max-samples", 10, "--sync", "barrier")
    result = real(2, "speed", f"{SPEED}\nwave,wave,8,8,8,0", *options)
    (line,) = result.errors
    assert "; found 0 GPUs by OpenCL, wanted at least 1; COMMODEL_ACCELERATOR=opencl lets" in line


def test_processes_share_a_device_by_its_number(gpu, real, partition, tmp_path, monkeypatch):
    """One of them has no core of its own. Each result is verified by its program."""
    monkeypatch.setenv("COMMODEL_ACCELERATOR", "opencl")
    partition("alone")
    (tmp_path / "cores").write_text("0 1 gpu:0\n0 0 gpu:0\n")
    options = ("--cores", tmp_path / "cores", "--max-samples", 10, "--sync", "barrier")
    options += ("--meta", tmp_path / "meta")
    result = real(2, "speed", f"{SPEED}\nwave,wave,8,8,8,0", *options)
    assert result.code == 0, result.err
    meta = json.loads((tmp_path / "meta").read_text())
    assert meta["computing"].startswith("ranks 0-1: opencl, ")
    owned, left = meta["cores"]
    assert owned != left


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """fake(DEVICES=…, DOUBLES=…): put a libOpenCL of these devices in the place of the system's.
    Further macros are those of fake_opencl.c."""

    def make(**macros):
        source = tmp_path / "fake.c"
        definitions = "".join(f"#define {name} {value}\n" for name, value in macros.items())
        source.write_text(definitions + (HERE / "fake_opencl.c").read_text())
        compile_library(tmp_path, "libOpenCL.so.1", source)
        monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
        monkeypatch.setenv("COMMODEL_ACCELERATOR", "opencl")

    return make


@pytest.mark.parametrize(
    ("macros", "complaint"),
    [
        ({"DEVICES": 0, "DOUBLES": 0}, "found 0 devices by OpenCL, wanted at least 1"),
        (
            {"DEVICES": 1, "DOUBLES": 0},
            "OpenCL device 0, Plain, 2.0 GiB, driver 7, OpenCL 1.2: ",
        ),
        (
            {"DEVICES": 1, "DOUBLES": 63},
            "OpenCL: clCreateContext failed with code -5: the device has no resources left, or is lost",
        ),
        ({"DEVICES": 1, "DOUBLES": 63, "clFinish": "absent"}, "without the function clFinish"),
    ],
)
def test_devices_that_cannot_be_used_are_one_line(
    fake, real, partition, mpi_programs, macros, complaint
):
    fake(**macros)
    partition("alone")
    result = real(1, "wave2d", f"{WAVE}\na,p,8,1")
    (line,) = result.errors
    assert complaint in line
    assert not [name for name in result.files() if name.endswith(".csv")]
    if macros["DOUBLES"] == 0 and macros["DEVICES"]:
        assert line.endswith("found no double precision")


TWO_PLATFORMS = {"PLATFORMS": 2, "DEVICES": 2, "DOUBLES": 63}


@pytest.mark.parametrize(
    ("macros", "wanted"),
    [
        ({}, 4),
        ({"BUS(p, k)": "k"}, 2),  # two drivers of the same cards
        ({"BUS(p, k)": "2 * p + k"}, 4),
        ({"BUS(p, k)": "p + k"}, 3),  # one card has two drivers
        ({"UUID(p, k)": "k"}, 2),  # as of drivers that state no address
        ({"UUID(p, k)": "p + k"}, 3),
        ({"HANDLE(p, k)": "k"}, 2),  # the same driver twice
        ({"TYPE": "CL_DEVICE_TYPE_CPU"}, 2),  # two drivers of the processor
    ],
)
def test_a_device_of_two_drivers_is_counted_once(
    fake, mpi_programs, tmp_path, monkeypatch, macros, wanted
):
    fake(**TWO_PLATFORMS, **macros)
    listed = subprocess.run([mpi_programs / "devices"], capture_output=True, text=True, check=True)
    lines = [line for line in listed.stdout.splitlines() if line.startswith("opencl")]
    assert len(lines) == wanted, listed.stdout


def test_without_opencl_the_line_names_the_library(real, partition, tmp_path, monkeypatch):
    (tmp_path / "libOpenCL.so.1").write_text("no library")
    (tmp_path / "libOpenCL.so").write_text("no library")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.setenv("COMMODEL_ACCELERATOR", "opencl")
    partition("alone")
    result = real(1, "summa", f"{SUMMA}\na,p,512,all,0,1,1")
    (line,) = result.errors
    assert "libOpenCL.so.1" in line
