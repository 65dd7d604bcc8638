"""A block from each rank for each other one."""

from commodel.patterns.operations import Operation, column, row

OPERATION = Operation("alltoall", "the block that each rank sends to each other one", row, column, mpi="MPI_Alltoall")
