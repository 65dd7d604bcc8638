"""SUMMA and the wave equation: results verify on any partition, and wrong results are detected.
Invalid cases and partitions are refused in one line, without a sample. In simulated time, samples
equal those of the player, and nothing is computed."""

import json
import os
import subprocess
from math import prod
from pathlib import Path

import pytest

from commodel.patterns.build import build_schedule
from commodel.patterns.points import PlatformResources, make_point
from commodel.patterns.schedule_files import write_player_table
from commodel.platforms.tools import ROOT, find_tool
from tests.native.test_native_harness import assert_described

HERE = Path(__file__).parent
SOURCES = ROOT / "workflow/commodel_kernels/native"
HEADER = "rank,x,y,width,height"
PARTITIONS = {
    "alone": (1, "0,0,0,8,8"),
    "two": (2, "0,0,0,5,8\n1,5,0,3,8"),
    "even": (4, "0,0,0,4,4\n1,4,0,4,4\n2,0,4,4,4\n3,4,4,4,4"),
    # rank 5 has no work
    "columns": (6, "0,0,0,3,1\n4,0,1,3,7\n1,3,0,4,5\n2,3,5,4,3\n3,7,0,1,8\n5,0,0,0,0"),
    "pinwheel": (5, "0,0,0,5,3\n1,5,0,3,5\n2,3,5,5,3\n3,0,3,3,5\n4,3,3,2,2"),
}
COLUMNS = {
    "summa": ["partition", "bytes", "iteration", "overlapped", "barrier", "compute"],
    "wave2d": ["partition", "bytes", "compute"],
    "speed": ["kernel", "width", "height", "bytes", "watched"],
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
    """accelerator(broken): let the ranks compute with a shared object of the tests, which needs no
    accelerator."""

    def use(broken=0):
        path = tmp_path / "accelerator.so"
        flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", f"-DBROKEN={broken}"]
        include = ["-I", SOURCES / "programs"]
        subprocess.run(
            [find_tool("cc"), *flags, *include, HERE / "plain_accelerator.c", "-o", path],
            check=True,
        )
        monkeypatch.setenv("COMMODEL_ACCELERATOR", str(path))
        return path

    return use


def count(cases):
    return cases.count("\n")


@pytest.mark.parametrize(("name", "blas"), [("alone", "none"), ("alone", ""), ("columns", "none")])
def test_the_product_verifies(oversubscribed, partition, monkeypatch, name, blas):
    """Every sample is compared with A·B·v for a vector v; this small product is also compared
    element by element."""
    monkeypatch.setenv("COMMODEL_BLAS", blas)
    result = oversubscribed(partition(name), "summa", SUMMA_CASES)
    assert result.code == 0, result.err
    assert len(result.files()) == count(SUMMA_CASES)
    assert all(float(row["computation"]) > 0 for row in result.rows("all"))
    assert result.rows("messages")[0]["computation"] == ""


@pytest.mark.parametrize("name", ["alone", "columns", "pinwheel"])
def test_the_wave_verifies(oversubscribed, partition, name):
    result = oversubscribed(partition(name), "wave2d", WAVE_CASES)
    assert result.code == 0, result.err
    assert len(result.files()) == count(WAVE_CASES)


def test_two_real_ranks_over_many_steps(real, tmp_path):
    """There are more samples than steps in one verification, so the wave is restarted."""
    (tmp_path / "p").write_text(f"{HEADER}\n0,0,0,70,100\n1,70,0,30,100\n")
    options = (
        "--min-samples",
        50,
        "--max-samples",
        60,
        "--max-seconds",
        20,
        "--sync",
        "barrier",
        "--precision",
        0.001,
    )
    result = real(2, "wave2d", f"{WAVE}\nwave,p,8,1", *options, "--meta", tmp_path / "meta")
    assert result.code == 0, result.err
    assert len(result.rows("wave")) >= 20
    assert json.loads((tmp_path / "meta").read_text())["computing"].startswith("ranks 0-1: ")


def test_threads_change_no_bit_of_the_wave(real, partition, monkeypatch):
    partition("alone")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("COMMODEL_BLAS", "none")
    options = ("--min-samples", 20, "--max-samples", 20, "--sync", "barrier")
    assert not real(1, "wave2d", f"{WAVE}\nwave,p,8,1", *options, out="wave").errors
    assert not real(1, "summa", f"{SUMMA}\nall,p,512,all,0,1,1", *options, out="summa").errors


def test_an_accelerator_computes_the_same(oversubscribed, partition, accelerator):
    """The stencil of the accelerator is written differently, after the paper's equation."""
    accelerator()
    ranks = partition("two")
    for program, cases in (("summa", SUMMA_CASES), ("wave2d", WAVE_CASES), ("speed", SPEED_CASES)):
        result = oversubscribed(ranks, program, cases, out=program)
        assert result.code == 0, result.err
        assert len(result.files()) == count(cases)


def assert_unverified(result, *complaints):
    """Assert that the program failed without a sample, and that all its error lines are among the
    complaints."""
    assert result.code != 0
    assert result.errors, result.err
    assert all(any(word in line for word in complaints) for line in result.errors), result.err
    assert not [name for name in result.files() if name.endswith(".csv")]


def test_an_accelerator_that_fails(oversubscribed, partition, accelerator):
    accelerator(broken=7)
    partition("alone")
    assert_unverified(
        oversubscribed(1, "summa", f"{SUMMA}\nall,p,512,all,0,1,1"),
        "the accelerator failed with code 7",
    )


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU")
def test_only_ranks_with_a_gpu_in_the_cores_file_use_the_accelerator(
    real, partition, accelerator, tmp_path, monkeypatch
):
    """The accelerator always fails, so a rank that uses it fails."""
    accelerator(broken=7)
    partition("alone")

    def run(cores):
        (tmp_path / "cores").write_text(cores)
        options = ("--cores", tmp_path / "cores", "--max-samples", 10, "--sync", "barrier")
        return real(2, "speed", f"{SPEED}\nwave,wave,8,8,8,0", *options, out=f"o{len(cores)}")

    assert run("0 1\n0 1\n").code == 0
    failed = run("0 1\n0 1 gpu:0\n")
    assert failed.errors
    assert "the accelerator failed with code 7" in failed.errors[0]


def test_a_wrong_product_keeps_no_sample(oversubscribed, partition, tmp_path, monkeypatch):
    """The dgemm omits one element of C."""
    library = tmp_path / "wrong.so"
    subprocess.run(
        [find_tool("cc"), "-shared", "-fPIC", HERE / "wrong_blas.c", "-o", library], check=True
    )
    monkeypatch.setenv("COMMODEL_BLAS", str(library))
    ranks = partition("columns")
    assert_unverified(
        oversubscribed(ranks, "summa", f"{SUMMA}\nall,p,8192,all,0,1,1"),
        "the product does not verify: row",
    )
    assert_unverified(
        oversubscribed(2, "speed", f"{SPEED}\ngemm,gemm,5,3,392,1", out="speed"),
        "the product does not verify: C(",
    )


@pytest.mark.parametrize(
    ("program", "cases", "complaint"),
    [
        ("summa", f"{SUMMA}\nall,p,512,all,0,1,1", "the product does not verify"),
        ("summa", f"{SUMMA}\nall,p,512,all,0,1,0", "arrived with wrong content"),
        ("wave2d", f"{WAVE}\nwave,p,8,1", "the wave does not verify"),
        ("wave2d", f"{WAVE}\nwave,p,8,0", "arrived at rank"),
    ],
)
def test_messages_that_change_on_the_way_are_found(
    relinked, oversubscribed, partition, program, cases, complaint
):
    folder = relinked(HERE / "turned_messages.c", ["summa", "wave2d"])
    assert_unverified(oversubscribed(partition("even"), program, cases, build=folder), complaint)


def test_the_sanitizers_have_no_complaint(sanitized, oversubscribed, partition, monkeypatch):
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")  # MPI's own
    monkeypatch.setenv("COMMODEL_BLAS", "none")
    ranks = partition("columns")
    for program, cases in (("summa", SUMMA_CASES), ("wave2d", WAVE_CASES), ("speed", SPEED_CASES)):
        result = oversubscribed(ranks, program, cases, build=sanitized, out=program)
        assert result.code == 0, result.err


def test_invalid_accelerators_blas_libraries_and_thread_counts_are_refused(
    real, partition, accelerator, tmp_path, monkeypatch
):
    partition("two")

    def refused(complaint):
        result = real(2, "wave2d", f"{WAVE}\na,p,8,1")
        assert result.code != 0
        assert len(result.errors) == 1, result.err
        assert complaint in result.errors[0]

    path = accelerator()
    path.chmod(0o666)
    refused("found a file that is writable by all users")
    for value, complaint in (
        ("accelerator.so", "wanted cuda, opencl, or the absolute path"),
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


REFUSED = {
    "columns": ("summa", f"{SUMMA}\na,pinwheel,512,all,0,1,1", "rectangles in columns"),
    "iteration": (
        "summa",
        f"{SUMMA}\na,p,512,8,0,1,1",
        "column iteration: found '8', wanted all, or a whole number",
    ),
    "block": ("summa", f"{SUMMA}\na,p,100,all,0,1,1", "column bytes: found '100', wanted 8 b^2"),
    "switch": (
        "summa",
        f"{SUMMA}\na,p,512,all,2,1,1",
        "column overlapped: found '2', wanted 0 or 1",
    ),
    "too large": ("summa", f"{SUMMA}\na,p,1000000000,all,0,1,0", "one MPI message"),
    "cell": (
        "wave2d",
        f"{WAVE}\na,p,16,1",
        "column bytes: found '16', wanted 8: a cell is a double",
    ),
    "no file": ("wave2d", f"{WAVE}\na,absent,8,1", "cannot read the partition"),
    "gap": ("wave2d", f"{WAVE}\na,gap,8,1", "gap: found rectangles of 63 blocks in all, wanted 64"),
    "overlap": (
        "wave2d",
        f"{WAVE}\na,overlap,8,1",
        "overlap:3: found a rectangle that overlaps that of line 2",
    ),
    "ranks": ("wave2d", f"{WAVE}\na,pinwheel,8,1", "found '2 ranks', wanted at least 5 ranks"),
    "kernel": (
        "speed",
        f"{SPEED}\na,fft,8,8,8,0",
        "column kernel: found 'fft', wanted gemm or wave",
    ),
    "watched": ("speed", f"{SPEED}\na,wave,8,8,8,2", "column watched"),
    "slow": (
        "summa",
        f"{SUMMA}\na,slow,512,all,1,1,0",
        "slow:3: column speed: found '0', wanted a number above 0",
    ),
    "no speed": ("summa", f"{SUMMA}\na,short,512,all,1,1,0", "short:2: found 5 fields, wanted 6"),
    "nothing": ("speed", f"{SPEED}\na,wave,0,8,8,0", "column width: found '0'"),
}


FILES = {
    "p": "0,0,0,4,8\n1,4,0,4,8",
    "pinwheel": PARTITIONS["pinwheel"][1],
    "gap": "0,0,0,4,8\n1,4,0,4,7\n2,4,7,3,1",
    "overlap": "0,0,0,5,8\n1,4,0,4,8",
    "slow": f"{HEADER},speed\n0,0,0,4,8,1e3\n1,4,0,4,8,0",
    "short": f"{HEADER},speed\n0,0,0,4,8\n1,4,0,4,8,1",
}


@pytest.fixture
def files(tmp_path):
    for name, rows in FILES.items():
        (tmp_path / name).write_text(
            f"{rows}\n" if rows.startswith(HEADER) else f"{HEADER}\n{rows}\n"
        )


def test_refusals(real, at_once, files):
    def check(number, name):
        program, cases, complaint = REFUSED[name]
        result = real(2, program, cases, out=str(number))
        assert result.code != 0
        assert len(result.errors) == 1, result.err
        assert complaint in result.errors[0]
        assert result.files() == []

    at_once(check, REFUSED)


def test_a_simulated_sample_is_the_player_s(simulated, tmp_path, monkeypatch):
    """The sample of each iteration equals the player's within 20 ns, because flows are rounded. The
    sample of all iterations is their sum. With an overlapped product, the sample is the player's
    time minus the time of the product.
    """
    monkeypatch.chdir(tmp_path)
    ranks, rows = PARTITIONS["columns"]
    Path("p").write_text(f"{HEADER}\n{rows}\n")
    names = [f"summa:partition=p:iteration={k}" for k in range(8)] + [
        "summa:partition=p:iteration=4:overlapped=yes"
    ]
    products = {"q": 4e-6, "r": 40e-6}
    for path, seconds in products.items():
        areas = [prod(map(int, row.split(",")[3:])) for row in rows.split()]
        fast = (
            f"{row},{area / seconds or 1:.9g}\n"
            for row, area in zip(rows.split(), areas, strict=True)
        )
        Path(path).write_text(f"{HEADER},speed\n{''.join(fast)}")
        names.append(f"summa:partition={path}:iteration=4:overlapped=yes")
    player_cases, kernel_cases = ["id,schedule,finish"], [SUMMA, "all,p,8192,all,0,1,0"]
    for number, name in enumerate([*names, "wave2d:partition=p"]):
        size = 8 if name.startswith("wave") else 8192
        point = make_point(
            PlatformResources.unlimited(), {"operation": name, "algorithm": "paper", "bytes": size}
        )
        write_player_table(
            Path(f"{number}.play"), build_schedule(point), point.operation, point.bytes
        )
        player_cases.append(f"c{number},{number}.play,all")
    kernel_cases += [f"c{k},p,8192,{k},0,1,0" for k in range(8)] + [
        f"c{k},{p},8192,4,1,1,0" for k, p in enumerate("pqr", 8)
    ]
    player = simulated(ranks, "player", "\n".join(player_cases), out="played")
    kernel = simulated(ranks, "summa", "\n".join(kernel_cases), out="own")
    wave = simulated(ranks, "wave2d", f"{WAVE}\nc11,p,8,0", out="wave")
    assert not player.errors + kernel.errors + wave.errors
    for case in [f"c{k}" for k in range(9)]:
        assert kernel.median(case) == pytest.approx(player.median(case), abs=2e-8), case
    for case, seconds in zip(("c9", "c10"), products.values(), strict=True):
        assert kernel.median(case) == pytest.approx(player.median(case) - seconds, abs=2e-8), case
        assert float(kernel.rows(case)[0]["computation"]) == pytest.approx(seconds), case
    assert wave.median("c11") == pytest.approx(player.median("c11"), abs=2e-8)
    assert kernel.median("all") == pytest.approx(
        sum(kernel.median(f"c{k}") for k in range(8)), abs=8e-8
    )
    refused = simulated(ranks, "summa", f"{SUMMA}\na,p,8192,all,0,1,1", out="none")
    assert "in simulated time nothing is computed" in refused.errors[0]


@pytest.mark.parametrize("program", COLUMNS)
def test_describe(mpi_programs, program):
    done = subprocess.run([mpi_programs / program, "--describe"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert_described(done.stdout, program, COLUMNS[program], "kernel")


def test_no_program_is_forgotten():
    """The program devices measures nothing."""
    programs = {
        path.stem for path in SOURCES.glob("programs/*.c") if "\nint main" in path.read_text()
    }
    assert programs == {*COLUMNS, "devices"}
