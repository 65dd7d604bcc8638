/* levels.c: writes counters of the processes at each depth of a tree during a case to ID.levels, next to its samples. */
#define _GNU_SOURCE
#include "bench.h"

#include <stdlib.h>
#include <string.h>

static const double answer_seconds = 10; /* in which all processes have to answer */
enum { PROCESSES, PACKETS_UP, PACKETS_DOWN, BYTES_UP, BYTES_DOWN, WAVES, FILTER_SECONDS, CPU_SECONDS, ROUND_TRIP, VALUES };

static int depth_of(const Topology *tree, int node)
{
  int depth = 0;
  for (; node; node = tree->parent[node]) depth++;
  return depth;
}

/* Sums over the processes at each depth, in rows of VALUES; NULL if the network has no counters. */
double *count_levels(const Net *net, int *depths)
{
  const OverlayMetrics *rows;
  int count = overlay_metrics(net->network, answer_seconds, &rows);
  *depths = 0;
  for (int node = 0; node < net->tree->nodes; node++)
    if (depth_of(net->tree, node) >= *depths) *depths = depth_of(net->tree, node) + 1;
  if (count < 0) return NULL;
  double *sums = allocate((size_t)*depths * VALUES, sizeof *sums);
  for (int i = 0; i < count; i++) {
    const OverlayMetrics *row = &rows[i];
    if (row->stream >= 0) continue;
    double *sum = sums + depth_of(net->tree, row->node) * VALUES;
    sum[PROCESSES]++;
    sum[PACKETS_UP] += (double)row->packets_up, sum[PACKETS_DOWN] += (double)row->packets_down;
    sum[BYTES_UP] += (double)row->bytes_up, sum[BYTES_DOWN] += (double)row->bytes_down;
    sum[WAVES] += (double)row->waves, sum[FILTER_SECONDS] += row->filter_seconds;
    sum[CPU_SECONDS] += row->cpu_seconds, sum[ROUND_TRIP] += row->round_trip;
  }
  return sums;
}

void write_levels(const Options *options, const char *id, const double *before, const double *after, int depths)
{
  size_t capacity = strlen(options->out) + strlen(id) + 10;
  char *path = allocate(capacity, 1), *partial;
  snprintf(path, capacity, "%s/%s.levels", options->out, id);
  FILE *file = open_partial(path, &partial);
  fprintf(file, "depth,processes,packets_up,packets_down,bytes_up,bytes_down,waves,filter_seconds,cpu_seconds,round_trip\n");
  for (int depth = 0; depth < depths; depth++) {
    const double *old = before + depth * VALUES, *new = after + depth * VALUES;
    fprintf(file, "%d,%.0f", depth, new[PROCESSES]);
    for (int i = PACKETS_UP; i <= WAVES; i++) fprintf(file, ",%.0f", new[i] - old[i]);
    double round_trip = new[PROCESSES] > 0 ? new[ROUND_TRIP] / new[PROCESSES] : 0;
    fprintf(file, ",%.9e,%.9e,%.9e\n", new[FILTER_SECONDS] - old[FILTER_SECONDS], new[CPU_SECONDS] - old[CPU_SECONDS], round_trip);
  }
  commit_partial(file, partial, path);
  free(path);
}
