/* measure.c: one case: warm-up, chunks of samples, and the decision after each chunk whether that is enough.
 *
 * Stamps stay on their ranks until a chunk ends; then one MPI_Reduce brings earliest start, latest start, latest end
 * and lateness of every sample to rank 0.
 */
#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STARTS_NEGATED, STARTS, ENDS, ALL_ENDS, LATE, STAMPS, FIRST_ENDS = STAMPS, LAST_STARTS_NEGATED, STREAM_STAMPS };
static const double nothing = -1e300;     /* smaller than any value in MPI_MAX */
static const double resync_seconds = 1.0; /* clocks of two machines drift by microseconds per second */
static const double jump_seconds = 1; /* a larger difference of ranks means that a clock has jumped */

typedef struct {
  const Program *program;
  const Options *options;
  const Scheme *aligned; /* NULL: only rank 0 measures time, or the pass does */
  bool clocks;           /* several ranks need a common clock */
  Alignment *alignment;
  Run run;
  void *state;
  double *stamps, *joined;
  int nstamps;                       /* of a sample */
  double *counted, *computed;        /* of this rank; only those of rank 0 are read; NULL if there are none */
  int room;
  double entered;         /* own clock: begin of the next chunk's time */
  double estimate, spent; /* rank 0: of one pass; of all chunks */
  double longest;         /* rank 0: no sample of this chunk can have taken longer */
  bool jumped;            /* rank 0: a rank's clock has jumped in this chunk */
} Measurement;

/* Stamps of a rank's clock in one sample. */
typedef struct {
  double start, first_end, last_start, end;
} Times;

/* The passes of one sample: a rank begins a wave as soon as it is itself done with the one before. */
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

static void stamp_sample(Measurement *m, int n, int i, Times times, Late late)
{
  const Run *run = &m->run;
  double shift = m->aligned ? m->alignment->offset : 0;
  bool counts = m->aligned ? run->takes_part : run->rank == 0;
  bool ends = counts && (!m->aligned || run->finish < 0 || run->finish == run->rank);
  m->stamps[STARTS_NEGATED * n + i] = counts ? shift - times.start : nothing;
  m->stamps[STARTS * n + i] = counts ? times.start - shift : nothing;
  m->stamps[ENDS * n + i] = ends ? times.end - shift : nothing;
  m->stamps[ALL_ENDS * n + i] = counts ? times.end - shift : nothing;
  m->stamps[LATE * n + i] = counts ? late : IN_TIME;
  if (run->waves == 1) return;
  m->stamps[FIRST_ENDS * n + i] = ends ? times.first_end - shift : nothing;
  m->stamps[LAST_STARTS_NEGATED * n + i] = counts ? shift - times.last_start : nothing;
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
    m->stamps = allocate((size_t)n * (size_t)m->nstamps, sizeof(double));
    m->joined = allocate((size_t)n * (size_t)m->nstamps, sizeof(double));
    free(m->counted);
    free(m->computed);
    m->counted = m->program->counts ? allocate((size_t)n, sizeof(double)) : NULL;
    m->computed = m->program->computes ? allocate((size_t)n, sizeof(double)) : NULL;
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
    Times times = take_waves(m, m->program->pass);
    if (m->program->timing == PASS_ITSELF) {
      times = (Times){.end = m->run.seconds};
      late = m->run.late;
    }
    times.end -= m->run.waited;
    stamp_sample(m, n, i, times, late);
    if (m->counted) m->counted[i] = m->run.counted;
    if (m->computed) m->computed[i] = m->run.computation;
  }
  MPI_TRY(MPI_Reduce(m->stamps, m->joined, n * m->nstamps, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
  m->longest = agree_on_time(&m->entered, &m->jumped);
  m->spent += m->longest;
}

/* A time from one rank's clock to another's; NaN where their clocks may differ by half of it. */
static double nan_unless_aligned(const Alignment *a, double latency)
{
  return 2 * a->uncertainty <= latency ? latency : NAN;
}

/* Rank 0: the chunk's stamps become samples. Of several waves that is the time between the ends of the first and the
 * last, for each of them after the first: where one rank ends last in both, no other rank's clock is in it. The
 * latencies of the first and of the last run from one rank's clock to another's, as those of single waves do. */
static void add_samples(Measurement *m, Samples *samples, int n)
{
  const Alignment *a = m->alignment;
  int with = (m->aligned ? WITH_SKEW : 0) | (m->counted ? WITH_COUNTS : 0) | (m->run.waves > 1 ? WITH_LATENCIES : 0);
  if (m->computed) with |= WITH_COMPUTATION;
  grow_samples(samples, samples->count + n, with);
  for (int i = 0; i < n; i++) {
    double earliest = -m->joined[STARTS_NEGATED * n + i], latest = m->joined[STARTS * n + i];
    bool at_window = m->aligned && m->aligned->starts_at_window;
    double start = at_window ? a->origin + i * a->window : earliest;
    int k = samples->count++;
    double took = m->joined[ENDS * n + i] - start;
    if (COMMODEL_SIMULATED && took < 0) took = 0; /* rounding of a wait to 1 ns */
    double seconds = took / m->run.repeats, least = took;
    if (m->run.waves > 1) {
      double end = m->joined[ENDS * n + i], first_end = m->joined[FIRST_ENDS * n + i];
      seconds = (end - first_end) / (m->run.waves - 1);
      least = first_end - start;
      samples->first[k] = nan_unless_aligned(a, least);
      samples->last[k] = nan_unless_aligned(a, end + m->joined[LAST_STARTS_NEGATED * n + i]);
    }
    samples->seconds[k] = seconds;
    samples->valid[k] = m->joined[LATE * n + i] == IN_TIME && least >= 0 && (COMMODEL_SIMULATED || took <= m->longest);
    if (m->aligned) samples->skew[k] = latest - earliest;
    if (m->counted) samples->counted[k] = m->counted[i];
    if (m->computed) samples->computation[k] = m->computed[i];
  }
}

/* Rank 0: the window of the next chunk, unless a clock jumped: one of an hour would be waited for. */
static void adapt_window(Measurement *m, int n)
{
  double *took = allocate((size_t)n, sizeof *took);
  int late = 0;
  for (int i = 0; i < n; i++) {
    took[i] = m->joined[ALL_ENDS * n + i] + m->joined[STARTS_NEGATED * n + i];
    late += m->joined[LATE * n + i] == LATE_ARRIVAL;
    if (!COMMODEL_SIMULATED && took[i] > m->longest) m->jumped = true; /* before this chunk, after the last alignment */
  }
  if (!m->jumped) fit_window(m->alignment, took, n, late, m->joined[LATE * n] == LATE_ARRIVAL);
  free(took);
}

/* Clocks that were just compared for the last case need no new comparison. Rank 0 decides for all. */
static bool clocks_are_old(const Alignment *a)
{
  int old = COMMODEL_SIMULATED || clock_now() - a->synced > resync_seconds;
  if (!COMMODEL_SIMULATED) MPI_TRY(MPI_Bcast(&old, 1, MPI_INT, 0, MPI_COMM_WORLD));
  return old;
}

/* Leaves what a sample is likely to cost: as long as a pass or, if samples start at windows, as a window, which is far
 * longer where clocks are known badly. */
static void warm_up(Measurement *m)
{
  Alignment *a = m->alignment;
  double least = 0, all = 0;
  long long passes = m->options->warmup > 0 ? m->options->warmup : 1; /* a window needs the time of a pass */
  if (m->clocks && clocks_are_old(a)) align_clocks(a);
  agree_on_time(&m->entered, &m->jumped);
  for (long long i = 0; i < passes; i++) {
    bool first = i == 0 && m->program->first_pass;
    if (m->program->arm && !first) m->program->arm(m->state);
    MPI_TRY(MPI_Barrier(MPI_COMM_WORLD));
    Times times = take_waves(m, first ? m->program->first_pass : m->program->pass);
    double took = times.end - times.start;
    if (i == 0 || took < least) least = took; /* the first includes connections and checks */
  }
  MPI_TRY(MPI_Allreduce(&least, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
  double longest = agree_on_time(&m->entered, &m->jumped);
  if (all > longest) all = longest;
  first_window(a, all);
  m->estimate = m->aligned && m->aligned->starts_at_window ? a->window : all;
}

void measure_case(const Program *program, const Case *c, const Options *options, Alignment *alignment,
                  Samples *samples)
{
  Measurement m = {.program = program, .options = options, .alignment = alignment};
  m.run = (Run){.rank = alignment->rank, .ranks = alignment->ranks, .takes_part = true, .finish = -1, .repeats = 1,
                .waves = c->waves, .alignment = alignment};
  m.aligned = program->timing == ALL_TOGETHER ? alignment->scheme : NULL;
  m.clocks = program->timing != ROOT_ALONE;
  m.state = program->prepare(c, &m.run);
  m.nstamps = m.run.waves > 1 ? STREAM_STAMPS : STAMPS;
  warm_up(&m);

  struct {
    int n, resync;
    double window, lead;
  } plan = {next_chunk(options, samples, m.estimate, m.spent), m.clocks && m.jumped, alignment->window, alignment->lead};
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
    plan.resync = m.clocks && (m.jumped || clock_now() - alignment->synced > resync_seconds);
    samples->stop = choose_stop(options, samples, m.spent);
    plan.n = samples->stop == STOP_NONE ? next_chunk(options, samples, m.estimate, m.spent) : 0;
  }
  program->cleanup(m.state);
  free(m.stamps);
  free(m.joined);
  free(m.counted);
  free(m.computed);
}
