/* slow_receives.c: preloaded into a program, it makes MPI_Recv take five milliseconds more. So no rank's clock is known
 * to better than milliseconds, as where ranks share processors; collectives are as fast as ever. */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <unistd.h>

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
  usleep(5000);
  return PMPI_Recv(buffer, count, type, source, tag, comm, status);
}
