/* sample.c: samples of kernels, which are programs of the harness that measure time themselves and also compute. */
#include "kernels.h"

#include <math.h>

void reduce_sample(Run *run, const AlignedRuns *aligned, int iterations, const double *own, double *longest, bool computes)
{
  MPI_TRY(MPI_Reduce(own, longest, 2 * iterations, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
  run->late = 4 * aligned->late > iterations ? LATE_START : IN_TIME;
  run->seconds = 0;
  run->computation = computes ? 0 : NAN;
  for (int i = 0; i < iterations; i++) {
    run->seconds += longest[i];
    run->computation += longest[iterations + i];
  }
}

int kernel_main(int argc, char **argv, Program program)
{
  program.kind = "kernel";
  program.min_ranks = 1;
  program.timing = TIMED_BY_PASS;
  program.computing = describe_device;
  program.locate = locate_gpu;
  return harness_main(argc, argv, &program);
}
