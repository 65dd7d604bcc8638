/* stopping.c: a nonparametric two-sided 95 % interval of the median.
 *
 * For n independent samples the number below the median is binomial(n, 1/2), so [x(k), x(n+1-k)] covers the median
 * with probability 1 - 2 P(B <= k-1) (Le Boudec 2010, theorem 2.1). k is the largest rank with at least 95 %.
 */
#include "harness.h"

#include <math.h>
#include <stdlib.h>

/* The binomial is summed from the middle outwards in units of its largest term, since 2^-n would underflow. */
int median_rank(int n)
{
  if (n < MIN_SAMPLES_TO_STOP) return 0;
  double middle = 1, total = 0, half = 0;
  int centre = n / 2, lowest = centre;
  for (double term = middle; lowest >= 0 && term > 1e-20; lowest--) {
    half += term; /* P(B <= centre) from the top down */
    term *= (double)lowest / (double)(n - lowest + 1);
  }
  total = 2 * half - (n % 2 == 0 ? middle : 0);
  double below = half, term = middle;
  for (int k = centre; k > 0; k--) { /* below = P(B <= k) */
    below -= term;                   /* now P(B <= k-1) */
    if (below <= 0.025 * total) return k;
    term *= (double)k / (double)(n - k + 1);
  }
  return 0;
}

static int compare_values(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void sort_doubles(double *values, int n) { qsort(values, (size_t)n, sizeof *values, compare_values); }

double median_sorted(const double *sorted, int n)
{
  if (n == 0) return NAN;
  return n % 2 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

/* Simulated waits are rounded to 1 ns, so the interval of an empty schedule never gets narrower than that. */
bool median_is_precise(const double *sorted, int n, double precision)
{
  int k = median_rank(n);
  double allowed = 2 * precision * median_sorted(sorted, n), least = COMMODEL_SIMULATED ? 1e-9 : 0;
  return k > 0 && sorted[n - k] - sorted[k - 1] <= (allowed > least ? allowed : least);
}
