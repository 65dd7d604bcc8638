/* swapped_waves.c: linked into the player, it sends in place of a rank's second message of a size what its first held,
 * as if a message of one wave had been taken for that of another. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
  static char *first;
  static int sent;
  if (sent == 0) first = memcpy(malloc((size_t)count), buffer, (size_t)count);
  return PMPI_Isend(sent++ == 1 ? first : buffer, count, type, dest, tag, comm, request);
}
