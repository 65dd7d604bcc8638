"""Vectors of all ranks, combined at all."""

from commodel.patterns.operations import Operation, vector

OPERATION = Operation(
    "allreduce", "the vector that every rank contributes, and everyone's result", vector, vector, True, "MPI_Allreduce"
)
