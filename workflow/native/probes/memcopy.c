/* memcopy: one memcpy of `bytes` on rank 0, without messages.
 *
 *   ctc  from cache to cache: always the same two buffers
 *   ctm  from cache to memory: always the same source, each time another uncached destination
 *   mtm  from memory to memory: each time another uncached source and destination
 *   anew always the same source, into a buffer that is allocated for the copy and freed after it, as libraries do
 *        within a call; if malloc maps memory for it (glibc from 32 MiB on at the latest), every page is a fault
 *
 * T = bytes / bandwidth + start-up. Uncached buffers are slots of a region larger than the last-level cache, visited in an
 * order in which adjacent slots are far apart in time. Above the size of the cache ctc, ctm and mtm are equal. One sample
 * repeats the copy until it is much longer than the clock's resolution, and is divided by the repeats. Under SimGrid
 * computation takes no simulated time, and samples are 0.
 *
 *   mpiexec -n 1 memcopy --cases cases.csv --out samples        cases.csv: id,path,bytes
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_COLUMN, BYTES_COLUMN, LINE = 64 };
static const Column columns[] = {
    {"path", "", "ctc, ctm, mtm or anew", WORD},
    {"bytes", "B", "bytes copied", BYTES},
};
static const size_t min_region = (size_t)64 << 20, max_region = (size_t)1 << 30;

typedef struct {
  size_t slots, stride, step, slot; /* step: slots from one visit to the next; slot: the last one */
  char *region;
} Walk;
typedef struct {
  int rank, repeats;
  bool new_buffer;
  size_t bytes;
  Walk from, to;
} State;

static void check(const Case *c, int ranks)
{
  const Field *path = &c->fields[PATH_COLUMN], *bytes = &c->fields[BYTES_COLUMN];
  if (strcmp(path->text, "ctc") != 0 && strcmp(path->text, "ctm") != 0 && strcmp(path->text, "mtm") != 0 &&
      strcmp(path->text, "anew") != 0)
    case_error(c, "path", path->text, columns[PATH_COLUMN].meaning);
  if ((size_t)bytes->count > max_region / 2)
    case_error(c, "bytes", bytes->text, "at most 536870912 bytes, half of the largest region");
  require_ranks(c, "path", 1, ranks);
}

/* Twice the larger of the copied bytes and the last-level cache, from min_region to max_region. */
static size_t region_size(size_t bytes)
{
  size_t largest = bytes, region = min_region;
#ifdef _SC_LEVEL3_CACHE_SIZE
  long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (cache > 0 && (size_t)cache > largest) largest = (size_t)cache;
#endif
  if (2 * largest > region) region = 2 * largest;
  return region < max_region ? region : max_region;
}

static size_t common_divisor(size_t a, size_t b) { return b == 0 ? a : common_divisor(b, a % b); }

/* A step of about 0.618 of the number of slots spreads visits evenly; all slots are visited if the two are coprime. */
static Walk make_walk(size_t bytes, bool cold)
{
  Walk w = {.slots = 1, .stride = (bytes / LINE + 1) * LINE};
  if (cold && !COMMODEL_SIMULATED) w.slots = region_size(bytes) / w.stride;
  if (w.slots < 1) w.slots = 1;
  w.step = (size_t)(0.618033988749895 * (double)w.slots);
  while (common_divisor(w.slots, w.step) != 1) w.step++;
  w.region = allocate_buffer(w.slots, w.stride);
  return w;
}

static char *next_slot(Walk *w)
{
  w->slot = (w->slot + w->step) % w->slots;
  return w->region + w->slot * w->stride;
}

static void copy_to_new_buffer(const char *from, size_t bytes)
{
  void *to = malloc(bytes > 0 ? bytes : 1);
  if (to == NULL) DIE("no memory for %zu bytes", bytes);
  copy_bytes(to, from, bytes);
  free(to);
}

static void pass(void *state)
{
  State *s = state;
  if (s->rank != 0) return;
  if (s->new_buffer) {
    for (int i = 0; i < s->repeats; i++) copy_to_new_buffer(s->from.region, s->bytes);
    return;
  }
  for (int i = 0; i < s->repeats; i++) copy_bytes(next_slot(&s->to), next_slot(&s->from), s->bytes);
}

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  const char *path = c->fields[PATH_COLUMN].text;
  s->rank = run->rank;
  s->repeats = 1;
  s->bytes = (size_t)c->fields[BYTES_COLUMN].count;
  if (s->rank != 0) return s;
  s->new_buffer = strcmp(path, "anew") == 0;
  s->from = make_walk(s->bytes, path[0] == 'm');
  if (!s->new_buffer) s->to = make_walk(s->bytes, path[2] == 'm');
  calibrate_repeats(&s->repeats, pass, s);
  run->repeats = s->repeats;
  return s;
}

static void cleanup(void *state)
{
  State *s = state;
  free(s->from.region);
  free(s->to.region);
  free(s);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "memcopy", .title = "Copy in memory", .kind = "probe",
      .columns = columns, .ncolumns = 2, .min_ranks = 1, .timing = TIMED_BY_ROOT,
      .check = check, .prepare = prepare, .pass = pass, .cleanup = cleanup,
  };
  return harness_main(argc, argv, &program);
}
