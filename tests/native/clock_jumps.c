/* clock_jumps.c: preloaded into a program, it makes the machine's clocks jump, as an operator or a hypervisor would.
 *
 * JUMP_AFTER seconds after the file JUMP_FILE appeared, the wall clock begins to jump by hours with every reading, forth
 * and back, and the monotonic clock of the rank that JUMP_RANK names jumps ahead by one, once.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { HOUR = 3600 };

static bool begun(void)
{
  static struct timespec first;
  struct timespec now;
  const char *file = getenv("JUMP_FILE"), *after = getenv("JUMP_AFTER");
  if (!file || !after) return false;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  if (first.tv_sec == 0 && access(file, F_OK) != 0) return false;
  if (first.tv_sec == 0) first = now;
  return (double)(now.tv_sec - first.tv_sec) + (double)(now.tv_nsec - first.tv_nsec) * 1e-9 >= atof(after);
}

static long wall_shift(void)
{
  static unsigned readings;
  return (__sync_fetch_and_add(&readings, 1) % 5) * HOUR - 2 * HOUR;
}

static long monotonic_shift(void)
{
  const char *chosen = getenv("JUMP_RANK"), *own = getenv("PMI_RANK");
  return chosen && own && strcmp(chosen, own) == 0 ? HOUR : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
  int code = (int)syscall(SYS_clock_gettime, clock, now);
  if (code != 0 || !begun()) return code;
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += wall_shift();
  if (clock == CLOCK_MONOTONIC) now->tv_sec += monotonic_shift();
  return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
  struct timespec fine;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &fine);
  *now = (struct timeval){.tv_sec = fine.tv_sec, .tv_usec = fine.tv_nsec / 1000};
  return 0;
}

time_t time(time_t *out)
{
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
