"""This machine: its processors, their load, and the transport of messages within a node."""

import os

import pytest

from commodel.platforms import cores, transport
from commodel.platforms.cores import PROCESSORS, find_processor_levels


def machine(folder, processors):
    """Write /sys files of processors, each (number, package, [(cache level, processors that share
    the cache)]); return their hierarchy."""
    for number, package, caches in processors:
        topology = folder / f"cpu{number}" / "topology"
        topology.mkdir(parents=True)
        (topology / "physical_package_id").write_text(f"{package}\n")
        for index, (level, shared) in enumerate(caches):
            cache = folder / f"cpu{number}" / "cache" / f"index{index}"
            cache.mkdir(parents=True)
            (cache / "level").write_text(f"{level}\n")
            (cache / "shared_cpu_list").write_text(f"{shared}\n")
    return find_processor_levels(folder)


def test_core_complexes_lie_in_sockets(tmp_path):
    """The numbers of processors differ from the order of folder names; an offline processor has no
    topology."""
    shared = {0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3", 10: "10-11", 11: "10-11"}
    (tmp_path / "cpu4").mkdir()
    (tmp_path / "cpufreq").mkdir()
    hierarchy = machine(
        tmp_path,
        [(cpu, cpu // 10, [(1, cpu), (2, cpu), (3, text)]) for cpu, text in shared.items()],
    )
    assert hierarchy.group_lists == {"cache": [0, 0, 1, 1, 2, 2], "socket": [0, 0, 0, 0, 1, 1]}
    assert hierarchy.distance(0, [0, 1, 2, 4]).tolist() == [0, 1, 2, 3]


def test_the_second_cache_level_defines_groups_without_a_third_level(tmp_path):
    hierarchy = machine(
        tmp_path,
        [
            (cpu, 0, [(1, cpu), (1, cpu), (2, f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}")])
            for cpu in range(4)
        ],
    )
    assert hierarchy.group_lists["cache"] == [0, 0, 1, 1]


def test_a_machine_that_informs_nothing_has_no_levels(tmp_path):
    assert not find_processor_levels(tmp_path).groups
    assert machine(tmp_path, [(0, 0, []), (1, 0, [])]).group_lists == {"socket": [0, 0]}


def test_a_cache_that_spans_sockets_is_not_trusted(tmp_path):
    assert not machine(tmp_path, [(0, 0, [(3, "0-1")]), (1, 1, [(3, "0-1")])]).groups


@pytest.mark.skipif(not PROCESSORS.is_dir(), reason="no /sys")
def test_this_machine_has_a_group_for_each_processor():
    assert all(
        len(column) >= len(os.sched_getaffinity(0))
        for column in find_processor_levels().groups.values()
    )


def test_processors_at_work(tmp_path, monkeypatch):
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 50 1000 10 0 5 0 0 0\ncpu0 1 2\n")
    monkeypatch.setattr(cores.os, "cpu_count", lambda: 4)
    # of 100 ticks 60 were idle; a guest's 30 are the user's too
    later = "cpu  130 0 60 1055 15 0 5 0 30 0\n"
    monkeypatch.setattr(cores.time, "sleep", lambda _: stat.write_text(later))
    assert cores.measure_busy_processors(stat) == pytest.approx(4 * 0.4)


@pytest.mark.parametrize(
    "text", ["", "cpu  1 2 3\n", "cpu a b c d e f g h\n", "cpu 1 1 1 1 1 1 1 1\n"]
)
def test_busy_processors_are_unknown_if_proc_stat_is_invalid(tmp_path, monkeypatch, text):
    (tmp_path / "stat").write_text(text)
    monkeypatch.setattr(cores.time, "sleep", lambda _: None)
    assert cores.measure_busy_processors(tmp_path / "stat") is None
    assert cores.measure_busy_processors(tmp_path / "none") is None


CM = """[n:1] ../ompi/mca/mtl/ofi/mtl_ofi_component.c:337: mtl:ofi:prov: net
[n:1] ../ompi/mca/mtl/ofi/mtl_ofi_component.c:365: mtl:ofi:provider: eth0
[n:1] select: component ofi selected
[n:1] selected cm best priority 25
[n:1] select: component cm selected
"""
OB1 = """[n:1] selected ob1 best priority 20
[n:1] mca: bml: Using {btl} btl for send to [[31153,1],1] on node n
[n:1] mca: bml: Using self btl for send to [[31153,1],0] on node n
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            CM,
            "Open MPI: pml cm provider net, through the network card: export OMPI_MCA_pml=ob1 takes shared memory",
        ),
        (CM.replace("cm", "ob1") + OB1.format(btl="vader"), "Open MPI: pml ob1 vader"),
        (OB1.format(btl="tcp"), "Open MPI: pml ob1 tcp, through the network card"),
        (
            "==== UCX netmod Capability ====\nMPIDI_UCX_RANK_BITS: 16\n",
            "MPICH: shared memory; between nodes UCX",
        ),
        ("nothing of it", ""),
    ],
)
def test_the_transport_is_parsed_from_messages_of_the_mpi_library(text, words):
    assert transport.parse_transport(text).startswith(words)
    assert bool(transport.parse_transport(text)) == bool(words)


def test_a_failed_compiler_or_starter_is_stated_with_the_transport(tmp_path, monkeypatch):
    for name, line in (
        ("mpicc", "exit 3"),
        ("mpiexec", f"echo '{OB1.format(btl='sm')}' >&2; exit 1"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(transport, "find_tool", lambda program: str(tmp_path / program))
    monkeypatch.setattr(transport, "find_sibling", lambda program, other: str(tmp_path / other))
    assert transport.detect_node_transport() == "unknown: mpicc ended with code 3"
    (tmp_path / "mpicc").write_text("#!/bin/sh\n")
    assert transport.detect_node_transport() == "Open MPI: pml ob1 sm; mpiexec ended with code 1"
    monkeypatch.setattr(transport, "find_tool", lambda program: None)
    assert transport.detect_node_transport() == ""


def test_the_transport_of_the_installed_mpi_library_is_detected():
    if not transport.find_tool("mpicc"):
        pytest.skip("no MPI here")
    assert transport.detect_node_transport().startswith(("MPICH: ", "Open MPI: pml "))
