"""A block from each rank, for all."""

from commodel.patterns.holdings import block, blocks
from commodel.patterns.operations import Operation

OPERATION = Operation("allgather", "the block that each rank sends to all", block, blocks, mpi="MPI_Allgather")
