"""Requests that exceed the limits are refused in one line, before memory is allocated, in a process
with little memory and CPU time."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

MEMORY, SECONDS = 2 << 30, 60  # of address space and of processor time
PARAMS = "params/published/tan/cab-mrnet.yaml"
HOCKNEY = "predict --model hockney --set alpha=1us --set beta=1ns"
AXES = (
    "ranks: {from: 2, to: 100001, step: 1}, bytes: {from: 1, to: 100000, step: 1}",
    "ranks: 2, bytes: {from: 1, to: 1000000000000000, step: 1}",
    "ranks: 2, bytes: {from: 1, to: 10e18, step: 1}",
    "ranks: 2, bytes: {from: 1, to: 1GiB, factor: 1.0000001}",
    "nodes: 16777216, ranks_per_node: 16777216, bytes: 1",
    "ranks: 1000000000, bytes: 1",
    'ranks: "9999999999999999999999999", bytes: 1',
)
TREES = ("kary:2^60", "kary:2^24", "flat:1000000000000", "flat:99999999", "balanced:9999x9999", "chain:99999999",
         "binomial:24", "knomial:2@99999999", "generic:9999:9999", "groups:9999999x99", "postal:1@99999999",
         "random:99999999@1", "optimal:1us,0,1us@99999999")  # fmt: skip
LAYOUTS = (
    "block:99999999999",
    "random:1@99999999999999999999",
    "kinds:9999core@99999999",
    "block-cyclic:9x0",
)
EXPRESSIONS = (
    "ranks ** ranks ** ranks",
    "'a' * 999999999",
    "(" * 400,
    "not " * 120 + "1",
    "9" * 499,
    "-" * 499 + "1",
)
OPTIONS = (
    f"{HOCKNEY} --operation bcast --ranks 1:1000000000000:+1 --bytes 1",
    f"{HOCKNEY} --operation bcast --ranks 2:100000:+1 --bytes 1:100000:+1",
    f"{HOCKNEY} --operation alltoall --algorithm linear --ranks 1048576 --bytes 1",
    f"{HOCKNEY} --operation bcast --algorithm chain:1 --ranks 9 --bytes 1TiB",
    f"advise --params {PARAMS} --operation reduce --leaves 2:90000:+1 --bytes 1:90000:+1",
    f"{HOCKNEY} --operation bcast --ranks {','.join(['2:60000:+1'] * 3)} --bytes 1",
)


# Several command lines in one process, one after the other: what each prints and ends with.
EACH = """
import io, json, sys
from contextlib import redirect_stderr
from commodel.cli import main
for arguments in json.loads(sys.argv[1]):
    printed = io.StringIO()
    with redirect_stderr(printed):
        try:
            code = main(arguments) or 0
        except SystemExit as ending:
            code = ending.code
    print(json.dumps([code, printed.getvalue()]))
"""


def refused(*commands: list[str], folder: Path) -> list[str]:
    """Return the one line of output of each command; all must exit with code 2."""

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    # Threads of libraries would take address space, each a stack.
    done = subprocess.run(
        [sys.executable, "-c", EACH, json.dumps(commands)],
        cwd=folder,
        preexec_fn=limits,
        capture_output=True,
        text=True,
        env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, (commands, done.stderr[-2000:])
    lines = []
    for arguments, ending in zip(commands, done.stdout.splitlines(), strict=True):
        code, printed = json.loads(ending)
        assert code == 2, (arguments, printed[-2000:])
        assert printed.count("\n") == 1, printed
        assert "fits into memory" not in printed, (
            "found by running out of memory, not by arithmetic"
        )
        lines.append(printed)
    return lines


@pytest.fixture
def planned(tmp_path):
    """Return a function that plans experiments and returns the line of each refusal."""
    (tmp_path / "params/platforms").mkdir(parents=True)
    (tmp_path / "params/platforms/big.yaml").write_text(
        "launcher: slurm\nnodes: 1048576\ncores: 16\n"
    )

    def plan(*texts: str) -> list[str]:
        for number, text in enumerate(texts):
            (tmp_path / f"e{number}.yaml").write_text("platform: big\nmodels: [hockney]\n" + text)
        lines = refused(
            *(["plan", f"./e{number}.yaml"] for number in range(len(texts))), folder=tmp_path
        )
        for number, line in enumerate(lines):
            assert line.startswith(f"commodel: e{number}.yaml:"), line
        return lines

    return plan


def test_axes_with_too_many_points_are_refused(planned):
    planned(
        *(f"matrix:\n- axes: {{operation: bcast, algorithm: linear, {axis}}}\n" for axis in AXES)
    )


def test_blocks_that_add_up(planned):
    axes = (
        "operation: bcast, algorithm: linear, ranks: {from: 2, to: 999, step: 1}, bytes: {from: "
        "1, to: 1900, step: 1}"
    )
    block = f"- axes: {{{axes}}}\n"
    exclude = "  exclude: [" + "{where: ranks > 5}," * 90 + "]\n"
    included = "- include: [{operation: barrier}]\n" * 1500
    many, values, tests = planned(
        *("matrix:\n" + text for text in (block * 2, included, block + exclude))
    )
    assert "combinations, wanted at most" in many
    assert "found 1,500 values, wanted at most 1,000" in values
    assert "evaluations of exclude" in tests


def test_aliases_of_aliases(planned):
    levels = "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(12))
    (line,) = planned(f"a0: &a0 [x]\n{levels}matrix: *a12\n")
    assert "aliases expanded" in line


def test_trees_layouts_and_expressions(planned):
    matrices = [
        f'matrix:\n- axes: {{operation: reduce, topology: "{spec}", bytes: 1}}\n' for spec in TREES
    ]
    for spec in LAYOUTS:
        axes = f'operation: bcast, algorithm: linear, ranks: 999999, bytes: 1, layout: "{spec}"'
        matrices.append(f"matrix:\n- axes: {{{axes}}}\n")
    for text in EXPRESSIONS:
        axes = "operation: bcast, algorithm: linear, ranks: 2, bytes: 1"
        matrices.append(f'matrix:\n- axes: {{{axes}}}\n  exclude: [{{where: "{text}"}}]\n')
    planned(*matrices)


def test_options_with_too_many_points_are_refused():
    refused(*(arguments.split() for arguments in OPTIONS), folder=Path(__file__).parents[2])
