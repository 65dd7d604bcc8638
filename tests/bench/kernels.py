"""What the kernels' own programs lose beside what they call, both measured in one run: `make bench`.

The dgemm of `speed` is compared with the same function of the same library, called from here on matrices of the same
shapes in memory of the same kind: numpy asks the kernel for large pages, with which a matrix beyond the caches takes up
to a fifth less. Its wave is compared with the copying of memory by the probe memcopy, both in bytes that must cross the
memory's bus. Both sides take short turns, since the machine is not equally fast at all times, and what counts is the
least time of each: other load makes most samples longer, but not one of a few milliseconds that it leaves alone. Turns
go on until the least times of either side agree with each other, or it says that they do not.
"""

import csv
import ctypes
import json
import mmap
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
from tests.starting import environment, mpiexec

from commodel.platforms.build import build
from commodel.platforms.tools import ROOT

BLOCK = 32
SHAPES = ((4, 4), (16, 16), (32, 32), (64, 64))  # blocks
CELLS = (1024, 4096)
COPIED = 64 << 20  # bytes
TURNS, MOST_TURNS = 8, 60
AGREE, OF = 0.01, 3  # so many of the least times of a side differ by no more
SECONDS = 0.1  # of either side in a turn
OPTIONS = ["--max-seconds", str(SECONDS), "--min-samples", "6", "--sync", "barrier"]
ALONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def run(place: Path, program: str, columns: str, cases: dict[str, str]) -> dict[str, float]:
    """The best sample of each case."""
    (place / "cases.csv").write_text(f"{columns}\n" + "".join(f"{name},{case}\n" for name, case in cases.items()))
    out = Path(tempfile.mkdtemp(dir=place))
    command = [mpiexec(), "-n", "1", build(ROOT, "mpi") / program, "--cases", place / "cases.csv", "--out", out]
    settings = {"check": True, "capture_output": True, "env": environment() | ALONE}
    subprocess.run([*command, "--meta", place / "meta.json", *OPTIONS], **settings)
    files = {name: csv.DictReader((out / f"{name}.csv").read_text().splitlines()) for name in cases}
    return {name: min(float(row["seconds"]) for row in rows) for name, rows in files.items()}


def matrix(rows: int, columns: int) -> np.ndarray:
    """Of numbers, from the start of an ordinary page, as the programs have theirs."""
    pages = mmap.mmap(-1, 8 * rows * columns)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    made = np.frombuffer(pages).reshape(rows, columns)
    made[:] = np.random.default_rng(1).random((rows, columns)) - 0.5
    return made


def called(library: ctypes.CDLL, rows: int, columns: int) -> float:
    """Seconds of one dgemm as `speed` calls it, the best of as many as take a turn."""
    c, a, b = matrix(rows, columns), matrix(rows, BLOCK), matrix(BLOCK, columns)
    number, one = (lambda value: ctypes.byref(ctypes.c_int64(value))), ctypes.byref(ctypes.c_double(1))
    at = [matrix.ctypes.data_as(ctypes.c_void_p) for matrix in (b, a, c)]
    sizes = [number(value) for value in (columns, rows, BLOCK)]
    arguments = (b"N", b"N", *sizes, one, at[0], sizes[0], at[1], sizes[2], one, at[2], sizes[0])
    best, end = float("inf"), time.perf_counter() + SECONDS
    repeats = max(1, int(4e6 // (rows * columns * BLOCK)))
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(repeats):
            library.dgemm_(*arguments)
        best = min(best, (time.perf_counter() - start) / repeats)
    return best


def compare_dgemm(place: Path) -> None:
    cases = {f"g{w}": f"gemm,{w},{h},{8 * BLOCK**2},0" for w, h in SHAPES}
    run(place, "speed", "id,kernel,width,height,bytes,watched", {"g4": cases["g4"]})
    computing = json.loads((place / "meta.json").read_text())["computing"]
    print(computing)
    if "dgemm of " not in computing:
        return
    library = ctypes.CDLL(computing.partition("dgemm of ")[2].split(",")[0])
    own, alone = {name: [] for name in cases}, {name: [] for name in cases}
    for turn in range(MOST_TURNS):
        for (name, case), (w, h) in zip(cases.items(), SHAPES, strict=True):
            if turn >= TURNS and settled(own[name]) and settled(alone[name]):
                continue
            seconds = run(place, "speed", "id,kernel,width,height,bytes,watched", {name: case})
            own[name].append(seconds[name])
            alone[name].append(called(library, BLOCK * h, BLOCK * w))
    for name, (w, h) in zip(cases, SHAPES, strict=True):
        flops = 2 * BLOCK**3 * w * h
        ours, theirs = (flops / min(times[name]) * 1e-9 for times in (own, alone))
        print(
            f"dgemm of {BLOCK * h} x {BLOCK * w} x {BLOCK}: {ours:.2f} GFLOP/s in speed, {theirs:.2f} called alone, "
            f"{ours / theirs:.3f} times as fast ({noise(own[name], alone[name])})"
        )


def settled(times: Sequence[float]) -> bool:
    """Whether the least times agree: it is hardly chance then that none was less."""
    least = sorted(times)[:OF]
    return len(least) == OF and least[-1] <= (1 + AGREE) * least[0]


def noise(*sides: Sequence[float]) -> str:
    """How many turns there were, how much longer half of them took, and whether the least times are to be trusted."""
    longer = max(median(times) / min(times) - 1 for times in sides)
    text = f"{len(sides[0])} turns, half of them {100 * longer:.0f} % slower"
    return text if all(map(settled, sides)) else f"{text}; NOT TOLD, the machine is too busy"


def compare_wave(place: Path) -> None:
    cells, copy = {name: [] for name in CELLS}, []
    for turn in range(MOST_TURNS):
        if turn >= TURNS and all(map(settled, (copy, *cells.values()))):
            break
        copy.append(run(place, "memcopy", "id,path,bytes", {"copy": f"mtm,{COPIED}"})["copy"])
        for side in CELLS:
            seconds = run(place, "speed", "id,kernel,width,height,bytes,watched", {"w": f"wave,{side},{side},8,0"})
            cells[side].append(seconds["w"])
    moved = 2 * COPIED / min(copy)
    for side in CELLS:
        crossed = 3 * 8 * side**2 / min(cells[side])  # two arrays read, one written
        print(
            f"wave of {side} x {side} cells: {side**2 / min(cells[side]) * 1e-6:.0f} million cells/s, "
            f"{crossed * 1e-9:.1f} GB/s; memcopy {moved * 1e-9:.1f} GB/s, {moved / crossed:.2f} times as fast "
            f"({noise(copy, cells[side])})"
        )


if __name__ == "__main__":
    os.environ |= ALONE
    with tempfile.TemporaryDirectory() as folder:
        compare_dgemm(Path(folder))
        compare_wave(Path(folder))
