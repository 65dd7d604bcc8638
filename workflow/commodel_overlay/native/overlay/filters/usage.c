/* usage.c: processor seconds of all processes: back-ends send theirs as "%lf", and each process on the way adds its
 * own. */
#include "../filter.h"

#include <sys/resource.h>

int filter_usage(OverlayWave *wave)
{
  struct rusage own;
  OverlayValue sum = {.lf = 0};
  double below;
  if (getrusage(RUSAGE_SELF, &own) != 0) return overlay_fail("filter usage: no times of this process");
  sum.lf = (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) +
           1e-6 * (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec);
  for (int p = 0; p < wave->count; p++) {
    if (overlay_unpack(wave->in[p], "%lf", &below) != OVERLAY_OK) return OVERLAY_FAILED;
    sum.lf += below;
  }
  return overlay_emit(wave, "%lf", &sum);
}
