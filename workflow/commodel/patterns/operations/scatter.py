"""A block for each rank, from one."""

from commodel.patterns.operations import Operation, at_root, block, blocks

OPERATION = Operation(
    "scatter", "the block that the root sends to each rank", at_root(blocks), block, mpi="MPI_Scatter"
)
