/* budget.c: whether there are enough samples, and the size of the next chunk. */
#include "harness.h"

#include <stdlib.h>

static const int attempts_per_sample = 4; /* limit of all samples, valid or not, for each of max_samples */

const char *stop_name(Stop stop)
{
  static const char *const names[] = {"none", "precision", "samples", "time"};
  return names[stop];
}

static void *grow(void *items, size_t count, size_t size)
{
  void *grown = realloc(items, count * size);
  if (!grown) DIE("no memory for %zu samples", count);
  return grown;
}

void grow_samples(Samples *samples, int count, int with)
{
  if (count <= samples->capacity) return;
  samples->capacity = count > 2 * samples->capacity ? count : 2 * samples->capacity;
  size_t capacity = (size_t)samples->capacity;
  samples->seconds = grow(samples->seconds, capacity, sizeof *samples->seconds);
  samples->valid = grow(samples->valid, capacity, sizeof *samples->valid);
  if (with & WITH_SKEW) samples->skew = grow(samples->skew, capacity, sizeof *samples->skew);
  if (with & WITH_COMPUTATION) samples->computation = grow(samples->computation, capacity, sizeof *samples->computation);
  if (with & WITH_COUNTS) samples->counted = grow(samples->counted, capacity, sizeof *samples->counted);
  if (with & WITH_CPU) samples->cpu = grow(samples->cpu, capacity, sizeof *samples->cpu);
  if (!(with & WITH_LATENCIES)) return;
  samples->first = grow(samples->first, capacity, sizeof *samples->first);
  samples->last = grow(samples->last, capacity, sizeof *samples->last);
}

void free_samples(Samples *samples)
{
  free(samples->seconds);
  free(samples->skew);
  free(samples->counted);
  free(samples->cpu);
  free(samples->computation);
  free(samples->first);
  free(samples->last);
  free(samples->valid);
}

/* The precision is checked before the budgets: a sample set that meets both counts as precise. */
Stop choose_stop(const Options *options, Samples *samples, double spent)
{
  double *ordered = allocate((size_t)samples->count, sizeof *ordered);
  int valid = 0;
  for (int i = 0; i < samples->count; i++)
    if (samples->valid[i]) ordered[valid++] = samples->seconds[i];
  sort_doubles(ordered, valid);
  samples->nvalid = valid;
  samples->median = median_sorted(ordered, valid);
  bool only = COMMODEL_SIMULATED && options->max_samples == 1; /* another sample would be the same */
  bool precise = valid >= options->min_samples && (only || median_is_precise(ordered, valid, options->precision));
  free(ordered);
  if (precise) return STOP_PRECISION;
  if (valid >= options->max_samples || samples->count >= attempts_per_sample * options->max_samples) return STOP_SAMPLES;
  return spent >= options->max_seconds ? STOP_TIME : STOP_NONE;
}

/* Half of the current number of samples, within the remaining samples and time. */
int next_chunk(const Options *options, const Samples *samples, double estimate, double spent)
{
  double minimum = options->min_samples > MIN_SAMPLES_TO_STOP ? (double)options->min_samples : MIN_SAMPLES_TO_STOP;
  double n = samples->count ? samples->count / 2.0 : minimum;
  double seconds_left = options->max_seconds - spent;
  if (n > options->max_samples - samples->nvalid) n = (double)(options->max_samples - samples->nvalid);
  if (estimate > 0 && n * estimate > seconds_left) n = seconds_left / estimate;
  if (n > 1e6) n = 1e6;
  return n < 1 ? 1 : (int)n;
}
