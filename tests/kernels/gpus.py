"""The interface of gpu.h in Python, so that tests call a GPU without MPI, and compare it with
numpy."""

import ctypes
import subprocess
from ctypes import c_bool, c_char, c_int, c_void_p
from pathlib import Path

import numpy as np

from commodel.platforms.tools import ROOT, find_tool

SOURCES = ROOT / "workflow/commodel_kernels/native/programs"
TEXT = 400
PIECES = ctypes.c_void_p * 4
MEMBERS = {
    "task_bytes": ctypes.c_size_t,
    "prepare": c_void_p,
    "copy_input": c_void_p,
    "free_task": c_void_p,
    "start": ctypes.CFUNCTYPE(c_int, c_void_p),
    "finished": ctypes.CFUNCTYPE(c_int, c_void_p, c_bool, PIECES),
    "end": ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p),
    "describe_libraries": ctypes.CFUNCTYPE(None, c_void_p, c_void_p),
    "close": ctypes.CFUNCTYPE(None, c_void_p),
}
OPEN = 0


class Gpu(ctypes.Structure):
    _fields_ = (
        ("description", c_char * TEXT),
        ("address", c_char * 32),
        ("problem", c_char * TEXT),
        *MEMBERS.items(),
    )
    library: ctypes.CDLL  # that has opened it

    def load(self, task, inputs):
        """Begin to copy the input of an iteration; return the code."""
        return self.library.load_gpu_input(task, inputs)


def compile_library(folder: Path, name: str, *sources: Path) -> Path:
    """Compile C files to a shared object."""
    path = folder / name
    flags = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-O2", "-Wall", "-Wextra", "-Werror"]
    command = [find_tool("cc"), *flags, "-shared", "-fPIC", f"-I{SOURCES}", *sources, "-o", path]
    subprocess.run([*command, "-ldl"], check=True)
    return path


def point_to(arrays):
    return PIECES(*(array.ctypes.data for array in arrays))


class Task:
    """A rectangle on a GPU."""

    def __init__(self, gpu, kernel, rows, columns, block=1, initial=None):
        self.gpu, self.shape = gpu, (rows, columns)
        start = initial.ctypes.data if initial is not None else None
        sizes = [ctypes.c_size_t(size) for size in (rows, columns, block)]
        address = c_void_p(ctypes.addressof(gpu))
        begin = gpu.library.begin_gpu_task
        begin.restype = c_void_p
        self.state = c_void_p(begin(address, kernel.encode(), *sizes, c_void_p(start)))

    @property
    def problem(self):
        return self.gpu.problem.decode()

    def update(self, inputs, outputs=()):
        """Do one iteration; return whether it is done."""
        inputs, outputs = point_to(inputs), point_to(outputs)
        codes = self.gpu.load(self.state, inputs), self.gpu.start(self.state)
        return codes == (0, 0) and self.gpu.finished(self.state, True, outputs) == 1

    def end(self):
        result = np.empty(self.shape)
        code = self.gpu.end(self.state, result.ctypes.data)
        return result if code == 0 else None


def open_gpu(library, kind, number=0, *arguments):
    """Return the GPU and the problem, of which one is None."""
    gpu, problem = ctypes.POINTER(Gpu)(), ctypes.create_string_buffer(TEXT)
    loaded = ctypes.CDLL(str(library))
    open_it = getattr(loaded, f"open_{kind}_gpu")
    code = open_it(number, *arguments, ctypes.byref(gpu), problem)
    if code != OPEN:
        return None, problem.value.decode()
    opened = gpu.contents
    opened.library = loaded
    return opened, None


def describe(gpu):
    """Return what a GPU and its libraries are."""
    libraries = ctypes.create_string_buffer(TEXT)
    gpu.describe_libraries(ctypes.addressof(gpu), ctypes.addressof(libraries))
    return f"{gpu.description.decode()}, {libraries.value.decode()}"


def step_wave(old, current, adjacent):
    """One step of the wave equation, with the adjacent cells in the order north, east, south,
    west."""
    north, east, south, west = adjacent
    above, below = np.vstack([north, current[:-1]]), np.vstack([current[1:], south])
    left = np.hstack([west[:, None], current[:, :-1]])
    right = np.hstack([current[:, 1:], east[:, None]])
    return current - old + 0.25 * above + 0.25 * below + 0.25 * left + 0.25 * right


def edges_of(cells):
    return [cells[0], cells[:, -1], cells[-1], cells[:, 0]]


def assert_product(gpu, rows, columns, block, iterations=3):
    random = np.random.default_rng(rows + columns + block)
    task, wanted = Task(gpu, "gemm", rows, columns, block), np.zeros((rows, columns))
    assert task.state, task.problem
    for _ in range(iterations):
        a, b = random.random((rows, block)), random.random((block, columns))
        assert task.update([a, b]), task.problem
        wanted += a @ b
    np.testing.assert_allclose(task.end(), wanted, rtol=1e-12)


def assert_wave(gpu, rows, columns, steps=5):
    random = np.random.default_rng(rows + columns)
    current = random.random((rows, columns))
    old = current.copy()
    task = Task(gpu, "wave", rows, columns, initial=current)
    assert task.state, task.problem
    for _ in range(steps):
        adjacent = [random.random(length) for length in (columns, rows, columns, rows)]
        found = [np.empty_like(piece) for piece in adjacent]
        assert task.update(adjacent, found), task.problem
        old, current = current, step_wave(old, current, adjacent)
        for own, wanted in zip(found, edges_of(current), strict=True):
            np.testing.assert_allclose(own, wanted, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(task.end(), current, rtol=1e-12, atol=1e-14)
