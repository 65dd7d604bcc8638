/* filter.c: filters by name, the built-in ones and those of shared objects, and running them. */
#include "filter.h"
#include "errors.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  FilterFunction *run;
} table[] = {
    {"none", filter_none}, {"min", filter_min},         {"max", filter_max},
    {"sum", filter_sum},   {"average", filter_average}, {"concat", filter_concat},
    {"bin", filter_bin},   {"work", filter_work},       {"usage", filter_usage},
};
enum { FILTERS = sizeof table / sizeof *table };

static int find_in_library(const char *path, Filter *filter)
{
  if (!(filter->library = dlopen(path, RTLD_NOW | RTLD_LOCAL))) return overlay_fail("filter %s: %s", path, dlerror());
  /* ISO C has no way from a data pointer to a function; POSIX's dlsym() is this one. */
  *(void **)&filter->run = dlsym(filter->library, "overlay_filter");
  *(void **)&filter->end = dlsym(filter->library, "overlay_filter_end");
  return filter->run ? OVERLAY_OK : overlay_fail("filter %s: found no function overlay_filter", path);
}

int filter_find(const char *name, Filter *filter)
{
  *filter = (Filter){.run = filter_none};
  if (!name || !*name) name = "none";
  size_t length = strcspn(name, ":");
  char *stem = strndup(name, length);
  filter->argument = strdup(name[length] ? name + length + 1 : "");
  int code = OVERLAY_OK;
  if (!stem || !filter->argument) {
    code = overlay_fail("no memory for a filter");
  } else if (strchr(stem, '/') || (length > 3 && strcmp(stem + length - 3, ".so") == 0)) {
    code = find_in_library(stem, filter);
  } else {
    int row = 0;
    while (row < FILTERS && strcmp(table[row].name, stem) != 0) row++;
    if (row < FILTERS)
      filter->run = table[row].run;
    else
      code = overlay_fail(
          "found the filter '%.80s', wanted none, min, max, sum, average, concat, bin, work:SECONDS, usage or FILE.so",
          stem);
  }
  free(stem);
  if (code != OVERLAY_OK) filter_free(filter, NULL);
  return code;
}

void filter_free(Filter *filter, void *state)
{
  if (filter->end && state) filter->end(state);
  if (filter->library) dlclose(filter->library);
  free(filter->argument);
  *filter = (Filter){.run = filter_none};
}

/* What a filter works on: the part that all see, and where its packets go. */
typedef struct {
  OverlayWave wave; /* first: a Run is an OverlayWave */
  Queue *out;
  const Frame *frame; /* of the first of its packets */
  Origin origin;      /* of what it emits */
} Run;

int filter_run(const Filter *filter, void **state, OverlayPacket **in, int count, int root, Queue *out)
{
  Run run = {.wave = {.in = in,
                      .count = count,
                      .root = root,
                      .argument = filter->argument ? filter->argument : "",
                      .state = *state},
             .out = out,
             .frame = in[0]->frame,
             .origin = origin_of(in[0]->frame)};
  for (int i = 1; i < count; i++) {
    Origin other = origin_of(in[i]->frame);
    run.origin.leaves += other.leaves;
    if (other.source < run.origin.source) run.origin.source = other.source;
    if (before(run.origin.number, other.number)) run.origin.number = other.number;
  }
  int code = filter->run(&run.wave);
  *state = run.wave.state;
  return code;
}

int overlay_emit(OverlayWave *wave, const char *format, const OverlayValue *values)
{
  Run *run = (Run *)wave;
  OverlayPacket *packet = overlay_pack_values(run->frame->tag, format, values);
  if (!packet) return OVERLAY_FAILED;
  packet->frame->kind = run->frame->kind, packet->frame->stream = run->frame->stream;
  set_origin(packet->frame, run->origin);
  return queue_push(run->out, packet);
}

int overlay_forward(OverlayWave *wave, OverlayPacket *packet)
{
  return queue_push(((Run *)wave)->out, overlay_keep(packet));
}
