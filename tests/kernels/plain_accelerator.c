/* plain_accelerator.c: an accelerator that is none: the three functions in plain C, as slow and as clear as can be. */
#include "accelerator.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  int wave;
  size_t rows, columns, block;
  double *cells, *old;
} State;

void *commodel_begin(const char *kernel, size_t rows, size_t columns, size_t block, const double *initial)
{
  size_t bytes = rows * columns * sizeof(double);
  State *s = malloc(sizeof *s);
  *s = (State){strcmp(kernel, "wave") == 0, rows, columns, block, calloc(bytes, 1), calloc(bytes, 1)};
  if (initial) memcpy(s->cells, initial, bytes);
  if (initial) memcpy(s->old, initial, bytes);
  return s;
}

static double at(const State *s, const double *const in[4], long i, long j)
{
  if (i < 0) return in[0][j];
  if (j >= (long)s->columns) return in[1][i];
  if (i >= (long)s->rows) return in[2][j];
  return j < 0 ? in[3][i] : s->cells[(size_t)i * s->columns + (size_t)j];
}

static void step(State *s, const double *const in[4], double *const out[4])
{
  long rows = (long)s->rows, columns = (long)s->columns;
  for (long i = 0; i < rows; i++)
    for (long j = 0; j < columns; j++) {
      double *cell = &s->old[i * columns + j];
      *cell = at(s, in, i, j) - *cell + 0.25 * (at(s, in, i - 1, j) + at(s, in, i + 1, j) + at(s, in, i, j - 1) + at(s, in, i, j + 1));
    }
  double *cells = s->old;
  s->old = s->cells;
  s->cells = cells;
  for (long j = 0; j < columns; j++) {
    out[0][j] = cells[j];
    out[2][j] = cells[(rows - 1) * columns + j];
  }
  for (long i = 0; i < rows; i++) {
    out[1][i] = cells[i * columns + columns - 1];
    out[3][i] = cells[i * columns];
  }
}

int commodel_update(void *state, const double *const in[4], double *const out[4])
{
  State *s = state;
  if (s->wave) step(s, in, out);
  for (size_t i = 0; !s->wave && i < s->rows; i++)
    for (size_t j = 0; j < s->columns; j++)
      for (size_t p = 0; p < s->block; p++)
        s->cells[i * s->columns + j] += in[0][i * s->block + p] * in[1][p * s->columns + j];
  return BROKEN;
}

int commodel_end(void *state, double *result)
{
  State *s = state;
  memcpy(result, s->cells, s->rows * s->columns * sizeof(double));
  free(s->cells);
  free(s->old);
  free(s);
  return 0;
}
