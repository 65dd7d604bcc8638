"""No data: all go on when the last has come."""

from commodel.patterns.operations import Operation, nothing

OPERATION = Operation("barrier", "", nothing, nothing, mpi="MPI_Barrier")
