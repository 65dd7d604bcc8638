"""What the kernels' own computing loses beside what it calls, both in one process and one run: `make bench`.

The dgemm that `update_task` makes is compared with the same function of the same library, called from here on matrices
of the same shapes in memory of the same kind: numpy asks the kernel for large pages, with which a matrix beyond the
caches takes up to a fifth less. Its wave is compared with the copying of memory, both in bytes that must cross the bus.

It is the processor's time that counts, not the clock's, and both sides take short turns one after the other, the first
being the last next time: whatever else runs here slows down both alike. Each turn is a ratio of its own, and the
interval of their median says how sure it is.
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

from commodel.platforms.tools import NATIVE, find_tool
from commodel.stats import compute_median_interval

BLOCK = 32
SHAPES = ((4, 4), (16, 16), (32, 32), (64, 64))  # blocks
CELLS = (1024, 4096)
COPIED = 64 << 20  # bytes
TURNS = 60
SECONDS = 0.004  # of either side in a turn, or one call
ALONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
COMPUTING = ("task", "gemm", "stencil", "device", "numbers")
BELOW = ("buffers", "clock", "errors", "text")  # of the harness, what these call
FLAGS = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-fopenmp")


class Device(ctypes.Structure):
    """As kernels.h has it."""

    _fields_ = (
        ("library", ctypes.c_void_p),
        ("blas", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("threads", ctypes.c_int),
        *((name, ctypes.c_void_p) for name in ("begin", "update", "end", "dgemm")),
    )


def kernels(folder: Path) -> ctypes.CDLL:
    """The sources of the programs as a library."""
    folders = dict.fromkeys(COMPUTING, "kernels") | dict.fromkeys(BELOW, "harness")
    sources = [NATIVE / place / f"{name}.c" for name, place in folders.items()]
    made = folder / "kernels.so"
    include = ["-I", NATIVE / "harness", "-I", NATIVE / "kernels"]
    subprocess.run([find_tool("mpicc"), *FLAGS, *include, *sources, "-o", made, "-ldl", "-lm"], check=True)
    library = ctypes.CDLL(str(made))
    library.open_device.restype = Device
    library.describe_device.restype = ctypes.c_char_p
    library.begin_task.restype = ctypes.c_void_p
    return library


def matrix(rows: int, columns: int) -> np.ndarray:
    """Of numbers, from the start of an ordinary page, as the programs have theirs."""
    pages = mmap.mmap(-1, 8 * rows * columns)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    made = np.frombuffer(pages).reshape(rows, columns)
    made[:] = np.random.default_rng(1).random((rows, columns)) - 0.5
    return made


def address(array: np.ndarray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def spent(call: Callable[[], object], calls: int) -> float:
    """Seconds of the processor that one call takes."""
    start = time.thread_time()
    for _ in range(calls):
        call()
    return (time.thread_time() - start) / calls


def turns(ours: Callable[[], object], other: Callable[[], object]) -> tuple[np.ndarray, np.ndarray]:
    """What a call of either takes, turn by turn."""
    sides = ours, other
    calls = [max(1, int(SECONDS / max(spent(side, 2), 1e-9))) for side in sides]
    times = np.empty((2, TURNS))
    for turn in range(TURNS):
        for side in (0, 1) if turn % 2 else (1, 0):
            times[side, turn] = spent(sides[side], calls[side])
    return times[0], times[1]


def ratio(ratios: np.ndarray) -> str:
    return "{:.3f} times as fast (95 %: {:.3f} to {:.3f})".format(*compute_median_interval(ratios))


def compare_dgemm(library: ctypes.CDLL, device: Device) -> None:
    if not device.blas:
        return
    blas = ctypes.CDLL(device.name.decode())
    number, one = (lambda value: ctypes.byref(ctypes.c_int64(value))), ctypes.byref(ctypes.c_double(1))
    for w, h in SHAPES:
        rows, columns = BLOCK * h, BLOCK * w
        c, a, b = matrix(rows, columns), matrix(rows, BLOCK), matrix(BLOCK, columns)
        m, n, k = number(columns), number(rows), number(BLOCK)
        arguments = (b"N", b"N", m, n, k, one, address(b), m, address(a), k, one, address(c), m)
        sizes = [ctypes.c_size_t(size) for size in (rows, columns, BLOCK)]
        task = ctypes.c_void_p(library.begin_task(ctypes.byref(device), b"gemm", *sizes, None))
        panels = (ctypes.c_void_p * 4)(address(a), address(b))
        ours, alone = turns(
            lambda t=task, p=panels: library.update_task(t, p, None), lambda g=arguments: blas.dgemm_(*g)
        )
        library.end_task(task)
        flops = 2 * BLOCK * rows * columns
        print(
            f"dgemm of {rows} x {columns} x {BLOCK}: {flops / np.median(ours) * 1e-9:.2f} GFLOP/s in a task, "
            f"{flops / np.median(alone) * 1e-9:.2f} called alone, {ratio(alone / ours)}"
        )


def compare_wave(library: ctypes.CDLL, device: Device) -> None:
    source, target = matrix(COPIED // 8, 1), matrix(COPIED // 8, 1)
    for side in CELLS:
        sizes = [ctypes.c_size_t(size) for size in (side, side, 1)]
        task = ctypes.c_void_p(library.begin_task(ctypes.byref(device), b"wave", *sizes, address(matrix(side, side))))
        edges, own = np.zeros((4, side)), np.zeros((4, side))
        beyond, out = ((ctypes.c_void_p * 4)(*map(address, rows)) for rows in (edges, own))
        step = lambda t=task, i=beyond, o=out: library.update_task(t, i, o)  # noqa: E731
        ours, copy = turns(step, lambda: ctypes.memmove(address(target), address(source), COPIED))
        library.end_task(task)
        crossed, moved = 3 * 8 * side**2 / ours, 2 * COPIED / copy  # two arrays read, one written
        print(
            f"wave of {side} x {side} cells: {side**2 / np.median(ours) * 1e-6:.0f} million cells/s, "
            f"{np.median(crossed) * 1e-9:.1f} GB/s; copying {np.median(moved) * 1e-9:.1f} GB/s, "
            f"{ratio(moved / crossed)}"
        )


if __name__ == "__main__":
    os.environ |= ALONE
    with tempfile.TemporaryDirectory() as folder:
        known = kernels(Path(folder))
        driven = known.open_device()
        print(known.describe_device().decode())
        compare_dgemm(known, driven)
        compare_wave(known, driven)
