/* work: the local work of a reduction, sum[i] += addend[i] over `bytes` bytes of doubles, on rank 0 without messages.
 *
 * T = gamma * bytes. One sample repeats the addition until it is much longer than the clock's resolution, and is divided
 * by the repeats. Under SimGrid computation takes no simulated time, and samples are 0.
 *
 *   mpiexec -n 1 work --cases cases.csv --out samples        cases.csv: id,bytes
 */
#include "harness.h"

#include <stdlib.h>

enum { BYTES_COLUMN };
static const Column columns[] = {{"bytes", "B", "size of each of the two arrays", BYTES}};

typedef struct {
  int rank, repeats;
  size_t count;
  double *sum, *addend;
} State;

static void check(const Case *c, int ranks) { require_ranks(c, "bytes", 1, ranks); }

static void pass(void *state)
{
  State *s = state;
  if (s->rank != 0) return;
  for (int i = 0; i < s->repeats; i++) add_doubles(s->sum, s->addend, s->count);
}

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  s->rank = run->rank;
  s->repeats = 1;
  if (s->rank != 0) return s;
  s->count = (size_t)c->fields[BYTES_COLUMN].count / sizeof(double);
  s->sum = (double *)(void *)allocate_buffer(s->count, sizeof(double));
  s->addend = (double *)(void *)allocate_buffer(s->count, sizeof(double));
  for (size_t i = 0; i < s->count; i++) s->sum[i] = s->addend[i] = 1;
  calibrate_repeats(&s->repeats, pass, s);
  run->repeats = s->repeats;
  return s;
}

static void cleanup(void *state)
{
  State *s = state;
  free(s->sum);
  free(s->addend);
  free(s);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "work", .title = "Local work of a reduction", .kind = "probe",
      .columns = columns, .ncolumns = 1, .min_ranks = 1, .timing = TIMED_BY_ROOT,
      .check = check, .prepare = prepare, .pass = pass, .cleanup = cleanup,
  };
  return harness_main(argc, argv, &program);
}
