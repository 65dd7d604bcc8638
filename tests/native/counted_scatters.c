/* counted_scatters.c: linked into a program, it says at the end how often rank 0 has called MPI_Scatter: once for each
 * time that clocks are compared, where no case scatters. */
#include <mpi.h>
#include <stdio.h>

static int calls;

int MPI_Scatter(const void *sent, int count, MPI_Datatype type, void *received, int each, MPI_Datatype to, int root,
                MPI_Comm comm)
{
  calls++;
  return PMPI_Scatter(sent, count, type, received, each, to, root, comm);
}

int MPI_Finalize(void)
{
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) fprintf(stderr, "clocks compared %d times\n", calls);
  return PMPI_Finalize();
}
