"""The harness of all programs: buffers, clocks, cores and descriptions.

Every program sends from one buffer and receives into another, on mapped pages, as its MPI calls
show. Clocks that jump during samples make no sample an hour long, and lose none for good. Processes
keep the cores that a file gives them, with as many threads; errors are one line. This needs two
CPUs. pure_parts.c is compiled with the harness and run without mpiexec. Every program describes
itself without MPI running.
"""

import json
import os
import re
import subprocess
from itertools import product
from pathlib import Path

import pytest

from commodel.platforms.tools import find_tool
from tests.starting import environment, mpiexec

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "workflow" / "native"
SIZE = 1 << 20
# program: cases, each with what ranks 0 and 1 do with long messages: send, receive or both
CASES = {
    "pingpong": {f"{SIZE}": ("both", "both")},
    "pairs": {f"1,{SIZE}": ("both", "both")},
    "nodepairs": {f"0,1,2,1,{SIZE},1": ("both", "both")},
    "chain": {f"1,{SIZE}": ("both", "both")},
    "prtt": {f"2,0,0,{SIZE}": ("both", "both")},
    "hrelation": {f"2,2,{SIZE}": ("both", "both")},
    "fan": {f"round,{how},1,{SIZE},{SIZE}": ("both", "both") for how in ("isend", "list", "put")},
    "post": {
        f"isend,1,{SIZE}": ("send", "receive"),
        f"list,1,{SIZE}": ("send", "receive"),
        f"put,1,{SIZE}": ("both", "receive"),  # the target's window is everybody's
        f"irecv,1,{SIZE}": ("receive", "send"),
    },
    "stream": {f"1,2,{SIZE}": ("receive", "send")},
    "overlap": {f"user,2,{SIZE}": ("receive", "send")},
    "player": {"schedule.csv,all": ("both", "both")},
    "library": {f"allreduce,{SIZE}": ("both", "both")},
}
HEADERS = {
    "pingpong": "bytes",
    "pairs": "pairs,bytes",
    "nodepairs": "one,two,nodes,trips,bytes,alone",
    "chain": "height,bytes",
    "prtt": "n,delay,late,bytes",
    "hrelation": "procs,h,bytes",
    "fan": "direction,how,n,bytes,answer",
    "post": "how,n,bytes",
    "stream": "senders,each,bytes",
    "overlap": "what,messages,bytes",
    "player": "schedule,finish",
    "library": "operation,bytes",
}
# of MPI; flood's ranks either send or receive
NO_MESSAGES = {"memcopy", "memory", "work", "flood"}
UNTIMED = {"verify"}  # nobody reads its times
FEW = ("--max-samples", 6, "--min-samples", 6, "--max-seconds", 0.2)


@pytest.fixture(scope="module")
def watched(relinked):
    """Return the folder of all programs, each linked with a check of its message buffers."""
    return relinked("message_buffers.c", CASES)


def test_no_program_is_forgotten():
    programs = {path.stem for path in NATIVE.glob("p*/*.c") if "\nint main" in path.read_text()}
    assert programs == CASES.keys() | NO_MESSAGES | UNTIMED


@pytest.mark.parametrize("program", CASES)
def test_messages_leave_from_one_buffer_and_arrive_in_another(
    program, watched, start, tmp_path, write_schedule
):
    write_schedule(
        tmp_path / "schedule.csv", [(0, "send", 0, 1, SIZE, ""), (1, "send", 1, 0, SIZE, "")]
    )
    for number, (case, parts) in enumerate(CASES[program].items()):
        cases = f"id,{HEADERS[program]}\na,{case}"
        result = start(2, watched, program, cases, *FEW, out=f"samples-{number}")
        assert result.code == 0, f"{program} {case}: {result.err}"
        counts = re.findall(r"^buffers: sent (\d+) received (\d+)$", result.err, re.MULTILINE)
        done = sorted(
            "both" if s != "0" != r else "send" if s != "0" else "receive" for s, r in counts
        )
        assert done == sorted(parts), f"{program} {case}: {result.err}"


CLOCK_CASES = "id,pairs,bytes\none,1,8\ntwo,1,1024\nthree,1,65536"
# So that a jump falls into a case; a busy machine may need 0.1 s for the first barrier.
LONG = ("--precision", 1e-6, "--max-samples", 10_000_000, "--max-seconds", 0.25)


@pytest.fixture(scope="session")
def jump_environment(tmp_path_factory):
    """jump_environment(file, after): return the environment in which clocks jump `after` seconds
    after the file appeared."""
    shim = tmp_path_factory.mktemp("shim") / "clock_jumps.so"
    command = ["cc", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared", "-o", str(shim)]
    subprocess.run([*command, str(HERE / "clock_jumps.c")], check=True)
    return lambda file, after: {
        "LD_PRELOAD": str(shim),
        "JUMP_FILE": str(file),
        "JUMP_AFTER": str(after),
    }


@pytest.fixture
def in_jumps(real, jump_environment, monkeypatch, tmp_path):
    def run(sync, after, **more):
        for name, value in (jump_environment(tmp_path / "samples/.now", after) | more).items():
            monkeypatch.setenv(name, value)
        return real(2, "pairs", CLOCK_CASES, "--sync", sync, *LONG)

    return run


def assert_plausible(result, sync):
    """Assert that no valid sample takes an hour. On a busy machine all windows may be missed, but
    no barrier."""
    assert result.code == 0, result.err
    seconds = [sample for case in ("one", "two", "three") for sample in result.seconds(case)]
    assert all(result.rows(case) for case in ("one", "two", "three"))
    assert seconds or sync == "window"
    assert all(0 <= sample < 60 for sample in seconds)


def test_the_shim_makes_the_wall_clock_jump(jump_environment):
    """Precondition of the other tests: the wall clock of a program with the shim jumps by about an
    hour."""
    look = (
        "import time; first = time.time(); print(max(abs(time.time() - first) for _ in range(5)) "
        "> 3000)"
    )
    done = subprocess.run(
        ["python3", "-c", look],
        env=jump_environment("/", 0),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "True\n"


@pytest.mark.parametrize("sync", ["window", "barrier"])
def test_a_wall_clock_that_jumps_does_not_matter(in_jumps, sync):
    assert_plausible(in_jumps(sync, 0), sync)


JUMPS = list(product((0.05, 0.15, 0.3), ("window", "barrier"), (0, 1)))
# Each pair of a moment, a way to synchronize and a rank.
QUICK_JUMPS = {(0.05, "window", 0), (0.05, "barrier", 1), (0.3, "window", 1), (0.3, "barrier", 0)}


@pytest.mark.parametrize(
    ("after", "sync", "rank"),
    [pytest.param(*jump, marks=() if jump in QUICK_JUMPS else pytest.mark.slow) for jump in JUMPS],
)
def test_a_rank_s_clock_that_jumps_ahead_costs_a_few_samples(in_jumps, rank, sync, after):
    assert_plausible(in_jumps(sync, after, JUMP_RANK=str(rank)), sync)


def test_the_first_samples_keep_to_the_time_where_clocks_are_known_badly(relinked, start):
    """With uncertain clocks, a window is many times as long as a pass. The time limit takes
    precedence over the minimum number of samples."""
    options = (
        "--sync",
        "window",
        "--min-samples",
        2000,
        "--max-samples",
        4000,
        "--max-seconds",
        0.5,
    )
    slow = relinked("slow_receives.c", ["library"])
    result = start(2, slow, "library", "id,operation,bytes\none,allreduce,8", *options)
    assert result.code == 0, result.err
    assert 1 <= len(result.rows("one")) <= 0.5 / 0.005


def test_clocks_are_not_compared_again_for_every_case(relinked, start):
    """Over a slow network, a comparison of clocks takes longer than many cases."""
    cases = "\n".join(["id,operation,bytes", *(f"c{number},bcast,8" for number in range(40))])
    counted = relinked("counted_scatters.c", ["library"])
    result = start(
        2, counted, "library", cases, "--sync", "barrier", "--min-samples", 5, "--max-samples", 5
    )
    assert result.code == 0, result.err
    assert 1 <= int(re.search(r"clocks compared (\d+) times", result.err)[1]) < 40


CORE_CASES = "id,bytes\na,8"
QUICK = ("--max-samples", 20, "--meta")
TWO = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU")


@pytest.fixture
def run_on_cores(real, tmp_path, load_json):
    """run_on_cores(text): run pingpong with this file of cores; return the result and the cores of
    its ranks."""

    def run(text):
        (tmp_path / "cores").write_text(text)
        result = real(
            2, "pingpong", CORE_CASES, *QUICK, tmp_path / "meta.json", "--cores", tmp_path / "cores"
        )
        return result, load_json(tmp_path / "meta.json")["cores"] if result.code == 0 else None

    return run


@TWO
def test_ranks_keep_their_cores(run_on_cores):
    first, second = (str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2])
    result, cores = run_on_cores("7 1\n7 1\n")
    assert result.code == 0, result.err
    assert cores[0] != cores[1]
    assert sorted(cores) == sorted([first, second])
    assert run_on_cores("0 1\n1 1\n")[1] == [cores[0], cores[0]]


@TWO
def test_a_rank_keeps_several(run_on_cores):
    result, cores = run_on_cores("0 2\n1 1\n")
    assert result.code == 0, result.err
    assert cores[1].isdigit()
    assert cores[0] != cores[1]
    assert set(cores[1]) < set(cores[0])


def test_without_a_cores_file_the_metadata_list_a_core_for_each_of_two_ranks(
    real, tmp_path, load_json
):
    real(2, "pingpong", CORE_CASES, *QUICK, tmp_path / "meta.json")
    assert len(load_json(tmp_path / "meta.json")["cores"]) == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("0 1\n0 60000\n", "rank 1 needs cores 1 to 60000 of its node, but only"),
        ("0 1\n", "cores:2: wanted the node of rank 1 and the number of its cores"),
        ("0 x\n0 1\n", "cores:1: wanted"),
        ("0 1\n0 0\n", "cores:2: wanted"),
        ("-1 1\n0 1\n", "cores:1: wanted"),
        ("0\n0 1\n", "cores:1: wanted"),
        ("0 1\n0 1 tpu\n", "cores:2: wanted"),
        ("0 1\n0 99999999999999999999\n", "cores:2: wanted"),
    ],
)
def test_wrong_cores_are_one_line(text, complaint, run_on_cores):
    result, _ = run_on_cores(text)
    assert result.code == 2
    (line,) = result.errors
    assert complaint in line
    assert not result.files()


def test_ranks_that_cannot_be_distinguished(mpi_programs, tmp_path):
    (tmp_path / "cores").write_text("0 1\n")
    (tmp_path / "cases").write_text(CORE_CASES + "\n")
    command = [mpi_programs / "pingpong", "--cases", "cases", "--out", "o", "--cores", "cores"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment())
    assert done.returncode == 2
    assert "error: the launcher sets no environment variable with the rank" in done.stderr


def test_threads_are_as_many_as_the_cores(mpi_programs, tmp_path):
    """A preloaded library prints OMP_NUM_THREADS, which OpenMP and BLAS read when they are loaded:
    first the value 7 of the environment, then 1."""
    (tmp_path / "read.c").write_text(
        "#define _GNU_SOURCE\n#include <stdio.h>\n#include <stdlib.h>\n"
        "__attribute__((constructor)) static void say(void) {\n"
        '  fprintf(stderr, "loaded with %s threads\\n", getenv("OMP_NUM_THREADS"));\n}\n'
    )
    library = tmp_path / "libread.so"
    subprocess.run(
        [find_tool("cc"), "-shared", "-fPIC", tmp_path / "read.c", "-o", library], check=True
    )
    (tmp_path / "cores").write_text("0 1\n1 1\n")
    (tmp_path / "cases").write_text(CORE_CASES + "\n")
    options = ["--cases", "cases", "--out", "o", "--cores", "cores", "--max-samples", "20"]
    command = [
        mpiexec(),
        "-n",
        "2",
        "env",
        f"LD_PRELOAD={library}",
        mpi_programs / "pingpong",
        *options,
    ]
    variables = environment() | {"OMP_NUM_THREADS": "7"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=variables)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("loaded with 7 threads") == 2
    assert done.stderr.count("loaded with 1 threads") == 2


PARTS = ("schedule", "deal", "arena")


def test_pure_parts(mpi_programs, tmp_path, write_schedule):
    write_schedule(
        tmp_path / "schedule.csv", [(0, "send", 1, 3, 8, ""), (2, "compute", 2, "", "", 0.5)]
    )
    objects = [
        *(mpi_programs / "obj/harness").glob("*.o"),
        *(mpi_programs / f"obj/player/{name}.o" for name in PARTS),
    ]
    folders = ["-I", NATIVE / "harness", "-I", NATIVE / "player"]
    warnings = ["-std=c11", "-Wall", "-Wextra", "-Werror"]
    program = tmp_path / "pure_parts"
    command = [
        find_tool("mpicc"),
        *warnings,
        *folders,
        HERE / "pure_parts.c",
        *objects,
        "-o",
        program,
    ]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    for address, cpus in (("0000:3b:00.0", "4-5,7\n"), ("0000:00:02.0", "0-7\n")):
        (tmp_path / address).mkdir()
        (tmp_path / address / "local_cpulist").write_text(cpus)
    command = [program, tmp_path / "schedule.csv", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


COLUMNS = {
    "pingpong": ["bytes"],
    "prtt": ["n", "delay", "late", "bytes"],
    "fan": ["direction", "how", "n", "bytes", "answer"],
    "chain": ["height", "bytes"],
    "pairs": ["pairs", "bytes"],
    "nodepairs": ["one", "two", "nodes", "trips", "bytes", "alone"],
    "stream": ["senders", "each", "bytes"],
    "post": ["how", "n", "bytes"],
    "hrelation": ["procs", "h", "bytes"],
    "memcopy": ["path", "bytes"],
    "memory": ["procs", "bytes"],
    "overlap": ["what", "messages", "bytes"],
    "flood": ["what", "senders", "packets", "bytes"],
    "work": ["bytes"],
    "player": ["schedule", "finish"],
    "library": ["operation", "bytes"],
    "verify": ["collective", "input", "communicator", "bytes"],
}
KINDS = {
    "player": "player",
    "library": "player",
    "verify": "player",
}


def assert_described(text, program, columns, kind):
    """Assert that a program describes itself wholly; return the description."""
    description = json.loads(text)
    assert set(description) == {
        "name",
        "title",
        "kind",
        "columns",
        "min_ranks",
        "counts",
        "streams",
        "compiler",
        "flags",
        "mpi",
    }
    assert description["name"] == program
    assert description["kind"] == kind
    assert [column["name"] for column in description["columns"]] == columns
    assert all(
        set(column) == {"name", "unit", "meaning"} and column["meaning"]
        for column in description["columns"]
    )
    assert description["min_ranks"] >= 1
    assert description["counts"] is (program == "flood")
    assert description["streams"] is (program in ("player", "library"))
    assert description["flags"]
    assert description["mpi"]
    return description


def contract(text, program):
    return assert_described(text, program, COLUMNS[program], KINDS.get(program, "probe"))


@pytest.mark.parametrize("program", COLUMNS)
def test_describe(mpi_programs, program):
    done = subprocess.run([mpi_programs / program, "--describe"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert contract(done.stdout, program)["compiler"].startswith(find_tool("mpicc"))


def test_describe_under_simgrid(simgrid_programs, tmp_path):
    (tmp_path / "hosts").write_text("n0\n")
    command = [
        find_tool("smpirun"),
        "-np",
        "1",
        "-platform",
        HERE / "loggp64.xml",
        "-hostfile",
        tmp_path / "hosts",
    ]
    for program in COLUMNS:
        done = subprocess.run(
            [*command, simgrid_programs / program, "--describe"], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert contract(done.stdout, program)["compiler"].startswith(find_tool("smpicc"))


def test_every_program_is_covered(mpi_programs):
    programs = {path.stem for path in NATIVE.glob("p*/*.c") if "\nint main" in path.read_text()}
    assert programs == set(COLUMNS)
    assert all(os.access(mpi_programs / name, os.X_OK) for name in programs)
