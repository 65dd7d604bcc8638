"""Vectors of all ranks, combined, a share for each."""

from commodel.patterns.operations import Operation, own_share, vector

OPERATION = Operation(
    "reduce-scatter",
    "the vector that every rank contributes; each gets its share of the result",
    vector,
    own_share,
    True,
    "MPI_Reduce_scatter",
)
