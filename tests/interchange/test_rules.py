"""Open MPI's rules: read back as Open MPI reads them (checked by hand with 4.1.4), every choice of
a table holds.

What Open MPI and MPICH really sent, message by message, against the schedules that are said to be
theirs.

Each line of `recorded/LIBRARY-VERSION.txt` is one collective call (MPI_CHAR, root 0): operation,
algorithm as it is called here, ranks, bytes, number and segment in Open MPI's rules file; then,
parted by '|', what every rank sent, RECEIVER=BYTES in its order. They are Debian's packages of
4.1.4 and 4.0.2. Open MPI chose by a rules file from `commodel export rules`, and the functions of
its `mca_pml` that send were replaced by ones that write down what they send; MPICH chose by
MPIR_CVAR_…_INTRA_ALGORITHM under MPIR_CVAR_NOLOCAL, and `ucp_tag_send_nbx` was replaced likewise.
What MPICH's alltoall sends to itself is left out.

`openmpi-4.1.4-han.txt` has calls of coll/han on three hosts (network namespaces) of three ranks,
with the layout in place of number and segment. A reduction or broadcast of one segment is there
once for `intra` and, if it differs, once for `simple`.

`mpich-5.0.2-compositions.txt` has MPICH's compositions, its second call of each, on nodes that
MPIR_CVAR_NUM_CLIQUES and MPIR_CVAR_CLIQUES_BY_BLOCK pretend. MPIR_CVAR_…_COMPOSITION chose the
composition, MPIR_CVAR_…_INTRA_ALGORITHM its algorithms, MPIR_CVAR_…_POSIX_INTRA_ALGORITHM=mpir
messages within nodes. Between nodes, `ucp_tag_send_nbx` was replaced. Within nodes,
MPIR_CVAR_CH4_IPC_CMA_P2P_THRESHOLD=1 made each receiver read the sender's memory by
`process_vm_readv`, which was replaced, too; messages without bytes, and copies through shared
memory, are not seen. The column before the messages says how they compare with the schedule:
`equal`, equal `between-nodes` only, or `different`.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.interchange.rules import (
    BENCHMARK_ASSUMPTIONS,
    COLLECTIVE_NUMBERS,
    LOOKUP_QUANTITIES,
    NO_ASSUMPTIONS,
    SIZE_INDEPENDENT_OPERATIONS,
    WHOLE_RESULT_COLLECTIVES,
    Assumptions,
    Rule,
    can_select,
    find_risk,
    find_rule,
    format_rules,
    read_choices,
)
from commodel.patterns.algorithms import Algorithm, find_algorithms
from commodel.patterns.arguments import SEGMENT_OR_DEFAULT
from commodel.patterns.build import build_schedule
from commodel.patterns.libraries import MPICH, MPICH_FUNCTIONS, OPEN_MPI, OPEN_MPI_FUNCTIONS
from commodel.records import Choice
from tests.patterns.catalogue import ENTRIES, point
from tests.refusals import catch_error_message

KNOWN = st.sampled_from(
    [
        (name, spec)
        for name in sorted(COLLECTIVE_NUMBERS)
        for spec in find_algorithms(name)
        if can_select(name, spec)
    ]
)


def read(text):
    """Return {collective: [(ranks, [(bytes, Rule)])]} from the numbers of a rules file, without
    comments."""
    words = iter(word for line in text.splitlines() for word in line.split("#")[0].split())
    number = lambda: int(next(words))  # noqa: E731
    by_collective = {}
    for _ in range(number()):
        collective = number()
        sizes = []
        for _ in range(number()):
            ranks = number()
            sizes.append(
                (ranks, [(number(), Rule(number(), number(), number())) for _ in range(number())])
            )
            assert sizes[-1][1][0][0] == 0, "a first rule that is not for 0 bytes"
        by_collective[collective] = sizes
    assert next(words, None) is None
    return by_collective


def look_up(table, collective, ranks, size):
    """Return the rule of the largest communicator size and message size not above the given ones;
    if all communicator sizes are above, the first is used."""
    of_ranks = [rules for least, rules in table[collective] if least <= ranks] or [
        table[collective][0][1]
    ]
    return [rule for least, rule in of_ranks[-1] if least <= size][-1]


@st.composite
def tables(draw):
    rows = draw(
        st.dictionaries(
            st.tuples(st.integers(2, 64), st.integers(0, 1 << 20)), KNOWN, min_size=1, max_size=12
        )
    )
    chosen = {}
    for (ranks, size), (name, choice) in rows.items():
        size = 0 if name == "barrier" else size
        chosen[name, ranks, size] = Choice(name, ranks, size, choice)
    return list(chosen.values())


@given(tables())
def test_every_open_mpi_rule_applies_from_one_size_to_the_next(choices):
    table = read(format_rules(choices, BENCHMARK_ASSUMPTIONS))
    for choice in choices:
        factor = choice.ranks if choice.operation in WHOLE_RESULT_COLLECTIVES else 1
        same = [
            c.bytes for c in choices if (c.operation, c.ranks) == (choice.operation, choice.ranks)
        ]
        following = min((size for size in same if size > choice.bytes), default=choice.bytes + 100)
        fewest = min(c.ranks for c in choices if c.operation == choice.operation)
        number, wanted = (
            COLLECTIVE_NUMBERS[choice.operation],
            find_rule(choice.operation, choice.algorithm),
        )
        for size in (choice.bytes, following - 1):
            assert look_up(table, number, choice.ranks, size * factor) == wanted
        if min(same) > 0:
            assert look_up(table, number, choice.ranks, min(same) * factor - 1) == Rule()
        if fewest > 2:
            assert look_up(table, number, fewest - 1, choice.bytes * factor) == Rule()


@given(tables())
def test_an_operation_has_one_rule_for_all_sizes_if_ranks_may_look_up_different_ones(choices):
    """The send count of a scatter, and of an in-place gather, allgather or alltoall may differ."""
    table = read(format_rules(choices))
    for operation in SIZE_INDEPENDENT_OPERATIONS:
        for ranks, sizes in table.get(COLLECTIVE_NUMBERS[operation], []):
            assert [size for size, _ in sizes] == [0]
            specs = {c.algorithm for c in choices if (c.operation, c.ranks) == (operation, ranks)}
            safe = len(specs) == 1 and not find_risk(operation, *specs)
            assert sizes[0][1] == (find_rule(operation, *specs) if safe else Rule())
    assert set(LOOKUP_QUANTITIES) == set(COLLECTIVE_NUMBERS)
    assert SIZE_INDEPENDENT_OPERATIONS == ("allgather", "alltoall", "gather", "scatter")


@given(tables(), st.builds(Assumptions, st.booleans(), st.booleans()))
def test_no_rule_breaks_a_program_that_the_assumptions_allow(choices, assumptions):
    for number, of_ranks in read(format_rules(choices, assumptions)).items():
        operation = next(name for name, known in COLLECTIVE_NUMBERS.items() if known == number)
        risky = {
            find_rule(operation, c.algorithm)
            for c in choices
            if find_risk(operation, c.algorithm, assumptions)
        }
        assert not risky & {rule for _, sizes in of_ranks for _, rule in sizes} - {Rule()}


@pytest.mark.parametrize(
    ("name", "spec", "order", "types"),
    [
        ("allreduce", "ring", True, False),
        ("allreduce", "recursive-doubling", False, False),
        ("allreduce", "rabenseifner", False, False),
        ("reduce", "binomial", True, False),
        ("reduce", "binary", True, False),
        ("reduce", "chain", True, False),
        ("reduce", "in-order", False, False),
        ("reduce", "linear", False, False),
        ("reduce-scatter", "recursive-halving", True, False),
        ("bcast", "chain", False, True),
        ("bcast", "binomial-near", False, False),
        ("bcast", "binomial-near:4KiB", False, True),
        ("bcast", "split-binary", False, True),
        ("bcast", "scatter-allgather", False, True),
        ("gather", "linear-sync", False, True),
        ("gather", "binomial", False, False),
        ("alltoall", "bruck", False, False),
    ],
)
def test_which_algorithms_could_break_a_program(name, spec, order, types):
    """The expected risks are results of the program `verify` in Open MPI 4.1.8 and 5.0.11 (`make
    lab-test LAB=openmpi`)."""
    assert bool(find_risk(name, spec)) == (order or types)
    assert bool(find_risk(name, spec, Assumptions(commutative=True))) == types
    assert bool(find_risk(name, spec, Assumptions(same_types=True))) == order


def test_a_table_by_hand():
    text = format_rules(
        [
            Choice("bcast", 4, 8, "binomial-near"),
            Choice("bcast", 4, 1024, "binomial-near"),
            Choice("bcast", 4, 2048, "binomial"),
            Choice("bcast", 4, 65536, "chain:4KiB"),
            Choice("gather", 2, 8, "linear"),
            Choice("bcast", 4, 1 << 20, "bine"),
        ]
    )
    assert text == (
        f"2 # collectives; {NO_ASSUMPTIONS.text}\n"
        "7 # bcast\n2 # communicator sizes\n2 # ranks and more\n1 # message sizes\n0 0 0 0 # library\n"
        "4 # ranks and more\n5 # message sizes\n0 0 0 0 # smaller than all sizes of the table: Open MPI decides\n"
        "8 6 0 0 # binomial-near\n"
        "2048 0 0 0 # binomial: only ompi_coll_base_bcast_intra_knomial, if "
        "coll_tuned_bcast_algorithm_knomial_radix is 2, which no rule can express, so Open MPI decides itself\n"
        "65536 0 0 0 # chain:4KiB: fails if ranks describe the message by different datatypes, so Open MPI decides "
        "itself\n"
        "1048576 0 0 0 # bine: none in Open MPI, so Open MPI decides itself\n"
        "9 # gather\n1 # communicator sizes\n2 # ranks and more\n1 # message sizes\n0 1 0 0 # linear\n"
    )


@pytest.mark.parametrize(
    ("name", "spec", "rule"),
    [
        ("bcast", "knomial:4", Rule(7)),
        ("bcast", "knomial:8", Rule()),
        ("bcast", "chain", Rule(3, 0, 8192)),
        ("bcast", "binomial", Rule()),
        ("bcast", "binomial:64KiB", Rule()),
        ("bcast", "binomial-near", Rule(6)),
        ("bcast", "binomial-near:64KiB", Rule(6, 0, 65536)),
        ("bcast", "split-binary:2GiB", Rule(4)),
        ("allreduce", "reduce-bcast", Rule()),
        ("allreduce", "ring", Rule(4)),
        ("allreduce", "ring:1MiB", Rule(5, 0, 1 << 20)),
        ("alltoall", "bruck", Rule(3)),
        ("barrier", "n-way:3", Rule()),
        ("scatter", "linear", Rule(1)),
        ("reduce-scatter", "recursive-halving", Rule(2)),
        ("gather", "linear:4", Rule()),
        ("bcast", "library", Rule()),
    ],
)
def test_numbers_of_algorithms(name, spec, rule):
    assert find_rule(name, spec) == rule


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("bcst,4,8,ring", "t.csv:3: operation: unknown operation 'bcst'"),
        ("bcast,1,8,binomial", "t.csv:3: ranks: found '1'"),
        ("bcast,4,x,binomial", "t.csv:3: bytes: found 'x'"),
        ("bcast,4,8,", "t.csv:3: algorithm: found nothing"),
        ("bcast,8,8,linear", "t.csv:3: found bcast at 8 ranks and 8 B twice"),
    ],
)
def test_a_mistake_in_the_table(tmp_path, row, complaint):
    path = tmp_path / "t.csv"
    path.write_text(f"operation,ranks,bytes,algorithm\nbcast,8,8,binomial\n{row}\n")
    assert complaint in catch_error_message(read_choices, path)


def test_a_tree_is_no_algorithm_of_these_rules(tmp_path):
    """`binomial:4` over 8 leaves is a tree of 16 nodes; of 0 leaves it is an algorithm with
    segments of 4 bytes."""
    path = tmp_path / "t.csv"
    path.write_text(
        "operation,ranks,leaves,bytes,algorithm\nbcast,8,0,8,binomial\nbcast,16,8,8,binomial:4\n"
    )
    with pytest.raises(UserError, match=r"t\.csv:3: leaves: found 8, wanted 0"):
        read_choices(path)


def test_a_line_break_in_an_algorithm_name_does_not_end_the_comment():
    text = format_rules([Choice("bcast", 2, 0, "bi\nnomial")])
    assert "bi nomial" in text
    assert read(text)[7] == [(2, [(0, Rule())])]


@pytest.mark.parametrize(
    ("name", "entry"),
    [(name, entry) for name in COLLECTIVE_NUMBERS for entry in find_algorithms(name).values()],
)
def test_segments_that_are_defaults_here_are_stated_there(name, entry):
    """Open MPI does not segment if the size is 0; a pipeline of the project has segments of 8 KiB
    by default."""
    rule = find_rule(name, "" if entry.needs_argument else entry.short_name)
    if rule.algorithm:
        assert rule.segment == {SEGMENT_OR_DEFAULT: 8192}.get(
            entry.argument, 1024 if entry.short_name == "linear-sync" else 0
        )


def test_the_segment_of_a_linear_sync_gather_is_written_to_the_rule():
    assert find_rule("gather", "linear-sync:32KiB") == Rule(3, 0, 32768)
    assert find_rule("bcast", "binary:2GiB") == Rule(5)


@pytest.mark.parametrize(("gain", "number"), [("0.4", 0), ("2.5", 3), ("nan", 3), ("", 3)])
def test_a_faster_library_default_is_kept(tmp_path, gain, number):
    path = tmp_path / "t.csv"
    path.write_text(
        f"operation,ranks,bytes,algorithm,gain_over_default\nallreduce,2,8,recursive-doubling,{gain}\n"
    )
    ((_, sizes),) = read(format_rules(read_choices(path)))[COLLECTIVE_NUMBERS["allreduce"]]
    assert sizes[-1][1].algorithm == number


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
    for line in (
        (Path(__file__).parent / "recorded" / f"{RECORDED[library]}.txt").read_text().splitlines()
    ):
        operation, spec, ranks, bytes, number, segment, sends = line.split(" ", 6)
        ways = [
            [tuple(map(int, message.split("="))) for message in part.split()]
            for part in sends.split("|")
        ]
        yield Call(
            operation, spec, int(ranks), int(bytes), Rule(int(number), 0, int(segment)), ways
        )


def sends(call):
    pattern = build_schedule(point(call.operation, call.spec, ranks=call.ranks, bytes=call.bytes))
    sent = [[] for _ in range(call.ranks)]
    for source, target, size in zip(pattern.src, pattern.dst, pattern.bytes, strict=True):
        sent[source].append((int(target), int(size)))
    return sent


@pytest.mark.parametrize("library", RECORDED)
def test_algorithms_send_the_messages_recorded_from_the_mpi_library(library):
    for call in calls(library):
        same = (library, call.operation, call.spec, call.ranks) not in DIFFERENT
        assert (sends(call) == call.sends) == same, (call.operation, call.spec, call.ranks)


def test_hierarchical_algorithms_send_the_messages_recorded_from_han():
    lines = (Path(__file__).parent / "recorded" / "openmpi-4.1.4-han.txt").read_text().splitlines()
    operations = set()
    for line in lines:
        operation, spec, ranks, bytes, layout, sends = line.split(" ", 5)
        sent = make_sends(operation, spec, int(ranks), int(bytes), layout)
        assert "|".join(map(" ".join, sent)) == sends, spec
        operations.add(operation)
    assert operations == {"bcast", "reduce", "allreduce", "allgather", "gather", "scatter"}


def make_sends(operation, spec, ranks, bytes, layout):
    """Return what every rank sends by the schedule, as `RECEIVER=BYTES`."""
    pattern = build_schedule(point(operation, spec, ranks=ranks, bytes=bytes, layout=layout))
    sent = [[] for _ in range(ranks)]
    for source, target, size in zip(pattern.src, pattern.dst, pattern.bytes, strict=True):
        sent[source].append(f"{target}={size:g}")
    return sent


def select_between_nodes(sent, per_node):
    """Return the messages of every rank to other nodes."""
    return [
        [text for text in texts if int(text.partition("=")[0]) // per_node != rank // per_node]
        for rank, texts in enumerate(sent)
    ]


def test_hierarchical_algorithms_are_compared_with_the_messages_recorded_from_mpich():
    path = Path(__file__).parent / "recorded" / "mpich-5.0.2-compositions.txt"
    compositions = set()
    for line in path.read_text().splitlines():
        operation, composition, spec, ranks, bytes, layout, expected, text = line.split(" ", 7)
        recorded = [part.split() for part in text.split("|")]
        # the catalogue's barrier has no size
        size = 8 if operation == "barrier" else int(bytes)
        sent = make_sends(operation, spec, int(ranks), size, layout)
        per_node = int(layout.partition(":")[2])
        between = select_between_nodes(sent, per_node) == select_between_nodes(recorded, per_node)
        found = "between-nodes" if between else "different"
        found = "equal" if sent == recorded else found
        assert found == expected, line
        compositions.add((operation, composition))
    assert len(compositions) == 15


def test_open_mpi_rules_equal_the_rules_of_recorded_calls():
    for call in calls(OPEN_MPI):
        assert find_rule(call.operation, call.spec) == call.rule, (call.operation, call.spec)


def test_every_row_is_of_an_algorithm():
    assert {name for name, *_ in (*OPEN_MPI_FUNCTIONS, *MPICH_FUNCTIONS)} <= set(ENTRIES)


def test_every_routine_that_is_named_was_recorded():
    """Open MPI's reduce-bcast is the exception."""
    for library in RECORDED:
        recorded = {(call.operation, call.spec.partition(":")[0]) for call in calls(library)}
        named = {
            (entry.operation, entry.short_name)
            for entry in ENTRIES.values()
            if isinstance(entry, Algorithm)
            and any(routine.library == library for routine in entry.mpi_functions)
        }
        assert named - recorded == (
            {("allreduce", "reduce-bcast")} if library == OPEN_MPI else set()
        )
        assert recorded <= named


def test_routines_that_differ_from_the_library_are_marked():
    for library, operation, choice, _ in DIFFERENT:
        assert all(
            routine.differs
            for routine in find_algorithms(operation)[choice].mpi_functions
            if routine.library == library
        )
