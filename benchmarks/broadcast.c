/* A binomial broadcast of 8 bytes, farthest rank first, once: what `make bench` has smpirun simulate. Prints the
 * simulated time of the last rank. No globals, so that ranks need no copies of the program. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
  int rank, ranks, distance = 1;
  char message[8] = {0};
  double took;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  while (distance < ranks && !(rank & distance)) distance *= 2;
  took = MPI_Wtime();
  if (rank) MPI_Recv(message, sizeof message, MPI_CHAR, rank - distance, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (distance /= 2; distance; distance /= 2)
    if (rank + distance < ranks)
      MPI_Send(message, sizeof message, MPI_CHAR, rank + distance, 0, MPI_COMM_WORLD);
  took = MPI_Wtime() - took;
  if (rank == ranks - 1) printf("%.9f\n", took);
  MPI_Finalize();
  return 0;
}
