"""MPICH's selection of collective algorithms (MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE) from a
table of algorithms by operation, ranks and size (`format_selection`).

The file is a tree of conditions; at each node MPICH enters the first branch whose condition holds.
The file replaces the tree that is built into the library, without which other calls would have no
algorithm. The rules of the table are therefore put before the built-in tree, which is read from the
library file (`read_builtin_tree`). MPICH compares the whole result of allgather and the whole
vector of reduce-scatter. A rule holds from its size on, and for exactly its number of ranks.
Collectives of a device, such as those within a node, take precedence over all this and have to be
switched off (`Dialect.environment`).
"""

import json
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path

from commodel.errors import UserError
from commodel.files.safe_reading import MIB
from commodel.interchange import Format
from commodel.interchange.rules import arrange_choices
from commodel.patterns.algorithms import find_algorithms
from commodel.patterns.libraries import MPICH, REORDERING
from commodel.records import LIBRARY, Choice

COLLECTIVES = {  # MPICH's name, and the quantity that it compares with a size
    "allgather": ("allgather", "total_msg_size"),
    "allreduce": ("allreduce", "avg_msg_size"),
    "alltoall": ("alltoall", "avg_msg_size"),
    "bcast": ("bcast", "avg_msg_size"),
    "reduce": ("reduce", "avg_msg_size"),
    "reduce-scatter": ("reduce_scatter", "total_msg_size"),
}
WHOLE_RESULT_COLLECTIVES = ("allgather",)
# Functions that work only for a power of two ranks, or only for MPI's own operations on at least
# one element for each rank. In other calls, an assertion fails.
POWER_OF_TWO_FUNCTIONS = (
    "Allgather_intra_recursive_doubling",
    "Bcast_intra_scatter_recursive_doubling_allgather",
)
BUILT_IN_OPERATION_FUNCTIONS = (
    "Allreduce_intra_reduce_scatter_allgather",
    "Reduce_intra_reduce_scatter_gather",
)
# Functions with which an in-place call fails likewise.
OUT_OF_PLACE_FUNCTIONS = (
    "Alltoall_intra_brucks",
    "Alltoall_intra_pairwise",
    "Alltoall_intra_scattered",
)
TREE_BEGIN, ALGORITHM_KEY = b'{"collective=', '"algorithm=MPIR_'
MAX_LIBRARY_BYTES = 64 * MIB
Tree = dict


def find_function(operation: str, spec: str, ranks: int) -> str:
    """Return MPICH's name of an algorithm without its prefix; empty if a selection cannot name it
    at this number of ranks."""
    entry = find_algorithms(operation).get(spec) if operation in COLLECTIVES else None
    names = (
        [routine.function for routine in entry.mpi_functions if routine.library == MPICH]
        if entry
        else []
    )
    name = names[0].removeprefix("MPIR_") if names else ""
    return "" if name in POWER_OF_TWO_FUNCTIONS and ranks & (ranks - 1) else name


def read_builtin_tree(library: Path, key: str = ALGORITHM_KEY) -> Tree:
    """Return the selection tree that is built into an MPICH library: that of algorithms, or another
    one whose text has a key."""
    with library.open("rb") as stream:
        content = stream.read(MAX_LIBRARY_BYTES)
    at = -1
    while (at := content.find(TREE_BEGIN, at + 1)) >= 0:
        text = content[at : content.find(b"\0", at)].decode(errors="replace")
        try:
            tree = json.loads(text)
        except ValueError:
            continue
        if key in text and all(f"collective={name}" in tree for name, _ in COLLECTIVES.values()):
            return tree
    raise UserError(
        "found no selection of algorithms in this library; is it MPICH 4 or later?", file=library
    )


def format_selection(rows: Iterable[Choice], built_in: Tree) -> str:
    """Return the text of the file: the library's own tree, with the choices before it."""
    table = arrange_choices(rows, WHOLE_RESULT_COLLECTIVES)
    unknown = [operation for operation in table if operation not in COLLECTIVES]
    if unknown:
        raise UserError(f"MPICH's selection has no algorithms of '{unknown[0]}' to choose from")
    tree = dict(built_in)
    for operation, by_ranks in table.items():
        name, compared = COLLECTIVES[operation]
        built_in_branch = _select_intracommunicator(tree[f"collective={name}"])
        selected: Tree = {}
        for ranks, sizes in by_ranks.items():  # `<` of a smaller one is the library's
            selected.setdefault(f"comm_size<{ranks}", built_in_branch)
            selected[f"comm_size<={ranks}"] = _make_size_tree(
                operation, ranks, sizes, compared, built_in_branch
            )
        inter = {
            key: value
            for key, value in tree[f"collective={name}"].items()
            if key == "comm_type=inter"
        }
        tree[f"collective={name}"] = {
            "comm_type=intra": {**selected, "comm_size=any": built_in_branch},
            **inter,
        }
    return json.dumps(tree, indent=1) + "\n"


def _select_intracommunicator(built_in: Tree) -> Tree:
    return built_in.get("comm_type=intra", built_in)


def _make_size_tree(
    operation: str, ranks: int, sizes: Mapping[int, str], compared: str, built_in: Tree
) -> Tree:
    """Return the tree for one number of ranks: each algorithm from its size to the next, and the
    library default below."""
    steps = list(sizes.items())
    tree: Tree = {f"{compared}<{steps[0][0]}": built_in} if steps[0][0] > 0 else {}
    for (_, spec), (following, _) in pairwise(steps):
        tree[f"{compared}<{following}"] = _make_algorithm_tree(operation, ranks, spec, built_in)
    tree[f"{compared}=any"] = _make_algorithm_tree(operation, ranks, steps[-1][1], built_in)
    return tree


def _make_algorithm_tree(operation: str, ranks: int, spec: str, built_in: Tree) -> Tree:
    """Return the tree that selects an algorithm where it can work, and the library default
    elsewhere."""
    name = "" if spec == LIBRARY else find_function(operation, spec, ranks)
    if not name:
        return built_in
    tree: Tree = {f"algorithm=MPIR_{name}": {}}
    if name in BUILT_IN_OPERATION_FUNCTIONS:
        tree = {
            "is_op_built_in=no": built_in,
            "is_op_built_in=yes": {"count<pow2": built_in, "count=any": tree},
        }
    if name in OUT_OF_PLACE_FUNCTIONS:
        tree = {"is_sendbuf_inplace=yes": built_in, "is_sendbuf_inplace=no": tree}
    return (
        {"is_commutative=yes": tree, "is_commutative=no": built_in} if name in REORDERING else tree
    )


FORMAT = Format("selection", "MPICH's selection")
