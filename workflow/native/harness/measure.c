/* measure.c: one case: warm-up, chunks of samples, and the decision after each chunk whether that is enough.
 *
 * Stamps stay on their ranks until a chunk ends; then one MPI_Reduce brings earliest start, latest start, latest end
 * and lateness of every sample to rank 0.
 */
#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STARTS_NEGATED, STARTS, ENDS, ALL_ENDS, LATE, STAMPS };
static const double nothing = -1e300;     /* loses every MPI_MAX */
static const double resync_seconds = 1.0; /* clocks of two machines part by microseconds a second */
static const double least_lead = 1e-3, least_window = 2e-5, late_tolerated = 0.1;
static const double least_slack = 1.5, most_slack = 10;
static const double jump_seconds = 1; /* ranks that differ by more about the same time have no clocks in common */
static const int attempts_per_sample = 4; /* samples taken for each valid one wanted, before giving up */

typedef struct {
  const Program *program;
  const Options *options;
  const Scheme *aligned; /* NULL: rank 0 holds the watch alone */
  Alignment *alignment;
  Run run;
  void *state;
  double *stamps, *joined, *ordered; /* ordered: rank 0, valid samples so far */
  double *counted;                   /* of this rank, and only rank 0's are read; NULL when nothing is counted */
  int room;
  double entered;         /* own clock, when the time of the next chunk began to count */
  double estimate, spent; /* rank 0: of one pass; of all chunks */
  double longest;         /* rank 0: no sample of this chunk can have taken longer */
  bool jumped;            /* rank 0: a rank's clock has jumped in this chunk */
} Measurement;

const char *stop_name(Stop stop)
{
  static const char *const names[] = {"none", "precision", "samples", "time"};
  return names[stop];
}

static void stamp_sample(Measurement *m, int n, int i, double start, double end, Late late)
{
  const Run *run = &m->run;
  double shift = m->aligned ? m->alignment->offset : 0;
  bool counts = m->aligned ? run->takes_part : run->rank == 0;
  bool ends = counts && (!m->aligned || run->finish < 0 || run->finish == run->rank);
  m->stamps[STARTS_NEGATED * n + i] = counts ? shift - start : nothing;
  m->stamps[STARTS * n + i] = counts ? start - shift : nothing;
  m->stamps[ENDS * n + i] = ends ? end - shift : nothing;
  m->stamps[ALL_ENDS * n + i] = counts ? end - shift : nothing;
  m->stamps[LATE * n + i] = counts ? late : IN_TIME;
}

/* The time since it was agreed on before, which holds every sample taken in it, as each rank's clock has it. A clock
 * that jumps ahead, as that of a machine that is moved or halted may, makes a rank differ: the least is true. */
static double agree_on_time(double *entered, bool *jumped)
{
  if (!COMMODEL_SIMULATED) MPI_TRY(MPI_Barrier(MPI_COMM_WORLD));
  double now = clock_now(), least = now - *entered, both[2] = {least, -least}, joined[2] = {least, -least};
  if (!COMMODEL_SIMULATED) MPI_TRY(MPI_Allreduce(both, joined, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
  *entered = now;
  *jumped = joined[0] + joined[1] > jump_seconds;
  return -joined[1];
}

static void take_chunk(Measurement *m, int n)
{
  if (n > m->room) {
    free(m->stamps);
    free(m->joined);
    m->room = n;
    m->stamps = allocate((size_t)n * STAMPS, sizeof(double));
    m->joined = allocate((size_t)n * STAMPS, sizeof(double));
    free(m->counted);
    m->counted = m->program->counts ? allocate((size_t)n, sizeof(double)) : NULL;
  }
  if (m->aligned) m->aligned->begin(m->alignment);
  for (int i = 0; i < n; i++) {
    Late late = IN_TIME;
    if (m->program->arm) m->program->arm(m->state);
    if (m->aligned)
      late = m->aligned->align(m->alignment, i);
    else
      align_ready();
    m->run.waited = m->run.counted = 0;
    double start = clock_now();
    m->program->pass(m->state);
    double end = clock_now() - m->run.waited;
    stamp_sample(m, n, i, start, end, late);
    if (m->counted) m->counted[i] = m->run.counted;
  }
  MPI_TRY(MPI_Reduce(m->stamps, m->joined, n * STAMPS, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
  m->longest = agree_on_time(&m->entered, &m->jumped);
  m->spent += m->longest;
}

static void *grow(void *items, size_t count, size_t size)
{
  void *more = realloc(items, count * size);
  if (!more) DIE("no memory for %zu samples", count);
  return more;
}

static void grow_samples(Samples *samples, int count, bool aligned, bool counts)
{
  if (count <= samples->room) return;
  samples->room = count > 2 * samples->room ? count : 2 * samples->room;
  size_t room = (size_t)samples->room;
  samples->seconds = grow(samples->seconds, room, sizeof *samples->seconds);
  samples->valid = grow(samples->valid, room, sizeof *samples->valid);
  if (aligned) samples->skew = grow(samples->skew, room, sizeof *samples->skew);
  if (counts) samples->counted = grow(samples->counted, room, sizeof *samples->counted);
}

/* Rank 0: the chunk's stamps become samples. */
static void add_samples(Measurement *m, Samples *samples, int n)
{
  const Alignment *a = m->alignment;
  grow_samples(samples, samples->count + n, m->aligned != NULL, m->counted != NULL);
  for (int i = 0; i < n; i++) {
    double earliest = -m->joined[STARTS_NEGATED * n + i], latest = m->joined[STARTS * n + i];
    bool at_window = m->aligned && m->aligned->starts_at_window;
    double start = at_window ? a->origin + i * a->window : earliest;
    int k = samples->count++;
    double took = m->joined[ENDS * n + i] - start;
    if (COMMODEL_SIMULATED && took < 0) took = 0; /* a wait's rounding to 1 ns */
    samples->seconds[k] = took / m->run.repeats;
    samples->valid[k] = m->joined[LATE * n + i] == IN_TIME && took >= 0 && (COMMODEL_SIMULATED || took <= m->longest);
    if (m->aligned) samples->skew[k] = latest - earliest;
    if (m->counted) samples->counted[k] = m->counted[i];
  }
}

static double window_length(const Alignment *a, double pass)
{
  return least_window + a->slack * pass + 4 * a->uncertainty;
}

/* Rank 0: the next chunk's window fits a quick pass of this one, with more slack when ranks arrived late. Neither a
 * rank preempted while it waited nor a pass stretched by that is a reason for more: a longer wait is preempted more
 * often, and the windows would keep themselves long. */
static void fit_window(Measurement *m, int n)
{
  Alignment *a = m->alignment;
  double *took = allocate((size_t)n, sizeof *took);
  int late = 0;
  for (int i = 0; i < n; i++) {
    took[i] = m->joined[ALL_ENDS * n + i] + m->joined[STARTS_NEGATED * n + i];
    late += m->joined[LATE * n + i] == LATE_ARRIVAL;
    if (!COMMODEL_SIMULATED && took[i] > m->longest) m->jumped = true; /* before this chunk, after the last alignment */
  }
  if (m->jumped) { /* a window of an hour would be waited for */
    free(took);
    return;
  }
  sort_doubles(took, n);
  if (late > late_tolerated * n) {
    if (a->slack < most_slack) a->slack *= 1.5;
    if (m->joined[LATE * n] == LATE_ARRIVAL) a->lead *= 1.5; /* the first had no sample before it to overrun */
  }
  a->window = window_length(a, took[n / 4]);
  free(took);
}

/* Rank 0. The precision is looked at before the budgets: a sample set that is both is precise. */
static Stop decide(Measurement *m, Samples *samples)
{
  const Options *o = m->options;
  int valid = 0;
  m->ordered = grow(m->ordered, (size_t)samples->count, sizeof *m->ordered);
  for (int i = 0; i < samples->count; i++)
    if (samples->valid[i]) m->ordered[valid++] = samples->seconds[i];
  sort_doubles(m->ordered, valid);
  samples->nvalid = valid;
  samples->median = median_sorted(m->ordered, valid);
  if (valid >= o->min_samples && median_is_precise(m->ordered, valid, o->precision)) return STOP_PRECISION;
  if (valid >= o->max_samples || samples->count >= attempts_per_sample * o->max_samples) return STOP_SAMPLES;
  if (m->spent >= o->max_seconds) return STOP_TIME;
  return STOP_NONE;
}

/* Rank 0: half as many again as there are, within what samples and time are left. */
static int next_chunk(const Measurement *m, const Samples *samples)
{
  const Options *o = m->options;
  double least = o->min_samples > STOPPING_LEAST ? (double)o->min_samples : STOPPING_LEAST;
  double n = samples->count ? samples->count / 2.0 : least;
  double left = o->max_seconds - m->spent;
  if (n > o->max_samples - samples->nvalid) n = (double)(o->max_samples - samples->nvalid);
  if (m->estimate > 0 && n * m->estimate > left) n = left / m->estimate;
  if (n > 1e6) n = 1e6;
  return n < 1 ? 1 : (int)n;
}

/* Leaves what a sample is likely to cost: as long as a pass or, if samples start at windows, as a window, which is far
 * longer where clocks are known badly. */
static void warm_up(Measurement *m)
{
  Alignment *a = m->alignment;
  double least = 0, all = 0;
  long long passes = m->options->warmup > 0 ? m->options->warmup : 1; /* a window needs to know how long one takes */
  if (m->aligned) align_clocks(a);
  agree_on_time(&m->entered, &m->jumped);
  for (long long i = 0; i < passes; i++) {
    bool first = i == 0 && m->program->first_pass;
    if (m->program->arm && !first) m->program->arm(m->state);
    MPI_TRY(MPI_Barrier(MPI_COMM_WORLD));
    double start = clock_now();
    (first ? m->program->first_pass : m->program->pass)(m->state);
    double took = clock_now() - start;
    if (i == 0 || took < least) least = took; /* the first pays for connections and checks */
  }
  MPI_TRY(MPI_Allreduce(&least, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
  double longest = agree_on_time(&m->entered, &m->jumped);
  if (all > longest) all = longest;
  a->slack = least_slack;
  a->window = window_length(a, all);
  a->lead = least_lead;
  m->estimate = m->aligned && m->aligned->starts_at_window ? a->window : all;
}

void measure_case(const Program *program, const Case *c, const Options *options, Alignment *alignment,
                  Samples *samples)
{
  Measurement m = {.program = program, .options = options, .alignment = alignment};
  m.run = (Run){.rank = alignment->rank, .ranks = alignment->ranks, .takes_part = true, .finish = -1, .repeats = 1};
  m.aligned = program->timing == ALL_TOGETHER ? alignment->scheme : NULL;
  m.state = program->prepare(c, &m.run);
  warm_up(&m);

  struct {
    int n, resync;
    double window, lead;
  } plan = {next_chunk(&m, samples), m.aligned && m.jumped, alignment->window, alignment->lead};
  for (;;) {
    MPI_TRY(MPI_Bcast(&plan, sizeof plan, MPI_BYTE, 0, MPI_COMM_WORLD));
    if (plan.n == 0) break;
    alignment->window = plan.window;
    alignment->lead = plan.lead;
    if (plan.resync) align_clocks(alignment);
    take_chunk(&m, plan.n);
    if (alignment->rank != 0) continue;

    add_samples(&m, samples, plan.n);
    if (m.aligned) fit_window(&m, plan.n);
    plan.window = alignment->window;
    plan.lead = alignment->lead;
    m.estimate = m.spent / samples->count;
    plan.resync = m.aligned && (m.jumped || clock_now() - alignment->synced > resync_seconds);
    samples->stop = decide(&m, samples);
    plan.n = samples->stop == STOP_NONE ? next_chunk(&m, samples) : 0;
  }
  program->cleanup(m.state);
  free(m.stamps);
  free(m.joined);
  free(m.counted);
  free(m.ordered);
}
