"""MPI libraries: the functions that send the messages of an algorithm (`find_routines`), and what a
platform's substrate, MPI or that of an extension, can run (`apply_substrate`).

In a function listed here, every rank sends the same messages in the same order as the algorithm;
`differs` names exceptions. Recordings of Open MPI 4.1.4 and MPICH 4.0.2 confirm this:
`tests/interchange/test_rules.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from commodel.errors import UserError, locate_mistakes
from commodel.patterns.operations import Operation, find_operation, parse_parameters
from commodel.patterns.pattern_files import is_pattern_file
from commodel.substrates import MPI, find_substrate, list_aliases

OPEN_MPI, MPICH = "Open MPI", "MPICH"
FEW_ELEMENTS = "with fewer elements than ranks it is linear"
LINEAR = (
    "linear if the operation does not commute, or with fewer elements than the largest power of "
    "two of the ranks"
)
EVEN_RANKS_FIRST = (
    "if the ranks are no power of two, the even ones of the first pairs send whole vectors; "
    "blocks have equal sizes"
)
ODD_RANKS_FIRST = (
    "if the ranks are no power of two, the odd ones of the first pairs send whole vectors; blocks "
    "have equal sizes"
)
DEFAULTS = "reduces and broadcasts with the algorithms that Open MPI selects for each"
RADIX_2 = "if coll_tuned_bcast_algorithm_knomial_radix is 2, which no rule can express"
RADIX_4 = "K is coll_tuned_bcast_algorithm_knomial_radix, 4 unless set"
THROTTLED = "at most MPIR_CVAR_ALLTOALL_THROTTLE at once; a rank sends to itself, too"

# Algorithm, function of ompi_coll_base, its number in Open MPI's rules (0: no rule can name it),
# how it differs. If an algorithm has two functions, the first does not cut messages into segments.
OPEN_MPI_FUNCTIONS = (
    ("allgather-bruck", "allgather_intra_bruck", 2),
    ("allgather-neighbor-exchange", "allgather_intra_neighborexchange", 5),
    ("allgather-recursive-doubling", "allgather_intra_recursivedoubling", 3),
    ("allgather-ring", "allgather_intra_ring", 4),
    ("allreduce-rabenseifner", "allreduce_intra_redscat_allgather", 6, LINEAR),
    ("allreduce-recursive-doubling", "allreduce_intra_recursivedoubling", 3),
    ("allreduce-reduce-bcast", "allreduce_intra_nonoverlapping", 0, DEFAULTS),
    (
        "allreduce-ring",
        "allreduce_intra_ring",
        4,
        "with fewer elements than ranks it is recursive doubling",
    ),
    ("allreduce-ring", "allreduce_intra_ring_segmented", 5),
    ("alltoall-bruck", "alltoall_intra_bruck", 3),
    ("alltoall-linear", "alltoall_intra_basic_linear", 1),
    ("alltoall-pairwise", "alltoall_intra_pairwise", 2),
    ("barrier-binomial", "barrier_intra_tree", 6),
    ("barrier-dissemination", "barrier_intra_bruck", 4),
    ("barrier-linear", "barrier_intra_basic_linear", 1),
    ("bcast-binary", "bcast_intra_bintree", 5),
    ("bcast-binomial", "bcast_intra_knomial", 0, RADIX_2),
    ("bcast-binomial-near", "bcast_intra_binomial", 6),
    ("bcast-chain", "bcast_intra_pipeline", 3),
    ("bcast-knomial", "bcast_intra_knomial", 7, RADIX_4),
    ("bcast-linear", "bcast_intra_basic_linear", 1),
    ("bcast-scatter-allgather", "bcast_intra_scatter_allgather", 8, FEW_ELEMENTS),
    ("bcast-scatter-allgather-ring", "bcast_intra_scatter_allgather_ring", 9, FEW_ELEMENTS),
    ("bcast-split-binary", "bcast_intra_split_bintree", 4),
    ("gather-binomial", "gather_intra_binomial", 2),
    (
        "gather-linear",
        "gather_intra_basic_linear",
        1,
        "the root receives from one rank after the other",
    ),
    ("gather-linear-sync", "gather_intra_linear_sync", 3),
    ("reduce-binary", "reduce_intra_binary", 4),
    ("reduce-binomial", "reduce_intra_binomial", 5),
    ("reduce-chain", "reduce_intra_pipeline", 3),
    ("reduce-in-order", "reduce_intra_in_order_binary", 6),
    (
        "reduce-linear",
        "reduce_intra_basic_linear",
        1,
        "the root receives from the last rank first, one at a time",
    ),
    ("reduce-rabenseifner", "reduce_intra_redscat_gather", 7, LINEAR),
    ("reduce-scatter-recursive-halving", "reduce_scatter_intra_basic_recursivehalving", 2),
    ("reduce-scatter-ring", "reduce_scatter_intra_ring", 3),
    ("scatter-binomial", "scatter_intra_binomial", 2),
    ("scatter-linear", "scatter_intra_basic_linear", 1),
)
# Algorithm, function of MPIR, how it differs.
MPICH_FUNCTIONS = (
    ("allgather-bruck", "Allgather_intra_brucks"),
    ("allgather-recursive-doubling", "Allgather_intra_recursive_doubling", "powers of two only"),
    ("allgather-ring", "Allgather_intra_ring"),
    ("allreduce-rabenseifner", "Allreduce_intra_reduce_scatter_allgather", EVEN_RANKS_FIRST),
    ("allreduce-recursive-doubling", "Allreduce_intra_recursive_doubling"),
    ("alltoall-bruck", "Alltoall_intra_brucks"),
    ("alltoall-linear", "Alltoall_intra_scattered", THROTTLED),
    (
        "alltoall-pairwise",
        "Alltoall_intra_pairwise",
        "at powers of two step i exchanges with rank XOR i",
    ),
    (
        "barrier-dissemination",
        "Barrier_intra_dissemination",
        "since 4.1 k_dissemination with K = 2",
    ),
    ("bcast-binomial", "Bcast_intra_binomial"),
    ("bcast-scatter-allgather", "Bcast_intra_scatter_recursive_doubling_allgather"),
    ("bcast-scatter-allgather-ring", "Bcast_intra_scatter_ring_allgather"),
    ("gather-binomial", "Gather_intra_binomial"),
    ("reduce-binomial", "Reduce_intra_binomial"),
    ("reduce-rabenseifner", "Reduce_intra_reduce_scatter_gather", ODD_RANKS_FIRST),
    ("reduce-scatter-pairwise", "Reduce_scatter_intra_pairwise"),
    ("reduce-scatter-recursive-halving", "Reduce_scatter_intra_recursive_halving"),
    ("scatter-binomial", "Scatter_intra_binomial"),
)


# Functions that do not combine operands in the order of the ranks, which is wrong if the operation
# does not commute. Open MPI's rules select them nevertheless; MPICH's selection can check for
# commutativity. The program `verify` found them in Open MPI 4.1.8 and 5.0.11, and in MPICH 5.0.2.
REORDERING = {
    "allreduce_intra_ring",
    "allreduce_intra_ring_segmented",
    "reduce_intra_binary",
    "reduce_intra_binomial",
    "reduce_intra_pipeline",
    "reduce_scatter_intra_basic_recursivehalving",
    "reduce_scatter_intra_ring",
    "Allreduce_intra_reduce_scatter_allgather",
    "Reduce_intra_reduce_scatter_gather",
    "Reduce_scatter_intra_pairwise",
    "Reduce_scatter_intra_recursive_halving",
}
# Functions that cut a message by the count and datatype of each rank's own call. If these differ
# between ranks, which MPI allows as long as the bytes agree, ranks wait for other segments than are
# sent. The second group cuts messages only with a segment size.
CUTTING_ALWAYS = {
    "gather_intra_linear_sync",
    "bcast_intra_scatter_allgather",
    "bcast_intra_scatter_allgather_ring",
    "bcast_intra_split_bintree",
}
CUTTING_BY_SEGMENT = {
    "bcast_intra_bintree",
    "bcast_intra_binomial",
    "bcast_intra_knomial",
    "bcast_intra_pipeline",
}


@dataclass(frozen=True)
class Routine:
    """A function of an MPI library; `differs` names the cases in which it sends other messages than
    the algorithm."""

    library: str
    function: str
    number: int = 0  # in Open MPI's rules; 0: no rule can name it
    differs: str = ""
    keeps_order: bool = True  # combines operands in the order of the ranks

    def segments_by_own_count(self, segment: int) -> bool:
        """Return whether ranks with different datatypes for one message cut it into different
        segments."""
        name = self.function.removeprefix("ompi_coll_base_")
        return name in CUTTING_ALWAYS or (segment > 0 and name in CUTTING_BY_SEGMENT)


def find_routines(algorithm: str) -> tuple[Routine, ...]:
    """Return the functions that send the messages of an algorithm, Open MPI's first."""
    open_mpi = [
        Routine(
            OPEN_MPI,
            f"ompi_coll_base_{function}",
            number,
            differs[0] if differs else "",
            function not in REORDERING,
        )
        for name, function, number, *differs in OPEN_MPI_FUNCTIONS
        if name == algorithm
    ]
    mpich = [
        Routine(
            MPICH, f"MPIR_{function}", 0, differs[0] if differs else "", function not in REORDERING
        )
        for name, function, *differs in MPICH_FUNCTIONS
        if name == algorithm
    ]
    return (*open_mpi, *mpich)


def apply_substrate(substrate: str, combination: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a combination with its number of waves; refuse combinations that the substrate does
    not support.

    A combination has one value for each key of the matrix, such as operation and algorithm.

    Without a substrate, as for predictions without a platform, combinations of MPI and the aliases
    of other substrates are allowed.
    """
    name = combination["operation"]
    base_name = name.partition(":")[0].strip()
    owner, alias = list_aliases().get(base_name, ("", None))
    if substrate == MPI and alias:
        raise UserError(
            f"found '{base_name}', which only a platform with substrate: {owner} has",
            key="operation",
        )
    waves = combination.get("waves", alias.waves if alias else 1)
    if substrate not in ("", MPI):
        find_substrate(substrate).check({**combination, "waves": waves})
        return {**combination, "waves": waves}
    if is_pattern_file(name):
        return combination
    entry = _check_operation_of_mpi(name)
    if waves != 1 and entry.program:
        raise UserError(
            f"found {waves}, wanted 1: the kernel {entry.program} has no waves", key="waves"
        )
    return {**combination, "waves": waves}


def _check_operation_of_mpi(name: str) -> Operation:
    with locate_mistakes(key="operation"):
        entry = find_operation(name)
        values = parse_parameters(name)
    if MPI not in entry.substrates:
        owner = entry.substrates[0]
        raise UserError(
            f"found '{entry.name}', which only a platform with substrate: {owner} has",
            key="operation",
        )
    for parameter in entry.parameters:
        if parameter.substrates and parameter.name in values:
            owner = parameter.substrates[0]
            message = f"found {parameter.name}, which only a platform with substrate: {owner} has"
            raise UserError(message, key="operation")
    return entry


def has_no_schedule(name: str) -> bool:
    """Return whether an operation with these parameters has no schedule and is measured only."""
    entry = find_operation(name)
    values = parse_parameters(name)
    written = [parameter for parameter in entry.parameters if parameter.name in values]
    return entry.without_schedule or any(
        parameter.without_schedule(values[parameter.name]) for parameter in written
    )
