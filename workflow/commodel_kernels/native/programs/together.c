/* together.c: communication with a common start of all ranks, repeated until no rank starts late, up to MAX_ATTEMPTS times.
 *
 * Ranks may be preempted during long waits for the start, so the lead is the shortest with which all ranks receive the
 * start in time. If a rank starts late, its delay would be part of the time, so the communication is repeated.
 */
#include "kernels.h"

enum { MAX_ATTEMPTS = 10 };
static const double min_lead = 1e-5, max_lead = 1e-2; /* seconds */

AlignedRuns make_aligned_runs(Alignment *alignment) { return (AlignedRuns){.alignment = alignment, .lead = min_lead}; }

double run_aligned(AlignedRuns *t, double (*communicate)(void *state, int k), void *state, int k)
{
  for (int attempt = 1;; attempt++) {
    Lateness late = align_pass(t->alignment, t->lead);
    double seconds = communicate(state, k);
    bool in_time = reduce_lateness(t, late);
    if (!in_time && attempt < MAX_ATTEMPTS) continue;
    t->late += !in_time;
    return seconds;
  }
}

bool reduce_lateness(AlignedRuns *t, Lateness late)
{
  int own = late, worst = late;
  MPI_TRY(MPI_Allreduce(&own, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
  if (worst == LATE_ARRIVAL && t->lead < max_lead) t->lead *= 2;
  return worst == IN_TIME;
}
