/* filter.c: filters by name, the built-in ones and those of shared objects, and running them. */
#include "filter.h"
#include "errors.h"

#include <dlfcn.h>
#include <stdio.h>
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

/* ISO C has no way from a data pointer to a function; POSIX's dlsym() is this one. */
static void *function_of(const Filter *filter, const char *name, const char *suffix)
{
  char symbol[256];
  int length = snprintf(symbol, sizeof symbol, "%s%s", name, suffix);
  return length < (int)sizeof symbol ? dlsym(filter->library, symbol) : NULL;
}

/* FILE.so or FILE.so@FUNCTION. */
static int find_in_library(char *path, Filter *filter)
{
  char *name = strrchr(path, '@');
  if (name && !strchr(name, '/')) *name++ = '\0';
  if (!name || strchr(name, '/')) name = "overlay_filter";
  if (!(filter->library = dlopen(path, RTLD_NOW | RTLD_LOCAL))) return overlay_fail("filter %s: %s", path, dlerror());
  *(void **)&filter->run = function_of(filter, name, "");
  *(void **)&filter->arrange = function_of(filter, name, "");
  *(void **)&filter->end = function_of(filter, name, "_end");
  *(void **)&filter->save = function_of(filter, name, "_save");
  *(void **)&filter->load = function_of(filter, name, "_load");
  if (!filter->load) filter->save = NULL;
  return filter->run ? OVERLAY_OK : overlay_fail("filter %s: found no function %.80s", path, name);
}

static int find(const char *name, Filter *filter, bool arranges)
{
  *filter = (Filter){.run = filter_none};
  if (!name || !*name) name = "none";
  size_t length = strcspn(name, ":");
  char *stem = strndup(name, length);
  filter->argument = strdup(name[length] ? name + length + 1 : "");
  int code = OVERLAY_OK;
  if (!stem || !filter->argument) {
    code = overlay_fail("no memory for a filter");
  } else if (strchr(stem, '/') || strstr(stem, ".so@") || (length > 3 && strcmp(stem + length - 3, ".so") == 0)) {
    code = find_in_library(stem, filter);
  } else if (arranges) {
    code = overlay_fail("found '%.80s', wanted FILE.so[@FUNCTION], which makes waves", stem);
  } else {
    int row = 0;
    while (row < FILTERS && strcmp(table[row].name, stem) != 0) row++;
    if (row < FILTERS)
      filter->run = table[row].run;
    else
      code = overlay_fail("found the filter '%.80s', wanted none, min, max, sum, average, concat, bin, work:SECONDS, usage "
                          "or FILE.so[@FUNCTION]",
                          stem);
  }
  free(stem);
  if (code != OVERLAY_OK) filter_free(filter);
  return code;
}

int filter_find(const char *name, Filter *filter) { return find(name, filter, false); }

int filter_find_arranger(const char *name, Filter *filter)
{
  if (name && *name) return find(name, filter, true);
  *filter = (Filter){.run = NULL};
  return OVERLAY_OK;
}

int filter_set_argument(Filter *filter, const char *argument)
{
  char *copy = strdup(argument);
  if (!copy) return overlay_fail("no memory for an argument");
  free(filter->argument);
  filter->argument = copy;
  return OVERLAY_OK;
}

void filter_free(Filter *filter)
{
  if (filter->end && filter->state) filter->end(filter->state);
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

int filter_run(Filter *filter, OverlayPacket **in, int count, int root, Queue *out, Origin *origin)
{
  Run run = {.wave = {.in = in,
                      .count = count,
                      .root = root,
                      .argument = filter->argument ? filter->argument : "",
                      .state = filter->state},
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
  filter->state = run.wave.state;
  *origin = run.origin;
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
