/* loop.c: waiting for sockets; nothing else here ever waits. */
#include "loop.h"
#include "errors.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

double now(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void on_tick(Watch *tick, uint32_t events)
{
  uint64_t ticks;
  (void)events;
  ((Loop *)((char *)tick - offsetof(Loop, tick)))->ticked |= read(tick->fd, &ticks, sizeof ticks) > 0;
}

int loop_open(Loop *loop)
{
  *loop = (Loop){.epoll = epoll_create1(EPOLL_CLOEXEC), .tick = {.fd = -1, .ready = on_tick}};
  if (loop->epoll < 0) return overlay_fail("no epoll: %s", strerror(errno));
  loop->tick.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (loop->tick.fd < 0) overlay_fail("no timer: %s", strerror(errno));
  if (loop->tick.fd >= 0 && loop_watch(loop, &loop->tick, EPOLLIN) == OVERLAY_OK) return OVERLAY_OK;
  loop_end(loop);
  return OVERLAY_FAILED;
}

void loop_end(Loop *loop)
{
  loop_close(loop, &loop->tick);
  close(loop->epoll);
}

int loop_period(Loop *loop, double seconds)
{
  if (loop->period == seconds) return OVERLAY_OK;
  struct timespec time = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
  if (timerfd_settime(loop->tick.fd, 0, &(struct itimerspec){time, time}, NULL) != 0)
    return overlay_fail("cannot set a timer: %s", strerror(errno));
  loop->period = seconds;
  return OVERLAY_OK;
}

int loop_watch(Loop *loop, Watch *watch, uint32_t events)
{
  if (watch->events == events) return OVERLAY_OK;
  struct epoll_event event = {.events = events, .data.ptr = watch};
  if (epoll_ctl(loop->epoll, watch->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, watch->fd, &event) != 0)
    return overlay_fail("cannot watch a socket: %s", strerror(errno));
  watch->events = events;
  return OVERLAY_OK;
}

int loop_forget(Loop *loop, Watch *watch)
{
  int fd = watch->fd;
  epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, NULL);
  watch->fd = -1, watch->events = 0;
  return fd;
}

/* Closing alone leaves it in the loop where a tool has forked, and that process has the socket too. */
void loop_close(Loop *loop, Watch *watch)
{
  if (watch->fd >= 0) close(loop_forget(loop, watch));
}

int loop_wait(Loop *loop, struct epoll_event ready[static MAX_READY], double seconds)
{
  /* Rounded up: a wait that ends before its time only adds an iteration. */
  int milliseconds = seconds < 0 ? -1 : seconds > 1e6 ? 1000000000 : (int)(seconds * 1e3 + 0.999);
  int count = epoll_wait(loop->epoll, ready, MAX_READY, milliseconds);
  if (count < 0 && errno != EINTR) return overlay_fail("cannot wait for sockets: %s", strerror(errno));
  return count < 0 ? 0 : count;
}

void loop_call(struct epoll_event *ready, int count)
{
  for (int i = 0; i < count; i++) {
    Watch *watch = ready[i].data.ptr;
    if (watch->fd >= 0) watch->ready(watch, ready[i].events);
  }
}
