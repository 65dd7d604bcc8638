"""What Open MPI and MPICH really sent, message by message, against the schedules that are said to be theirs.

Each line of `recorded/LIBRARY-VERSION.txt` is one collective call (MPI_CHAR, root 0): operation, algorithm as it is
called here, ranks, bytes, number and segment in Open MPI's rules file; then, parted by '|', what every rank sent,
RECEIVER=BYTES in its order. They are Debian's packages of 4.1.4 and 4.0.2. Open MPI chose by a rules file from
`commodel export rules`, and the functions of its `mca_pml` that send were replaced by ones that write down what they
send; MPICH chose by MPIR_CVAR_…_INTRA_ALGORITHM under MPIR_CVAR_NOLOCAL, and `ucp_tag_send_nbx` was replaced likewise.
What MPICH's alltoall sends to itself is left out.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from commodel.interchange.rules import Rule, rule_of
from commodel.patterns.algorithms import Algorithm, choices
from commodel.patterns.build import schedule
from commodel.patterns.libraries import MPICH, MPICH_FUNCTIONS, OPEN_MPI, OPEN_MPI_FUNCTIONS
from tests.patterns.catalogue import ENTRIES, point

RECORDED = {OPEN_MPI: "openmpi-4.1.4", MPICH: "mpich-4.0.2"}
DIFFERENT = {  # each said in the `differs` of its routine
    (MPICH, "allreduce", "rabenseifner", 7),
    (MPICH, "allreduce", "rabenseifner", 13),
    (MPICH, "reduce", "rabenseifner", 7),
    (MPICH, "reduce", "rabenseifner", 13),
    (MPICH, "alltoall", "pairwise", 8),
}


@dataclass(frozen=True)
class Call:
    operation: str
    spec: str
    ranks: int
    bytes: int
    rule: Rule
    sends: list[list[tuple[int, int]]]  # of every rank: to whom, how much


def calls(library):
    for line in (Path(__file__).parent / "recorded" / f"{RECORDED[library]}.txt").read_text().splitlines():
        operation, spec, ranks, bytes, number, segment, sends = line.split(" ", 6)
        ways = [[tuple(map(int, message.split("="))) for message in part.split()] for part in sends.split("|")]
        yield Call(operation, spec, int(ranks), int(bytes), Rule(int(number), 0, int(segment)), ways)


def sends(call):
    pattern = schedule(point(call.operation, call.spec, ranks=call.ranks, bytes=call.bytes))
    sent = [[] for _ in range(call.ranks)]
    for source, target, size in zip(pattern.src, pattern.dst, pattern.bytes, strict=True):
        sent[source].append((int(target), int(size)))
    return sent


@pytest.mark.parametrize("library", RECORDED)
def test_every_rank_sends_what_it_sends_in_the_library(library):
    for call in calls(library):
        same = (library, call.operation, call.spec, call.ranks) not in DIFFERENT
        assert (sends(call) == call.sends) == same, (call.operation, call.spec, call.ranks)


def test_a_rule_starts_the_routine_that_was_recorded_under_it():
    for call in calls(OPEN_MPI):
        assert rule_of(call.operation, call.spec) == call.rule, (call.operation, call.spec)


def test_every_row_is_of_an_algorithm():
    assert {name for name, *_ in (*OPEN_MPI_FUNCTIONS, *MPICH_FUNCTIONS)} <= set(ENTRIES)


def test_every_routine_that_is_named_was_recorded():
    """But those of which it is said that they send something else."""
    for library in RECORDED:
        recorded = {(call.operation, call.spec.partition(":")[0]) for call in calls(library)}
        named = {
            (entry.operation, entry.choice)
            for entry in ENTRIES.values()
            if isinstance(entry, Algorithm) and any(routine.library == library for routine in entry.like)
        }
        assert named - recorded == ({("allreduce", "reduce-bcast")} if library == OPEN_MPI else set())
        assert recorded <= named


def test_what_differs_is_said():
    for library, operation, choice, _ in DIFFERENT:
        assert all(routine.differs for routine in choices(operation)[choice].like if routine.library == library)
