/* turned_messages.c: linked into a kernel, it sends messages, but for the first, with one byte changed in the middle. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static const void *turned(const void *buffer, int count)
{
  static int sent;
  if (sent++ == 0 || count < 16) return buffer;
  char *copy = memcpy(malloc((size_t)count), buffer, (size_t)count);
  copy[count / 2 + 6] ^= 0x0c; /* of a double: so much that no rounding hides it */
  return copy;
}

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
  return PMPI_Isend(turned(buffer, count), count, type, dest, tag, comm, request);
}
