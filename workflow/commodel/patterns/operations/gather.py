"""A block from each rank, for one."""

from commodel.patterns.operations import Operation, at_root, block, blocks

OPERATION = Operation("gather", "the block that each rank sends to the root", block, at_root(blocks), mpi="MPI_Gather")
