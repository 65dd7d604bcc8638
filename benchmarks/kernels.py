"""Overhead of the kernels' computation relative to the functions that it calls, in one process:
`make bench`.

The dgemm of `update_task` is compared with the same BLAS function, called from here on matrices of
the same shapes in the same kind of memory. NumPy requests huge pages: with these, dgemm on a matrix
larger than the caches takes up to 20 % less time. The wave is compared with a memory copy, both in
bytes that cross the memory bus. On an OpenCL device, such as pocl's, the product with its transfers
is compared with CLBlast called alone, without transfers.

Times are processor times, also of pocl's threads; those of a GPU are elapsed. Both sides run in short turns in
alternating order, so other load slows down both alike. Each turn gives one ratio, and the
confidence interval of the median ratio is printed.

At last, the time that the harness adds to an iteration of SUMMA is that of an iteration with
messages of 8 bytes and without computation: the difference of the shortest of several long and
short starts.
"""

import ctypes
import mmap
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.measuring import time_task
from commodel.platforms.build import build_toolchain, get_program_folder
from commodel.platforms.tools import NATIVE, ROOT, find_tool
from commodel.stats import compute_median_interval

KERNELS = ROOT / "workflow/commodel_kernels/native/programs"
BLOCK = 32
SHAPES = ((4, 4), (16, 16), (32, 32), (64, 64))  # blocks
CELLS = (1024, 4096)
COPIED_BYTES = 64 << 20
TURNS = 60
DEVICE_SIDE = 512  # of C on an OpenCL device, in doubles
DEVICE_BLOCKS = (32, 64, 128, 256, 512)
DEVICE_TURNS = 15
ITERATION_SECONDS = 0.005  # of an iteration of which the harness may add 2 %
EMPTY_ITERATIONS, EMPTY_SAMPLES, EMPTY_STARTS = 64, (20, 220), 5
TURN_SECONDS = 0.004  # of each side in a turn; at least one call
Clock = Callable[[], float]
SINGLE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
KERNEL_SOURCES = ("task", "gemm", "stencil", "device", "numbers", "gpu", "opencl", "cuda")
HARNESS_SOURCES = ("buffers", "clock", "errors", "text")  # called by the kernels
FLAGS = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-fopenmp")


class Device(ctypes.Structure):
    """The structure `Device` of kernels.h."""

    _fields_ = (
        ("gpu", ctypes.c_void_p),
        ("gpu_kind", ctypes.c_char_p),
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


def measure_call(call: Callable[[], object], calls: int, clock: Clock = time.thread_time) -> float:
    """Return the mean seconds of a call."""
    start = clock()
    for _ in range(calls):
        call()
    return (clock() - start) / calls


def measure_in_turns(
    ours: Callable[[], object],
    other: Callable[[], object],
    turns: int = TURNS,
    clock: Clock = time.thread_time,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the seconds of a call of each side by turn."""
    sides = ours, other
    calls = [max(1, int(TURN_SECONDS / max(measure_call(side, 2, clock), 1e-9))) for side in sides]
    times = np.empty((2, turns))
    for turn in range(turns):
        for side in (0, 1) if turn % 2 else (1, 0):
            times[side, turn] = measure_call(sides[side], calls[side], clock)
    return times[0], times[1]


def format_speed_ratio(ratios: np.ndarray, reference: str) -> str:
    """Return the median of the task's speed over that of the reference, and its confidence
    interval."""
    median, low, high = compute_median_interval(ratios)
    return f"task / {reference}: speed ratio {median:.3f} (95 %: {low:.3f} to {high:.3f})"


def compare_dgemm(library: ctypes.CDLL, device: Device) -> None:
    if not device.blas:
        return
    dgemm = ctypes.CFUNCTYPE(None, *13 * [ctypes.c_void_p], *2 * [ctypes.c_size_t])(device.dgemm)
    number, one = (
        (lambda value: ctypes.byref(ctypes.c_int64(value))),
        ctypes.byref(ctypes.c_double(1)),
    )
    shapes = [(BLOCK * h, BLOCK * w, BLOCK) for w, h in SHAPES]
    shapes += [(DEVICE_SIDE, DEVICE_SIDE, block) for block in DEVICE_BLOCKS if block != BLOCK]
    for rows, columns, block in shapes:
        c, a, b = make_matrix(rows, columns), make_matrix(rows, block), make_matrix(block, columns)
        m, n, k = number(columns), number(rows), number(block)
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
            1,
            1,
        )
        sizes = [ctypes.c_size_t(size) for size in (rows, columns, block)]
        task = ctypes.c_void_p(library.begin_task(ctypes.byref(device), b"gemm", *sizes, None))
        panels = (ctypes.c_void_p * 4)(get_address(a), get_address(b))
        ours, direct = measure_in_turns(
            lambda t=task, p=panels: library.update_task(t, p, None),
            lambda g=arguments: dgemm(*g),
        )
        library.end_task(task)
        flops = 2 * block * rows * columns
        print(
            f"dgemm of {rows} x {columns} x {block}: {flops / np.median(ours) * 1e-9:.2f} GFLOP/s in a task, "
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


class ClblastAlone:
    """CLBlast's dgemm on buffers of the first OpenCL device, called without any transfer."""

    def __init__(self) -> None:
        self.opencl = ctypes.CDLL("libOpenCL.so.1")
        self.clblast = ctypes.CDLL("libclblast.so.1")
        for name in ("clCreateContext", "clCreateCommandQueue", "clCreateBuffer"):
            getattr(self.opencl, name).restype = ctypes.c_void_p
        self.device = self._find_device()
        device = ctypes.byref(self.device)
        self.context = ctypes.c_void_p(
            self.opencl.clCreateContext(None, 1, device, None, None, None)
        )
        self.queue = ctypes.c_void_p(
            self.opencl.clCreateCommandQueue(self.context, self.device, ctypes.c_uint64(0), None)
        )

    def _find_device(self) -> ctypes.c_void_p:
        platforms, device, count = (ctypes.c_void_p * 16)(), ctypes.c_void_p(), ctypes.c_uint()
        self.opencl.clGetPlatformIDs(16, platforms, ctypes.byref(count))
        for kind in (4, 0xFFFFFFFF):  # a GPU, or else any device
            for platform in platforms[: count.value]:
                arguments = (ctypes.c_void_p(platform), ctypes.c_uint64(kind), 1)
                if self.opencl.clGetDeviceIDs(*arguments, ctypes.byref(device), None) == 0:
                    return device
        raise SystemExit("found no OpenCL device")

    def make_buffer(self, rows: int, columns: int) -> ctypes.c_void_p:
        matrix = make_matrix(rows, columns)
        copied = ctypes.c_uint64(1 | 32)  # CL_MEM_READ_WRITE, CL_MEM_COPY_HOST_PTR
        size = ctypes.c_size_t(matrix.nbytes)
        buffer = self.opencl.clCreateBuffer(self.context, copied, size, get_address(matrix), None)
        return ctypes.c_void_p(buffer)

    def make_product(self, side: int, block: int) -> Callable[[], object]:
        """Return a function that adds the product of two panels to a matrix, and waits."""
        a, b, c = (
            self.make_buffer(*shape) for shape in ((side, block), (block, side), (side, side))
        )
        size, zero, one = ctypes.c_size_t, ctypes.c_size_t(0), ctypes.c_double(1)
        arguments = (
            *(101, 111, 111, size(side), size(side), size(block), one),
            *(a, zero, size(block), b, zero, size(side), one, c, zero, size(side)),
            ctypes.byref(self.queue),
            None,
        )

        def multiply() -> None:
            assert self.clblast.CLBlastDgemm(*arguments) == 0
            self.opencl.clFinish(self.queue)

        return multiply


def compare_clblast(library: ctypes.CDLL) -> None:
    """Compare products on an OpenCL device with CLBlast's."""
    try:
        alone = ClblastAlone()
    except OSError as error:
        print(f"no product on an OpenCL device: {error}")
        return
    os.environ["COMMODEL_ACCELERATOR"] = "opencl"
    device = library.open_device()
    is_processor = "(no GPU)" in print_device(library)
    clock = time.process_time if is_processor else time.perf_counter
    for block in DEVICE_BLOCKS:
        sizes = [ctypes.c_size_t(size) for size in (DEVICE_SIDE, DEVICE_SIDE, block)]
        task = ctypes.c_void_p(library.begin_task(ctypes.byref(device), b"gemm", *sizes, None))
        a, b = make_matrix(DEVICE_SIDE, block), make_matrix(block, DEVICE_SIDE)
        panels = (ctypes.c_void_p * 4)(get_address(a), get_address(b))
        ours, direct = measure_in_turns(
            lambda t=task, p=panels: library.update_task(t, p, None),
            alone.make_product(DEVICE_SIDE, block),
            DEVICE_TURNS,
            clock,
        )
        library.end_task(task)
        flops = 2 * block * DEVICE_SIDE**2
        print(
            f"dgemm of {DEVICE_SIDE} x {DEVICE_SIDE} x {block}: {flops / np.median(ours) * 1e-9:.2f} GFLOP/s in a "
            f"task, {flops / np.median(direct) * 1e-9:.2f} by CLBlast alone, "
            f"{format_speed_ratio(direct / ours, 'CLBlast')}"
        )


def measure_harness(folder: Path) -> None:
    """Print the time that the harness adds to an iteration of two ranks."""
    half = EMPTY_ITERATIONS // 2
    rows = [f"0,0,0,{half},{EMPTY_ITERATIONS}", f"1,{half},0,{half},{EMPTY_ITERATIONS}"]
    (folder / "p").write_text("\n".join(["rank,x,y,width,height", *rows, ""]))
    columns = "id,partition,bytes,iteration,overlapped,barrier,compute"
    (folder / "cases").write_text(f"{columns}\nempty,p,8,all,0,1,0\n")
    build_toolchain(ROOT, "mpi")
    program = get_program_folder(ROOT, "mpi") / "summa"
    seconds = []
    for samples in EMPTY_SAMPLES:
        options = f"--warmup 1 --min-samples {samples} --max-samples {samples} --max-seconds 1e6"
        command = [find_tool("mpiexec"), "-n", "2", program, "--cases", "cases"]
        spent = []
        for start in range(EMPTY_STARTS):
            output = ["--out", f"out-{samples}-{start}", "--sync", "barrier", *options.split()]
            run = partial(subprocess.run, [*command, *output], cwd=folder, check=True)
            spent.append(time_task(run)[0])
        seconds.append(min(spent))
    iterations = (EMPTY_SAMPLES[1] - EMPTY_SAMPLES[0]) * EMPTY_ITERATIONS
    added = (seconds[1] - seconds[0]) / iterations
    print(
        f"the harness adds {added * 1e6:.1f} us to an iteration of two ranks, with messages of 8 bytes: "
        f"{added / ITERATION_SECONDS:.2%} of {ITERATION_SECONDS * 1e3:.0f} ms"
    )


def print_device(library: ctypes.CDLL) -> str:
    """Print what computes, and return the text."""
    text = ctypes.create_string_buffer(640)
    library.describe_device(text)
    described = text.value.decode()
    print(described)
    return described


if __name__ == "__main__":
    os.environ |= SINGLE_THREAD
    with tempfile.TemporaryDirectory() as folder:
        kernels = build_kernels(Path(folder))
        opened = kernels.open_device()
        print_device(kernels)
        compare_dgemm(kernels, opened)
        compare_wave(kernels, opened)
        measure_harness(Path(folder))
        compare_clblast(kernels)
