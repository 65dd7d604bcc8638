"""One rank's message for all."""

from commodel.patterns.operations import MPI, OVERLAY, Operation, at_root, vector

OPERATION = Operation(
    "bcast",
    "the message that the root sends to all",
    at_root(vector),
    vector,
    mpi="MPI_Bcast",
    substrates=(MPI, OVERLAY),
)
