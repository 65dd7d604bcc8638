/* window.c: the length of a sample's window: that of a pass, with slack for late ranks and for clocks. */
#include "harness.h"

static const double least_lead = 1e-3, least_window = 2e-5, late_tolerated = 0.1;
static const double least_slack = 1.5, most_slack = 10;

static double window_length(const Alignment *a, double pass)
{
  return least_window + a->slack * pass + 4 * a->uncertainty;
}

void first_window(Alignment *a, double pass)
{
  a->slack = least_slack;
  a->window = window_length(a, pass);
  a->lead = least_lead;
}

/* The next window fits a quick pass of these, with more slack when ranks arrived late. Neither a rank preempted while it
 * waited nor a pass stretched by that is a reason for more: a longer wait is preempted more often, and the windows would
 * keep themselves long. */
void fit_window(Alignment *a, double *took, int n, int late, bool first_late)
{
  sort_doubles(took, n);
  if (late > late_tolerated * n) {
    if (a->slack < most_slack) a->slack *= 1.5;
    if (first_late) a->lead *= 1.5; /* no earlier sample can have delayed it */
  }
  a->window = window_length(a, took[n / 4]);
}
