"""MPICH's selection file, read as MPICH reads it: every choice of a table holds; all other calls
use the library default."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.patterns.algorithms import find_algorithms
from commodel.platforms.mpi_libraries import find_kind, find_library_version, find_shared_library
from commodel.platforms.tools import find_build_root
from commodel.records import Choice
from commodel_tune.mpich_selection import (
    COLLECTIVES,
    WHOLE_RESULT_COLLECTIVES,
    find_function,
    format_selection,
    read_builtin_tree,
)

OWN = {
    f"collective={name}": {
        "comm_type=intra": {"algorithm=MPIR_OWN": {}},
        "comm_type=inter": {"algorithm=MPIR_INTER": {}},
    }
    for name, _ in COLLECTIVES.values()
} | {"collective=scan": {"algorithm=SCAN": {}}}
WAYS = [
    (name, choice)
    for name in COLLECTIVES
    for choice in find_algorithms(name)
    if find_function(name, choice, 8)
]


def select(tree, facts):
    """Return the selected algorithm: at each level the first true condition is entered, without
    backtracking."""
    for key, below in tree.items():
        if key.startswith("algorithm="):
            return key.removeprefix("algorithm=MPIR_")
        name, sign, value = key.partition("<=" if "<=" in key else "<" if "<" in key else "=")
        fact = facts[name]
        holds = {
            "=": value == "any" or str(fact) == value,
            "<": sign == "<" and fact < int(value if value.isdigit() else facts["pow2"]),
            "<=": sign == "<=" and fact <= int(value if value.isdigit() else 0),
        }[sign]
        if holds:
            return select(below, facts)
    raise AssertionError("MPICH would stop here")


def select_for_call(tree, operation, ranks, size, **facts):
    """Return the algorithm that MPICH selects. `size` is that of the project's workloads; an
    element has 8 bytes."""
    name, compared = COLLECTIVES[operation]
    size = size * ranks if operation in WHOLE_RESULT_COLLECTIVES else size
    known = {
        "collective": name,
        "comm_type": "intra",
        "comm_size": ranks,
        compared: size,
        "count": size // 8,
    }
    known |= {
        "is_commutative": "yes",
        "is_sendbuf_inplace": "no",
        "is_op_built_in": "yes",
        "pow2": 1 << (ranks.bit_length() - 1),
    }
    return select(tree, known | facts)


@st.composite
def tables(draw):
    keys = st.tuples(
        st.sampled_from(WAYS), st.integers(2, 16), st.sampled_from([0, 64, 4096, 1 << 18])
    )
    rows = draw(
        st.lists(keys, min_size=1, max_size=10, unique_by=lambda row: (row[0][0], *row[1:]))
    )
    return [Choice(name, ranks, size, choice) for (name, choice), ranks, size in rows]


@given(tables())
def test_every_mpich_choice_applies_only_to_the_given_ranks_and_sizes(table):
    tree = json.loads(format_selection(table, OWN))
    assert tree["collective=scan"] == OWN["collective=scan"]
    for row in table:
        same = sorted(
            other.bytes
            for other in table
            if (other.operation, other.ranks) == (row.operation, row.ranks)
        )
        following = min((size for size in same if size > row.bytes), default=8 << 20)
        wanted = find_function(row.operation, row.algorithm, row.ranks) or "OWN"
        # with an element for each rank
        for size in (max(row.bytes, 256), max(following - 8, 256)):
            if row.bytes <= size < following:
                assert select_for_call(tree, row.operation, row.ranks, size) == wanted
        others = {other.ranks for other in table if other.operation == row.operation}
        if row.ranks + 1 not in others:
            assert select_for_call(tree, row.operation, row.ranks + 1, row.bytes) == "OWN"
        if min(same):
            assert select_for_call(tree, row.operation, row.ranks, min(same) - 1) == "OWN"
        assert (
            select_for_call(tree, row.operation, row.ranks, row.bytes, comm_type="inter") == "INTER"
        )


def test_mpich_algorithms_are_selected_only_if_applicable():
    assert (
        find_function("allgather", "recursive-doubling", 8) == "Allgather_intra_recursive_doubling"
    )
    assert not find_function("allgather", "recursive-doubling", 6)
    assert not find_function("bcast", "chain", 8)
    assert not find_function("gather", "binomial", 8)
    tree = json.loads(format_selection([Choice("allreduce", 8, 0, "rabenseifner")], OWN))
    assert select_for_call(tree, "allreduce", 8, 4096) == "Allreduce_intra_reduce_scatter_allgather"
    assert select_for_call(tree, "allreduce", 8, 32) == "OWN"
    assert select_for_call(tree, "allreduce", 8, 4096, is_commutative="no") == "OWN"
    assert select_for_call(tree, "allreduce", 8, 4096, is_op_built_in="no") == "OWN"


def test_an_alltoall_in_place_is_left_to_the_library():
    for spec in ("bruck", "linear", "pairwise"):
        tree = json.loads(format_selection([Choice("alltoall", 8, 0, spec)], OWN))
        assert select_for_call(tree, "alltoall", 8, 64, is_sendbuf_inplace="yes") == "OWN"
        assert select_for_call(tree, "alltoall", 8, 64) == find_function("alltoall", spec, 8)


def test_a_library_without_a_tree_is_named(tmp_path):
    (tmp_path / "libmpi.so").write_bytes(
        b'\x7fELF\0{"collective=bcast":{"algorithm=MPIR_Bcast_x":{}}}\0{"collective=\0'
    )
    with pytest.raises(UserError, match="no selection of algorithms in this library"):
        read_builtin_tree(tmp_path / "libmpi.so")


def test_the_tree_of_the_library_at_hand():
    program = find_build_root() / "build" / "mpi" / "library"
    if not program.exists() or find_kind(find_library_version([str(program)])) != "MPICH":
        pytest.skip("no MPICH here")
    tree = read_builtin_tree(find_shared_library(program))
    assert all(f"collective={name}" in tree for name, _ in COLLECTIVES.values())
    assert len(tree) > 20
