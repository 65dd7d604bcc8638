/* work.c: a filter that computes for so many seconds a wave (`work:0.001`) and then hands the first packet on: what a
 * benchmark puts in the place of a tool's filter. It multiplies matrices, as the one of the TAN paper does. */
#include "../filter.h"

#include "../loop.h"
#include <stdlib.h>

enum { SIDE = 16 };

static double multiply(double matrix[SIDE][SIDE])
{
  double product[SIDE][SIDE], trace = 0;
  for (int i = 0; i < SIDE; i++)
    for (int j = 0; j < SIDE; j++) {
      product[i][j] = 0;
      for (int k = 0; k < SIDE; k++) product[i][j] += matrix[i][k] * matrix[k][j];
    }
  for (int i = 0; i < SIDE; i++) trace += product[i][i];
  for (int i = 0; i < SIDE; i++)
    for (int j = 0; j < SIDE; j++) matrix[i][j] = product[i][j] / (trace + 1);
  return trace;
}

int filter_work(OverlayWave *wave)
{
  char *end;
  double seconds = strtod(wave->argument, &end), until = now() + seconds, matrix[SIDE][SIDE];
  if (end == wave->argument || *end || !(seconds >= 0 && seconds <= 3600))
    return overlay_fail("filter work: found '%.40s', wanted seconds, as in work:0.001", wave->argument);
  for (int i = 0; i < SIDE; i++)
    for (int j = 0; j < SIDE; j++) matrix[i][j] = 1.0 / (1 + i + j);
  volatile double kept = 0; /* so that no compiler leaves the work out */
  while (now() < until) kept = multiply(matrix);
  (void)kept;
  OverlayValue values[MAX_VALUES];
  if (wave->count == 1) return overlay_forward(wave, wave->in[0]);
  if (overlay_values(wave->in[0], values, MAX_VALUES) < 0) return OVERLAY_FAILED;
  return overlay_emit(wave, overlay_format(wave->in[0]), values);
}
