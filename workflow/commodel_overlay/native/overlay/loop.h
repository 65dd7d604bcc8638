/* loop.h: one epoll loop, level-triggered, and what it watches. */
#ifndef OVERLAY_LOOP_H
#define OVERLAY_LOOP_H

#include <stdint.h>
#include <sys/epoll.h>

typedef struct Watch Watch;
struct Watch {
  int fd; /* -1: nothing is watched */
  uint32_t events;
  void (*ready)(Watch *watch, uint32_t events);
};

/* Timers for each wait, or reading the clock, would take much of the time of a packet. There is one periodic tick instead. */
typedef struct {
  int epoll;
  Watch tick;
  double period;
  int ticked; /* a tick has occurred since this was set to 0 */
} Loop;

double now(void); /* seconds of the monotonic clock */
int loop_open(Loop *loop);
void loop_end(Loop *loop);
int loop_period(Loop *loop, double seconds);               /* of the tick */
int loop_watch(Loop *loop, Watch *watch, uint32_t events); /* changes the watched events */
int loop_forget(Loop *loop, Watch *watch);                 /* stops watching the socket, without closing it */
void loop_close(Loop *loop, Watch *watch); /* closes its socket, too; further events of the same iteration find fd -1 */
enum { MAX_READY = 64 };
/* Waits for an event, the tick included, or for this time (below 0: without limit). Returns their number; OVERLAY_FAILED. */
int loop_wait(Loop *loop, struct epoll_event ready[static MAX_READY], double seconds);
void loop_call(struct epoll_event *ready, int count);

#endif
