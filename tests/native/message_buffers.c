/* message_buffers.c: linked into a program, it looks at every long message that a rank sends or receives.
 *
 * A rank sends from one buffer and receives into another, each starts on a page of its own, and all pages of a message
 * are there when it is posted for the first time. The first violation ends the run with a line that says which; at the
 * end every rank tells how many messages it has looked at.
 */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LONG = 1 << 18 }; /* bytes; what the harness itself exchanges is shorter */

typedef struct {
  uintptr_t first, end; /* of all messages so far */
  long messages;
} Side;
static Side sent, received;

static void demand(bool good, const char *what)
{
  if (good) return;
  fprintf(stderr, "buffers: %s\n", what);
  fflush(stderr);
  sleep(1); /* mpiexec drops the line when the abort overtakes it */
  MPI_Abort(MPI_COMM_WORLD, 9);
}

static bool resident(uintptr_t first, size_t bytes)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE), pages;
  uintptr_t start = first / page * page;
  pages = (first + bytes - start + page - 1) / page;
  unsigned char *there = malloc(pages);
  bool all = mincore((void *)start, pages * page, there) == 0;
  for (size_t i = 0; i < pages; i++) all = all && (there[i] & 1);
  free(there);
  return all;
}

static void look(Side *side, const void *buffer, MPI_Aint bytes)
{
  uintptr_t first = (uintptr_t)buffer, end = first + (uintptr_t)bytes;
  if (bytes < LONG) return;
  if (side->messages++ == 0) {
    *side = (Side){first, end, 1};
    demand(resident(first, (size_t)bytes), "a page is touched for the first time by a message");
  }
  if (first < side->first) side->first = first;
  if (end > side->end) side->end = end;
  demand(sent.end <= received.first || received.end <= sent.first, "a message leaves from where another arrives");
}

static MPI_Aint size(int count, MPI_Datatype type)
{
  int each = 0;
  PMPI_Type_size(type, &each);
  return (MPI_Aint)count * each;
}

#define SENDS(name, parameters, arguments)                                                                             \
  int MPI_##name parameters                                                                                            \
  {                                                                                                                    \
    look(&sent, buffer, size(count, type));                                                                            \
    return PMPI_##name arguments;                                                                                      \
  }
#define RECEIVES(name, parameters, arguments)                                                                          \
  int MPI_##name parameters                                                                                            \
  {                                                                                                                    \
    look(&received, buffer, size(count, type));                                                                        \
    return PMPI_##name arguments;                                                                                      \
  }

SENDS(Send, (const void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm),
      (buffer, count, type, peer, tag, comm))
SENDS(Isend, (const void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request),
      (buffer, count, type, peer, tag, comm, request))
SENDS(Send_init,
      (const void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request),
      (buffer, count, type, peer, tag, comm, request))
SENDS(Put,
      (const void *buffer, int count, MPI_Datatype type, int peer, MPI_Aint at, int there, MPI_Datatype as, MPI_Win w),
      (buffer, count, type, peer, at, there, as, w))
RECEIVES(Recv, (void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status *status),
         (buffer, count, type, peer, tag, comm, status))
RECEIVES(Irecv, (void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request),
         (buffer, count, type, peer, tag, comm, request))
RECEIVES(Recv_init,
         (void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request),
         (buffer, count, type, peer, tag, comm, request))

int MPI_Win_create(void *base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *window)
{
  look(&received, base, bytes);
  return PMPI_Win_create(base, bytes, unit, info, comm, window);
}

int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
  look(&sent, from, size(count, type));
  look(&received, to, size(count, type));
  return PMPI_Allreduce(from, to, count, type, op, comm);
}

int MPI_Finalize(void)
{
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  demand(sent.first % page == 0 && received.first % page == 0, "a buffer does not start on a page of its own");
  fprintf(stderr, "buffers: sent %ld received %ld\n", sent.messages, received.messages);
  return PMPI_Finalize();
}
