/* budget.c: whether there are enough samples, and the size of the next chunk. */
#include "harness.h"

#include <math.h>
#include <stdlib.h>

static const double equal_tolerance = 1e-9; /* relative; or in seconds, since simulated waits are rounded to 1 ns */
static const int attempts_per_sample = 4; /* limit of all samples, valid or not, for each of max_samples */

const char *stop_name(Stop stop)
{
  static const char *const names[] = {"none", "equal samples", "precision", "samples", "time"};
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

/* Whether the first samples are equal, as those of a simulation without noise: more of them would be the same. */
static bool starts_with_equal(const Samples *samples, long long enough)
{
  if (enough < 1 || samples->count < enough) return false;
  for (int i = 0; i < enough; i++) {
    double first = samples->seconds[0], difference = fabs(samples->seconds[i] - first);
    if (!samples->valid[i] || difference > equal_tolerance * (first > 1 ? first : 1)) return false;
  }
  return true;
}

/* The precision is checked before the budgets: a sample set that meets both counts as precise. */
Stop choose_stop(const Options *options, Samples *samples, double spent)
{
  bool equal = starts_with_equal(samples, options->enough_equal);
  if (equal) samples->count = (int)options->enough_equal;
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
  if (equal) return STOP_EQUAL;
  if (precise) return STOP_PRECISION;
  if (valid >= options->max_samples || samples->count >= attempts_per_sample * options->max_samples) return STOP_SAMPLES;
  return spent >= options->max_seconds ? STOP_TIME : STOP_NONE;
}

/* Half of the current number of samples, or, if the first ones were not equal, what is missing to the minimum; within the
 * remaining samples and time. */
int next_chunk(const Options *options, const Samples *samples, double estimate, double spent, bool last_differs)
{
  double minimum = options->min_samples > MIN_SAMPLES_TO_STOP ? (double)options->min_samples : MIN_SAMPLES_TO_STOP;
  double n = samples->count ? samples->count / 2.0 : minimum;
  if (options->enough_equal > 0 && samples->count < minimum)
    n = samples->count ? minimum - samples->count : (double)options->enough_equal + last_differs;
  double seconds_left = options->max_seconds - spent;
  if (n > options->max_samples - samples->nvalid) n = (double)(options->max_samples - samples->nvalid);
  if (estimate > 0 && n * estimate > seconds_left) n = seconds_left / estimate;
  if (n > 1e6) n = 1e6;
  return n < 1 ? 1 : (int)n;
}
