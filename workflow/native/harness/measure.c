/* measure.c: measures one case: warm-up, and chunks of samples until the stopping rule is met.
 *
 * Each rank stores its time stamps until a chunk ends. Then one MPI_Reduce computes the earliest start, latest start,
 * latest end and lateness of every sample on rank 0.
 */
#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STARTS_NEGATED, STARTS, ENDS, ALL_ENDS, LATE, STAMPS, FIRST_ENDS = STAMPS, LAST_STARTS_NEGATED, STREAM_STAMPS };
static const double no_stamp = -1e300;     /* smaller than any value in MPI_MAX */
static const double resync_seconds = 1.0; /* clocks of two machines drift by microseconds per second */
static const double jump_seconds = 1; /* a larger difference between ranks means that a clock has jumped */

typedef struct {
  const Program *program;
  const Options *options;
  const Scheme *aligned; /* NULL: only rank 0 measures time, or the pass does */
  bool clocks;           /* several ranks need a common clock */
  Alignment *alignment;
  Run run;
  void *state;
  double *stamps, *reduced;
  int nstamps;                       /* of a sample */
  double *counted, *computed;        /* of this rank; only those of rank 0 are read; NULL if there are none */
  int capacity;
  double chunk_start;         /* own clock: begin of the next chunk's time */
  double estimate, spent; /* rank 0: of one sample; of all chunks */
  double chunk_seconds;         /* rank 0: no sample of this chunk can have taken longer */
  bool clock_jumped;            /* rank 0: a rank's clock has jumped in this chunk */
} Measurement;

/* Stamps of a rank's clock in one sample. */
typedef struct {
  double start, first_end, last_start, end;
} Times;

/* The passes of one sample: a rank begins a wave as soon as it has finished the previous one itself. */
static Times take_waves(Measurement *m, void (*pass)(void *state))
{
  Run *run = &m->run;
  Times times = {.start = clock_now()};
  for (run->wave = 0; run->wave < run->waves; run->wave++) {
    if (run->wave > 0 && run->wave == run->waves - 1) times.last_start = clock_now();
    pass(m->state);
    if (run->wave == 0 && run->waves > 1) times.first_end = clock_now();
  }
  times.end = clock_now();
  return times;
}

static void stamp_sample(Measurement *m, int n, int i, Times times, Lateness late)
{
  const Run *run = &m->run;
  double shift = m->aligned ? m->alignment->offset : 0;
  bool counts = m->aligned ? run->participates : run->rank == 0;
  bool ends = counts && (!m->aligned || run->finish < 0 || run->finish == run->rank);
  m->stamps[STARTS_NEGATED * n + i] = counts ? shift - times.start : no_stamp;
  m->stamps[STARTS * n + i] = counts ? times.start - shift : no_stamp;
  m->stamps[ENDS * n + i] = ends ? times.end - shift : no_stamp;
  m->stamps[ALL_ENDS * n + i] = counts ? times.end - shift : no_stamp;
  m->stamps[LATE * n + i] = counts ? late : IN_TIME;
  if (run->waves == 1) return;
  m->stamps[FIRST_ENDS * n + i] = ends ? times.first_end - shift : no_stamp;
  m->stamps[LAST_STARTS_NEGATED * n + i] = counts ? shift - times.last_start : no_stamp;
}

/* The time since the previous call, which includes all samples since then: the minimum over the ranks' clocks, since a
 * clock may jump ahead, as that of a machine that is migrated or suspended. */
static double agree_on_elapsed_time(double *chunk_start, bool *clock_jumped)
{
  if (!COMMODEL_SIMULATED) MPI_TRY(MPI_Barrier(MPI_COMM_WORLD));
  double now = clock_now(), shortest = now - *chunk_start, both[2] = {shortest, -shortest}, reduced[2] = {shortest, -shortest};
  if (!COMMODEL_SIMULATED) MPI_TRY(MPI_Allreduce(both, reduced, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
  *chunk_start = now;
  *clock_jumped = reduced[0] + reduced[1] > jump_seconds;
  return -reduced[1];
}

static void take_chunk(Measurement *m, int n)
{
  if (n > m->capacity) {
    free(m->stamps);
    free(m->reduced);
    m->capacity = n;
    m->stamps = allocate((size_t)n * (size_t)m->nstamps, sizeof(double));
    m->reduced = allocate((size_t)n * (size_t)m->nstamps, sizeof(double));
    free(m->counted);
    free(m->computed);
    m->counted = m->program->counts ? allocate((size_t)n, sizeof(double)) : NULL;
    m->computed = m->program->computes ? allocate((size_t)n, sizeof(double)) : NULL;
  }
  if (m->aligned) m->aligned->begin(m->alignment);
  for (int i = 0; i < n; i++) {
    Lateness late = IN_TIME;
    if (m->program->before_alignment) m->program->before_alignment(m->state);
    if (m->aligned)
      late = m->aligned->align(m->alignment, i);
    else
      wait_until_all_ready();
    m->run.excluded = m->run.counted = 0;
    Times times = take_waves(m, m->program->pass);
    if (m->program->timing == TIMED_BY_PASS) {
      times = (Times){.end = m->run.seconds};
      late = m->run.late;
    }
    times.end -= m->run.excluded;
    stamp_sample(m, n, i, times, late);
    if (m->counted) m->counted[i] = m->run.counted;
    if (m->computed) m->computed[i] = m->run.computation;
  }
  if (m->aligned) m->aligned->end(m->alignment, n);
  MPI_TRY(MPI_Reduce(m->stamps, m->reduced, n * m->nstamps, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
  m->chunk_seconds = agree_on_elapsed_time(&m->chunk_start, &m->clock_jumped);
  m->spent += m->chunk_seconds;
}

/* A latency between two ranks' clocks; NaN if the clocks may differ by half of it. */
static double nan_unless_aligned(const Alignment *a, double latency)
{
  return 2 * a->uncertainty <= latency ? latency : NAN;
}

/* Rank 0: converts the chunk's stamps to samples. With several waves, a sample is the time between the ends of the first
 * and the last, divided by the waves after the first. If one rank ends last in both, this is a difference on one clock.
 * Latencies of the first and the last wave are between two ranks' clocks, as those of single waves. */
static void add_samples(Measurement *m, Samples *samples, int n)
{
  const Alignment *a = m->alignment;
  int with = (m->aligned ? WITH_SKEW : 0) | (m->counted ? WITH_COUNTS : 0) | (m->run.waves > 1 ? WITH_LATENCIES : 0);
  if (m->computed) with |= WITH_COMPUTATION;
  grow_samples(samples, samples->count + n, with);
  for (int i = 0; i < n; i++) {
    double earliest = -m->reduced[STARTS_NEGATED * n + i], latest = m->reduced[STARTS * n + i];
    bool at_window = m->aligned && m->aligned->starts_at_window;
    double start = at_window ? a->origin + i * a->window : earliest;
    int k = samples->count++;
    double duration = m->reduced[ENDS * n + i] - start;
    if (COMMODEL_SIMULATED && duration < 0) duration = 0; /* rounding of a wait to 1 ns */
    double seconds = duration / m->run.repeats, shortest = duration;
    if (m->run.waves > 1) {
      double end = m->reduced[ENDS * n + i], first_end = m->reduced[FIRST_ENDS * n + i];
      seconds = (end - first_end) / (m->run.waves - 1);
      shortest = first_end - start;
      samples->first[k] = nan_unless_aligned(a, shortest);
      samples->last[k] = nan_unless_aligned(a, end + m->reduced[LAST_STARTS_NEGATED * n + i]);
    }
    samples->seconds[k] = seconds;
    samples->valid[k] = m->reduced[LATE * n + i] == IN_TIME && shortest >= 0 && (COMMODEL_SIMULATED || duration <= m->chunk_seconds);
    if (m->aligned) samples->skew[k] = latest - earliest;
    if (m->counted) samples->counted[k] = m->counted[i];
    if (m->computed) samples->computation[k] = m->computed[i];
  }
}

/* Rank 0: the window of the next chunk, unless a clock has jumped, which could make it an hour long. */
static void adapt_window(Measurement *m, int n)
{
  double *duration = allocate((size_t)n, sizeof *duration);
  int late = 0;
  for (int i = 0; i < n; i++) {
    duration[i] = m->reduced[ALL_ENDS * n + i] + m->reduced[STARTS_NEGATED * n + i];
    late += m->reduced[LATE * n + i] == LATE_ARRIVAL;
    if (!COMMODEL_SIMULATED && duration[i] > m->chunk_seconds) m->clock_jumped = true; /* between the last alignment and this chunk */
  }
  if (!m->clock_jumped) fit_window(m->alignment, duration, n, late, m->reduced[LATE * n] == LATE_ARRIVAL);
  free(duration);
}

/* Whether offsets of clocks, which may be those of the last case, have to be estimated again. Rank 0 decides for all. */
static bool clocks_are_old(const Alignment *a)
{
  int old = COMMODEL_SIMULATED || clock_now() - a->synced > resync_seconds;
  if (!COMMODEL_SIMULATED) MPI_TRY(MPI_Bcast(&old, 1, MPI_INT, 0, MPI_COMM_WORLD));
  return old;
}

/* Runs warm-up samples, and sets the estimated time of a sample: that of its passes or, if samples start with windows, of a
 * window, which is much longer if clock offsets are uncertain. */
static void warm_up(Measurement *m)
{
  Alignment *a = m->alignment;
  double shortest = 0, all = 0;
  long long passes = m->options->warmup > 0 ? m->options->warmup : 1; /* a window needs the time of a sample */
  if (m->clocks && clocks_are_old(a)) align_clocks(a);
  agree_on_elapsed_time(&m->chunk_start, &m->clock_jumped);
  for (long long i = 0; i < passes; i++) {
    bool first = i == 0 && m->program->first_pass;
    if (m->program->before_alignment && !first) m->program->before_alignment(m->state);
    MPI_TRY(MPI_Barrier(MPI_COMM_WORLD));
    Times times = take_waves(m, first ? m->program->first_pass : m->program->pass);
    double duration = times.end - times.start;
    if (i == 0 || duration < shortest) shortest = duration; /* the first includes connections and checks */
  }
  MPI_TRY(MPI_Allreduce(&shortest, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
  double chunk_seconds = agree_on_elapsed_time(&m->chunk_start, &m->clock_jumped);
  if (all > chunk_seconds) all = chunk_seconds;
  init_window(a, all);
  m->estimate = m->aligned && m->aligned->starts_at_window ? a->window : all;
}

void measure_case(const Program *program, const Case *c, const Options *options, Alignment *alignment,
                  Samples *samples)
{
  Measurement m = {.program = program, .options = options, .alignment = alignment};
  m.run = (Run){.rank = alignment->rank, .ranks = alignment->ranks, .participates = true, .finish = -1, .repeats = 1,
                .waves = c->waves, .alignment = alignment};
  m.aligned = program->timing == TIMED_BY_HARNESS ? alignment->scheme : NULL;
  m.clocks = program->timing != TIMED_BY_ROOT;
  m.state = program->prepare(c, &m.run);
  m.nstamps = m.run.waves > 1 ? STREAM_STAMPS : STAMPS;
  warm_up(&m);

  struct {
    int n, resync;
    double window, lead;
  } plan = {next_chunk(options, samples, m.estimate, m.spent, !m.aligned), m.clocks && m.clock_jumped, alignment->window, alignment->lead};
  for (;;) {
    MPI_TRY(MPI_Bcast(&plan, sizeof plan, MPI_BYTE, 0, MPI_COMM_WORLD));
    if (plan.n == 0) break;
    alignment->window = plan.window;
    alignment->lead = plan.lead;
    if (plan.resync) align_clocks(alignment);
    take_chunk(&m, plan.n);
    if (alignment->rank != 0) continue;

    add_samples(&m, samples, plan.n);
    if (m.aligned) adapt_window(&m, plan.n);
    plan.window = alignment->window;
    plan.lead = alignment->lead;
    m.estimate = m.spent / samples->count;
    plan.resync = m.clocks && (m.clock_jumped || clock_now() - alignment->synced > resync_seconds);
    samples->stop = choose_stop(options, samples, m.spent);
    plan.n = samples->stop == STOP_NONE ? next_chunk(options, samples, m.estimate, m.spent, !m.aligned) : 0;
  }
  program->cleanup(m.state);
  free(m.stamps);
  free(m.reduced);
  free(m.counted);
  free(m.computed);
}
