/* filter.h: what happens to a wave of packets at a node. One file a filter in filters/; filter.c finds them by name. */
#ifndef OVERLAY_FILTER_H
#define OVERLAY_FILTER_H

#include "packet.h"
#include "wire.h"

typedef int FilterFunction(OverlayWave *wave);

typedef struct {
  FilterFunction *run;
  void (*end)(void *state); /* NULL: nothing to free */
  void *library;            /* that is to be closed */
  char *argument;
} Filter;

int filter_find(const char *name, Filter *filter); /* "", NULL: none */
void filter_free(Filter *filter, void *state);
/* Runs it on packets of one stream, which stay the caller's, and appends what it gives. */
int filter_run(const Filter *filter, void **state, OverlayPacket **in, int count, int root, Queue *out);

FilterFunction filter_none, filter_min, filter_max, filter_sum, filter_average, filter_concat, filter_bin, filter_work,
    filter_usage;

#endif
