"""Overhead of the kernels' computation relative to the functions that it calls, in one process:
`make bench`.

The dgemm of `update_task` is compared with the same BLAS function, called from here on matrices of
the same shapes in the same kind of memory. NumPy requests huge pages: with these, dgemm on a matrix
larger than the caches takes up to 20 % less time. The wave is compared with a memory copy, both in
bytes that cross the memory bus.

Times are processor times. Both sides run in short turns in alternating order, so other load slows
down both alike. Each turn gives one ratio, and the confidence interval of the median ratio is
printed.
"""

import ctypes
import mmap
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from commodel.platforms.tools import NATIVE, ROOT, find_tool
from commodel.stats import compute_median_interval

KERNELS = ROOT / "workflow/commodel_kernels/native/programs"
BLOCK = 32
SHAPES = ((4, 4), (16, 16), (32, 32), (64, 64))  # blocks
CELLS = (1024, 4096)
COPIED_BYTES = 64 << 20
TURNS = 60
TURN_SECONDS = 0.004  # of each side in a turn; at least one call
SINGLE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
KERNEL_SOURCES = ("task", "gemm", "stencil", "device", "numbers")
HARNESS_SOURCES = ("buffers", "clock", "errors", "text")  # called by the kernels
FLAGS = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-fopenmp")


class Device(ctypes.Structure):
    """The structure `Device` of kernels.h."""

    _fields_ = (
        ("library", ctypes.c_void_p),
        ("blas", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("threads", ctypes.c_int),
        *((name, ctypes.c_void_p) for name in ("begin", "update", "end", "dgemm")),
    )


def build_kernels(folder: Path) -> ctypes.CDLL:
    """Compile the sources of the programs into a library."""
    sources = [KERNELS / f"{name}.c" for name in KERNEL_SOURCES]
    sources += [NATIVE / "harness" / f"{name}.c" for name in HARNESS_SOURCES]
    target = folder / "kernels.so"
    include = ["-I", NATIVE / "harness", "-I", KERNELS]
    subprocess.run(
        [find_tool("mpicc"), *FLAGS, *include, *sources, "-o", target, "-ldl", "-lm"], check=True
    )
    library = ctypes.CDLL(str(target))
    library.open_device.restype = Device
    library.describe_device.restype = ctypes.c_char_p
    library.begin_task.restype = ctypes.c_void_p
    return library


def make_matrix(rows: int, columns: int) -> np.ndarray:
    """Return a matrix of random numbers that begins on a page of normal size, as in the
    programs."""
    pages = mmap.mmap(-1, 8 * rows * columns)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    matrix = np.frombuffer(pages).reshape(rows, columns)
    matrix[:] = np.random.default_rng(1).random((rows, columns)) - 0.5
    return matrix


def get_address(array: np.ndarray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def measure_call(call: Callable[[], object], calls: int) -> float:
    """Return the mean processor seconds of a call."""
    start = time.thread_time()
    for _ in range(calls):
        call()
    return (time.thread_time() - start) / calls


def measure_in_turns(
    ours: Callable[[], object], other: Callable[[], object]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the seconds of a call of each side by turn."""
    sides = ours, other
    calls = [max(1, int(TURN_SECONDS / max(measure_call(side, 2), 1e-9))) for side in sides]
    times = np.empty((2, TURNS))
    for turn in range(TURNS):
        for side in (0, 1) if turn % 2 else (1, 0):
            times[side, turn] = measure_call(sides[side], calls[side])
    return times[0], times[1]


def format_speed_ratio(ratios: np.ndarray, reference: str) -> str:
    """Return the median of the task's speed over that of the reference, and its confidence
    interval."""
    median, low, high = compute_median_interval(ratios)
    return f"task / {reference}: speed ratio {median:.3f} (95 %: {low:.3f} to {high:.3f})"


def compare_dgemm(library: ctypes.CDLL, device: Device) -> None:
    if not device.blas:
        return
    blas = ctypes.CDLL(device.name.decode())
    number, one = (
        (lambda value: ctypes.byref(ctypes.c_int64(value))),
        ctypes.byref(ctypes.c_double(1)),
    )
    for w, h in SHAPES:
        rows, columns = BLOCK * h, BLOCK * w
        c, a, b = make_matrix(rows, columns), make_matrix(rows, BLOCK), make_matrix(BLOCK, columns)
        m, n, k = number(columns), number(rows), number(BLOCK)
        arguments = (
            b"N",
            b"N",
            m,
            n,
            k,
            one,
            get_address(b),
            m,
            get_address(a),
            k,
            one,
            get_address(c),
            m,
        )
        sizes = [ctypes.c_size_t(size) for size in (rows, columns, BLOCK)]
        task = ctypes.c_void_p(library.begin_task(ctypes.byref(device), b"gemm", *sizes, None))
        panels = (ctypes.c_void_p * 4)(get_address(a), get_address(b))
        ours, direct = measure_in_turns(
            lambda t=task, p=panels: library.update_task(t, p, None),
            lambda g=arguments: blas.dgemm_(*g),
        )
        library.end_task(task)
        flops = 2 * BLOCK * rows * columns
        print(
            f"dgemm of {rows} x {columns} x {BLOCK}: {flops / np.median(ours) * 1e-9:.2f} GFLOP/s in a task, "
            f"{flops / np.median(direct) * 1e-9:.2f} called directly, "
            f"{format_speed_ratio(direct / ours, 'direct call')}"
        )


def compare_wave(library: ctypes.CDLL, device: Device) -> None:
    source, target = make_matrix(COPIED_BYTES // 8, 1), make_matrix(COPIED_BYTES // 8, 1)
    for side in CELLS:
        sizes = [ctypes.c_size_t(size) for size in (side, side, 1)]
        task = ctypes.c_void_p(
            library.begin_task(
                ctypes.byref(device), b"wave", *sizes, get_address(make_matrix(side, side))
            )
        )
        halos, edges = np.zeros((4, side)), np.zeros((4, side))
        received, sent = ((ctypes.c_void_p * 4)(*map(get_address, rows)) for rows in (halos, edges))
        step = lambda t=task, i=received, o=sent: library.update_task(t, i, o)  # noqa: E731
        ours, copy = measure_in_turns(
            step, lambda: ctypes.memmove(get_address(target), get_address(source), COPIED_BYTES)
        )
        library.end_task(task)
        # two arrays read, one written
        crossed, moved = 3 * 8 * side**2 / ours, 2 * COPIED_BYTES / copy
        print(
            f"wave of {side} x {side} cells: {side**2 / np.median(ours) * 1e-6:.0f} million cells/s, "
            f"{np.median(crossed) * 1e-9:.1f} GB/s; copying {np.median(moved) * 1e-9:.1f} GB/s, "
            f"{format_speed_ratio(crossed / moved, 'copy')}"
        )


if __name__ == "__main__":
    os.environ |= SINGLE_THREAD
    with tempfile.TemporaryDirectory() as folder:
        kernels = build_kernels(Path(folder))
        opened = kernels.open_device()
        print(kernels.describe_device().decode())
        compare_dgemm(kernels, opened)
        compare_wave(kernels, opened)
