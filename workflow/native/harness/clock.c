/* clock.c: reading the clock and waiting on it.
 *
 * On a real machine a wait spins on the clock: a sleep would be late by the scheduler's tick. Under SimGrid spinning
 * never ends when smpi/wtime is 0 and costs host time otherwise, so a wait is a simulated sleep, which advances the
 * rank's simulated time by exactly its length (resolution 1 ns) whatever the speed of the simulated host.
 */
#include "harness.h"

#include <sched.h>
#include <time.h>

#if COMMODEL_SIMULATED

double clock_now(void) { return MPI_Wtime(); }

double clock_wait(double seconds)
{
  if (seconds < 0.5e-9) return 0;
  struct timespec span = {.tv_sec = (time_t)seconds};
  span.tv_nsec = (long)((seconds - (double)span.tv_sec) * 1e9 + 0.5);
  if (span.tv_nsec > 999999999) {
    span.tv_sec += 1;
    span.tv_nsec -= 1000000000;
  }
  if (nanosleep(&span, NULL) != 0) DIE("the simulated sleep of %.9e s failed", seconds);
  return (double)span.tv_sec + (double)span.tv_nsec * 1e-9;
}

void clock_wait_until(double when) { clock_wait(when - clock_now()); }

double clock_resolution(void) { return 1e-9; } /* surf/precision as smpirun sets it; MPI_Wtick says 1e-5 */

#else

/* Not MPI_Wtime: its clock depends on the library, and this clock must never be stepped. */
double clock_now(void)
{
  struct timespec now;
  if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) DIE("the monotonic clock cannot be read");
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void clock_wait_until(double when)
{
  while (clock_now() < when)
    ;
}

double clock_wait(double seconds)
{
  if (seconds <= 0) return 0;
  double start = clock_now(), now = start;
  while (now - start < seconds) {
    sched_yield(); /* lets a rank on the same processor run; the returned length includes it */
    now = clock_now();
  }
  return now - start;
}

/* The smallest step between two readings, since clock_getres is wrong on some machines. */
double clock_resolution(void)
{
  double least = 1;
  for (int i = 0; i < 1000; i++) {
    double before = clock_now(), after = before;
    for (int reading = 0; reading < 100000 && after <= before; reading++) after = clock_now();
    if (after > before && after - before < least) least = after - before;
  }
  return least;
}

#endif

void calibrate_repeats(int *repeats, void (*pass)(void *state), void *state)
{
  static const double min_seconds = 20e-6, min_resolutions = 1000;
  if (COMMODEL_SIMULATED) return;
  double wanted = clock_resolution() * min_resolutions;
  if (wanted < min_seconds) wanted = min_seconds;
  while (*repeats < 1 << 24) {
    double start = clock_now();
    pass(state);
    if (clock_now() - start >= wanted) return;
    *repeats *= 2;
  }
}
