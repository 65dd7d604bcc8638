"""What is too much is refused by arithmetic: in a process that has little memory and little time, with one line."""

import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

MEMORY, SECONDS = 2 << 30, 60  # of address space and of processor time
PARAMS = "params/published/tan/cab-mrnet.yaml"
HOCKNEY = "predict --family hockney --set alpha=1us --set beta=1ns"
AXES = {
    "points beyond counting": "ranks: {from: 2, to: 100001, step: 1}, bytes: {from: 1, to: 100000, step: 1}",
    "a range without end": "ranks: 2, bytes: {from: 1, to: 1000000000000000, step: 1}",
    "a range beyond any unit": "ranks: 2, bytes: {from: 1, to: 10e18, step: 1}",
    "a range of tiny factors": "ranks: 2, bytes: {from: 1, to: 1GiB, factor: 1.0000001}",
    "nodes times ranks a node": "nodes: 16777216, ranks_per_node: 16777216, bytes: 1",
    "ranks beyond counting": "ranks: 1000000000, bytes: 1",
    "a large number in a text": 'ranks: "9999999999999999999999999", bytes: 1',
}
TREES = ("kary:2^60", "kary:2^24", "flat:1000000000000", "flat:99999999", "balanced:9999x9999", "chain:99999999",
         "binomial:24", "knomial:2@99999999", "generic:9999:9999", "groups:9999999x99", "postal:1@99999999",
         "random:99999999@1", "optimal:1us,0,1us@99999999")  # fmt: skip
LAYOUTS = ("block:99999999999", "random:1@99999999999999999999", "kinds:9999core@99999999", "block-cyclic:9x0")
EXPRESSIONS = ("ranks ** ranks ** ranks", "'a' * 999999999", "(" * 400, "not " * 120 + "1", "9" * 499, "-" * 499 + "1")
OPTIONS = {
    "ranks to a million millions": f"{HOCKNEY} --operation bcast --ranks 1:1000000000000:+1 --bytes 1",
    "ranks times sizes": f"{HOCKNEY} --operation bcast --ranks 2:100000:+1 --bytes 1:100000:+1",
    "everyone with everyone": f"{HOCKNEY} --operation alltoall --algorithm linear --ranks 1048576 --bytes 1",
    "segments of a byte": f"{HOCKNEY} --operation bcast --algorithm chain:1 --ranks 9 --bytes 1TiB",
    "advice on all": f"advise --params {PARAMS} --operation reduce --leaves 2:90000:+1 --bytes 1:90000:+1",
    "a long list": f"{HOCKNEY} --operation bcast --ranks {','.join(['2:60000:+1'] * 3)} --bytes 1",
}


def limited(*arguments: str, folder: Path) -> subprocess.CompletedProcess:
    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    # Threads of libraries would take address space, each a stack.
    return subprocess.run(
        [sys.executable, "-m", "commodel", *arguments],
        cwd=folder,
        preexec_fn=limits,
        capture_output=True,
        text=True,
        env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
    )


def one_line(done: subprocess.CompletedProcess) -> str:
    assert done.returncode == 2, (done.args, done.stderr[-2000:])
    assert done.stderr.count("\n") == 1, done.stderr
    assert "fits into memory" not in done.stderr, "found by running out of memory, not by arithmetic"
    return done.stderr


@pytest.fixture
def planned(tmp_path):
    """The one line that an experiment is refused with."""
    (tmp_path / "params/platforms").mkdir(parents=True)
    (tmp_path / "params/platforms/big.yaml").write_text("launcher: slurm\nnodes: 1048576\ncores: 16\n")

    def plan(text: str, name: str = "e") -> str:
        (tmp_path / f"{name}.yaml").write_text("platform: big\nfamilies: [hockney]\n" + text)
        return one_line(limited("plan", f"./{name}.yaml", folder=tmp_path))

    return plan


def all_refused(planned, matrices: dict[str, str]) -> None:
    with ThreadPoolExecutor(2) as pool:
        names = [f"e{number}" for number in range(len(matrices))]
        for name, line in zip(names, pool.map(planned, matrices.values(), names), strict=True):
            assert line.startswith(f"commodel: {name}.yaml:"), line


def test_axes(planned):
    axes = [f"matrix:\n- axes: {{operation: bcast, algorithm: linear, {axis}}}\n" for axis in AXES.values()]
    all_refused(planned, dict(zip(AXES, axes, strict=True)))


def test_blocks_that_add_up(planned):
    axes = (
        "operation: bcast, algorithm: linear, ranks: {from: 2, to: 999, step: 1}, bytes: {from: 1, to: 1900, step: 1}"
    )
    block = f"- axes: {{{axes}}}\n"
    assert "combinations, wanted at most" in planned("matrix:\n" + block * 2)
    assert "wanted not so many values" in planned("matrix:\n" + "- include: [{operation: barrier}]\n" * 1500)
    exclude = "  exclude: [" + "{where: ranks > 5}," * 90 + "]\n"
    assert "tests by exclude" in planned("matrix:\n" + block + exclude)


def test_aliases_of_aliases(planned):
    levels = "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(12))
    assert "aliases expanded" in planned(f"a0: &a0 [x]\n{levels}matrix: *a12\n")


def test_trees_layouts_and_expressions(planned):
    matrices = {spec: f'matrix:\n- axes: {{operation: reduce, topology: "{spec}", bytes: 1}}\n' for spec in TREES}
    for spec in LAYOUTS:
        axes = f'operation: bcast, algorithm: linear, ranks: 999999, bytes: 1, layout: "{spec}"'
        matrices[spec] = f"matrix:\n- axes: {{{axes}}}\n"
    for text in EXPRESSIONS:
        axes = "operation: bcast, algorithm: linear, ranks: 2, bytes: 1"
        matrices[text] = f'matrix:\n- axes: {{{axes}}}\n  exclude: [{{where: "{text}"}}]\n'
    all_refused(planned, matrices)


@pytest.mark.parametrize("arguments", OPTIONS.values(), ids=OPTIONS)
def test_options(arguments):
    one_line(limited(*arguments.split(), folder=Path(__file__).parents[2]))
