"""A block for each rank, from one."""

from commodel.patterns.holdings import at_root, block, blocks
from commodel.patterns.operations import Operation

OPERATION = Operation(
    "scatter", "the block that the root sends to each rank", at_root(blocks), block, mpi="MPI_Scatter"
)
