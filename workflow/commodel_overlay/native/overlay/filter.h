/* filter.h: what happens to a wave of packets at a node. One file a filter in filters/; filter.c finds them by name. */
#ifndef OVERLAY_FILTER_H
#define OVERLAY_FILTER_H

#include "packet.h"
#include "wire.h"

typedef int FilterFunction(OverlayWave *wave);

typedef struct {
  FilterFunction *run;
  int (*arrange)(OverlayArrivals *arrivals);   /* of a filter that makes waves: the same function */
  void (*end)(void *state);                    /* NULL: nothing to free */
  OverlayPacket *(*save)(void *state);         /* NULL: it is lost with its process */
  int (*load)(void **state, OverlayPacket *saved);
  void *library; /* that is to be closed */
  char *argument;
  void *state; /* of a stream in this process */
} Filter;

int filter_find(const char *name, Filter *filter);         /* "", NULL: none */
int filter_find_arranger(const char *name, Filter *filter); /* of a shared object; "", NULL: its `run` is NULL */
int filter_set_argument(Filter *filter, const char *argument);
void filter_free(Filter *filter);
/* Runs a filter on packets of one stream, which the caller keeps, and appends its results. `origin`: their back-ends. */
int filter_run(Filter *filter, OverlayPacket **in, int count, int root, Queue *out, Origin *origin);

FilterFunction filter_none, filter_min, filter_max, filter_sum, filter_average, filter_concat, filter_bin, filter_work,
    filter_usage;

#endif
