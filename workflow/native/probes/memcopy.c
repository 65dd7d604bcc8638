/* memcopy: one memcpy of `bytes` on rank 0, without messages.
 *
 *   ctc  from cache to cache: always the same two buffers
 *   ctm  from cache to memory: always the same source, another place that is in no cache every time
 *   mtm  from memory to memory: two such places every time
 *   anew always the same source, into a buffer that is allocated for the copy and freed after it, as libraries do
 *        within a call; where malloc maps memory for it (glibc from 32 MiB on at the latest), every page is a fault
 *
 * T = bytes / bandwidth + start-up. Places lie in a region larger than the last-level cache and are visited in an order
 * in which neighbours are far apart in time. Above the size of the cache all three are the same. One sample repeats the
 * copy until it is well above the clock's resolution and is divided by the repeats. Under SimGrid computation takes no
 * simulated time, and 0 is what is reported.
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
static const size_t least_region = (size_t)64 << 20, most_region = (size_t)1 << 30;

typedef struct {
  size_t places, stride, step, at; /* step: places from one visit to the next; at: the last one */
  char *region;
} Walk;
typedef struct {
  int rank, repeats;
  bool anew;
  size_t bytes;
  Walk from, to;
} State;

static void check(const Case *c, int ranks)
{
  const Field *path = &c->fields[PATH_COLUMN], *bytes = &c->fields[BYTES_COLUMN];
  if (strcmp(path->text, "ctc") != 0 && strcmp(path->text, "ctm") != 0 && strcmp(path->text, "mtm") != 0 &&
      strcmp(path->text, "anew") != 0)
    case_error(c, "path", path->text, columns[PATH_COLUMN].meaning);
  if ((size_t)bytes->count > most_region / 2)
    case_error(c, "bytes", bytes->text, "at most 536870912 bytes, half of the largest region that is walked through");
  require_ranks(c, "path", 1, ranks);
}

/* Twice the copied bytes or the size of the last-level cache, within limits. */
static size_t region_size(size_t bytes)
{
  size_t largest = bytes, wanted = least_region;
#ifdef _SC_LEVEL3_CACHE_SIZE
  long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (cache > 0 && (size_t)cache > largest) largest = (size_t)cache;
#endif
  if (2 * largest > wanted) wanted = 2 * largest;
  return wanted < most_region ? wanted : most_region;
}

static size_t common_divisor(size_t a, size_t b) { return b == 0 ? a : common_divisor(b, a % b); }

/* A step near the golden section of their number spreads visits evenly, and all are visited if nothing divides both. */
static Walk make_walk(size_t bytes, bool cold)
{
  Walk w = {.places = 1, .stride = (bytes / LINE + 1) * LINE};
  if (cold && !COMMODEL_SIMULATED) w.places = region_size(bytes) / w.stride;
  if (w.places < 1) w.places = 1;
  w.step = (size_t)(0.618033988749895 * (double)w.places);
  while (common_divisor(w.places, w.step) != 1) w.step++;
  w.region = allocate_buffer(w.places, w.stride);
  return w;
}

static char *next_place(Walk *w)
{
  w->at = (w->at + w->step) % w->places;
  return w->region + w->at * w->stride;
}

static void copy_anew(const char *from, size_t bytes)
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
  if (s->anew) {
    for (int i = 0; i < s->repeats; i++) copy_anew(s->from.region, s->bytes);
    return;
  }
  for (int i = 0; i < s->repeats; i++) copy_bytes(next_place(&s->to), next_place(&s->from), s->bytes);
}

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  const char *path = c->fields[PATH_COLUMN].text;
  s->rank = run->rank;
  s->repeats = 1;
  s->bytes = (size_t)c->fields[BYTES_COLUMN].count;
  if (s->rank != 0) return s;
  s->anew = strcmp(path, "anew") == 0;
  s->from = make_walk(s->bytes, path[0] == 'm');
  if (!s->anew) s->to = make_walk(s->bytes, path[2] == 'm');
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
      .columns = columns, .ncolumns = 2, .min_ranks = 1, .timing = ROOT_ALONE,
      .check = check, .prepare = prepare, .pass = pass, .cleanup = cleanup,
  };
  return harness_main(argc, argv, &program);
}
