/* star.c: groups of rank 0 and ranks 1..n for one-sided communication. */
#include "harness.h"

MPI_Group star_partners(int rank, int n)
{
  MPI_Group all, partners;
  int range[1][3] = {{rank == 0 ? 1 : 0, rank == 0 ? n : 0, 1}};
  MPI_TRY(MPI_Comm_group(MPI_COMM_WORLD, &all));
  MPI_TRY(MPI_Group_range_incl(all, 1, range, &partners));
  MPI_TRY(MPI_Group_free(&all));
  return partners;
}
