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

/* A timer for each wait, and even a look at the clock, would cost a good part of a packet: so there is one tick. */
typedef struct {
  int epoll;
  Watch tick;
  double period;
  int ticked; /* since this was set to 0; once also where it was more often */
} Loop;

double now(void); /* seconds of the monotonic clock */
int loop_open(Loop *loop);
void loop_end(Loop *loop);
int loop_period(Loop *loop, double seconds);               /* of the tick */
int loop_watch(Loop *loop, Watch *watch, uint32_t events); /* from now on for these */
int loop_forget(Loop *loop, Watch *watch);                 /* the socket, which is somebody else's then */
void loop_close(Loop *loop, Watch *watch); /* and its socket; further events of the same turn find fd -1 */
enum { MOST_READY = 64 };
/* Waits until something is ready, the tick too, or the time has come (below 0: never). How many are; OVERLAY_FAILED. */
int loop_wait(Loop *loop, struct epoll_event ready[static MOST_READY], double seconds);
void loop_call(struct epoll_event *ready, int count);

#endif
