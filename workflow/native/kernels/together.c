/* together.c: communication that all ranks begin at once, repeated until no rank was late.
 *
 * Long waits for a start are preempted, so the lead is the shortest with which all ranks learn the start in time. Delays
 * by a rank that starts late are not the messages' time, so the messages are sent again.
 */
#include "kernels.h"

enum { MOST_ATTEMPTS = 10 };
static const double least_lead = 1e-5, most_lead = 1e-2; /* seconds */

Together open_together(Alignment *alignment) { return (Together){.alignment = alignment, .lead = least_lead}; }

double communicate_together(Together *t, double (*communicate)(void *state, int k), void *state, int k)
{
  for (int attempt = 1;; attempt++) {
    int late = start_together(t->alignment, t->lead), worst = late;
    double seconds = communicate(state, k);
    MPI_TRY(MPI_Allreduce(&late, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    if (worst == LATE_ARRIVAL && t->lead < most_lead) t->lead *= 2;
    if (worst != IN_TIME && attempt < MOST_ATTEMPTS) continue;
    t->late += worst != IN_TIME;
    return seconds;
  }
}
