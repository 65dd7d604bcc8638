"""No data: all go on when the last has come."""

from commodel.patterns.holdings import nothing
from commodel.patterns.operations import Operation

OPERATION = Operation("barrier", "", nothing, nothing, mpi="MPI_Barrier")
