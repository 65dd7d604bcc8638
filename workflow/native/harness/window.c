/* window.c: the length of a sample's window: that of its passes, with slack for late ranks and for uncertain clocks. */
#include "harness.h"

static const double min_lead = 1e-3, min_window = 2e-5, max_late_share = 0.1;
static const double min_slack = 1.5, max_slack = 10; /* from max_slack on, the slack is not increased */

static double window_length(const Alignment *a, double sample)
{
  return min_window + a->slack * sample + 4 * a->uncertainty;
}

void init_window(Alignment *a, double sample)
{
  a->slack = min_slack;
  a->window = window_length(a, sample);
  a->lead = min_lead;
}

/* Fits the next window to the fast samples of a chunk (first quartile), with more slack if over a tenth of them had late
 * ranks. Ranks that were preempted while waiting, and samples that this delayed, do not make the window longer: a longer wait is preempted
 * more often, so windows would stay long. */
void fit_window(Alignment *a, double *durations, int n, int late, bool first_late)
{
  sort_doubles(durations, n);
  if (late > max_late_share * n) {
    if (a->slack < max_slack) a->slack *= 1.5;
    if (first_late) a->lead *= 1.5; /* no earlier sample can have delayed it */
  }
  a->window = window_length(a, durations[n / 4]);
}
