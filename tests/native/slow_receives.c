/* slow_receives.c: linked into a program, it makes MPI_Recv take five milliseconds more. So no rank's clock is known
 * to better than milliseconds, as where ranks share processors; collectives are as fast as ever. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <time.h>

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
  nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  return PMPI_Recv(buffer, count, type, source, tag, comm, status);
}
