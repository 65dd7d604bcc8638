"""A block from each rank, for all."""

from commodel.patterns.operations import Operation, block, blocks

OPERATION = Operation("allgather", "the block that each rank sends to all", block, blocks, mpi="MPI_Allgather")
