/* align.c: alignment of ranks before a sample.
 *
 * A barrier adds its own skew to the measurement: a simulated, noise-free broadcast was measured 21 % too short. The
 * default is therefore windows on synchronised clocks: sample i starts at origin + i * window on rank 0's clock, and a
 * rank that arrives later invalidates the sample (Hoefler, Schneider, Lumsdaine 2010; Hunold, Carpen-Amarie 2015).
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 20, TAG = 0 };
static const double start_tolerance = 1e-6; /* seconds; a rank that starts later was preempted */
static const double max_wait_excess = 1; /* seconds; a longer wait means that a clock has jumped */

#if COMMODEL_SIMULATED

/* All simulated ranks read one clock. */
void align_clocks(Alignment *a)
{
  a->offset = 0;
  a->uncertainty = 0;
  a->synced = clock_now();
}

#else

/* The offset of a peer's clock, from the fastest of ROUNDS round trips: the peer read its clock about halfway. */
static void probe_clock(int peer, double *offset, double *uncertainty)
{
  double best = 0;
  for (int i = 0; i <= ROUNDS; i++) { /* round 0 warms the connection up */
    double peer_time, sent = clock_now();
    MPI_TRY(MPI_Send(&sent, 1, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD));
    MPI_TRY(MPI_Recv(&peer_time, 1, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    double trip = clock_now() - sent;
    if (i == 0 || (i > 1 && trip >= best)) continue;
    best = trip;
    *offset = peer_time - (sent + trip / 2);
    *uncertainty = trip / 2;
  }
}

static void reply_to_clock_probes(void)
{
  for (int i = 0; i <= ROUNDS; i++) {
    double ignored;
    MPI_TRY(MPI_Recv(&ignored, 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    double now = clock_now();
    MPI_TRY(MPI_Send(&now, 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD));
  }
}

void align_clocks(Alignment *a)
{
  double *estimates = NULL, own[2] = {0, 0};
  if (a->rank == 0) {
    estimates = allocate((size_t)a->ranks, sizeof own);
    for (int r = 1; r < a->ranks; r++) probe_clock(r, &estimates[2 * r], &estimates[2 * r + 1]);
  } else {
    reply_to_clock_probes();
  }
  MPI_TRY(MPI_Scatter(estimates, 2, MPI_DOUBLE, own, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD));
  free(estimates);
  a->offset = own[0];
  a->synced = clock_now();
  MPI_TRY(MPI_Allreduce(&own[1], &a->uncertainty, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
}

#endif

/* A reduction: its root leaves it only after every rank has entered, and the other ranks do not wait for the root. */
void wait_until_all_ready(void)
{
  int here = 1, all = 0;
  MPI_TRY(MPI_Reduce(&here, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
}

static void begin_window(Alignment *a)
{
  a->origin = clock_now() + a->lead; /* only rank 0's value is used */
  MPI_TRY(MPI_Bcast(&a->origin, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD));
}

static Lateness align_window(Alignment *a, int i)
{
  double target = a->origin + i * a->window + a->offset;
  double wait = target - clock_now();
  if (wait < 0 || wait > a->lead + a->window + max_wait_excess) return LATE_ARRIVAL;
  clock_wait_until(target);
  return clock_now() > target + start_tolerance ? LATE_START : IN_TIME;
}

/* A rank that has finished the last sample waits for the end of its window: messages that it sent earlier would delay
 * those of the sample that are still in flight. */
static void end_window(const Alignment *a, int samples)
{
  double end = a->origin + samples * a->window + a->offset, wait = end - clock_now();
  if (wait > 0 && wait <= a->window + max_wait_excess) clock_wait_until(end);
}

static void begin_barrier(Alignment *a) { (void)a; }

static Lateness align_barrier(Alignment *a, int i)
{
  (void)a, (void)i;
  MPI_TRY(MPI_Barrier(MPI_COMM_WORLD));
  return IN_TIME;
}

static void end_barrier(const Alignment *a, int samples) { (void)a, (void)samples; }

static const Scheme schemes[] = {
    {"window", "synchronised clocks, every sample starts at an agreed time", begin_window, align_window, end_window, true},
    {"barrier", "MPI_Barrier, time from the earliest start", begin_barrier, align_barrier, end_barrier, false},
};

Lateness align_pass(Alignment *a, double lead)
{
  if (a->scheme->starts_at_window) MPI_TRY(MPI_Barrier(MPI_COMM_WORLD)); /* rank 0 sets the origin when all are ready */
  a->lead = lead;
  a->scheme->begin(a);
  return a->scheme->align(a, 0);
}

const Scheme *find_scheme(const char *name)
{
  for (size_t k = 0; k < sizeof schemes / sizeof schemes[0]; k++)
    if (strcmp(schemes[k].name, name) == 0) return &schemes[k];
  return NULL;
}

const char *scheme_names(void) { return "window or barrier"; }
