/* share.c: one network, several threads. One lock holds all of it. A thread that waits for sockets lets go of it meanwhile;
 * others that wait then wait for what that one's turn brings. */
#include "errors.h"
#include "network.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

struct Share {
  pthread_mutex_t mutex;
  pthread_cond_t turned;
  bool turning; /* a thread waits for sockets */
};

int overlay_share(OverlayNetwork *network)
{
  if (network->share) return OVERLAY_OK;
  Share *share = calloc(1, sizeof *share);
  pthread_condattr_t monotonic;
  if (!share) return overlay_fail("no memory for a lock");
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&share->mutex, NULL);
  pthread_cond_init(&share->turned, &monotonic);
  pthread_condattr_destroy(&monotonic);
  count_references_atomically();
  network->share = share;
  return OVERLAY_OK;
}

void share_free(OverlayNetwork *network)
{
  if (!network->share) return;
  pthread_cond_destroy(&network->share->turned);
  pthread_mutex_destroy(&network->share->mutex);
  free(network->share);
  network->share = NULL;
}

void share_lock(Share *share) { pthread_mutex_lock(&share->mutex); }
void share_unlock(Share *share) { pthread_mutex_unlock(&share->mutex); }

bool other_turns(const OverlayNetwork *network) { return network->share->turning; }

/* Waits until another thread's turn has received something, or for this time (below 0: without limit). */
void await_turn(OverlayNetwork *network, double seconds)
{
  if (seconds < 0) {
    pthread_cond_wait(&network->share->turned, &network->share->mutex);
    return;
  }
  double seconds_part, part = modf(now() + seconds, &seconds_part);
  struct timespec end = {.tv_sec = (time_t)seconds_part, .tv_nsec = (long)(part * 1e9)};
  pthread_cond_timedwait(&network->share->turned, &network->share->mutex, &end);
}

/* Around waiting for sockets. */
void release_turn(OverlayNetwork *network)
{
  network->share->turning = true;
  pthread_mutex_unlock(&network->share->mutex);
}

void reacquire_turn(OverlayNetwork *network)
{
  pthread_mutex_lock(&network->share->mutex);
}

void turn_done(OverlayNetwork *network)
{
  network->share->turning = false;
  pthread_cond_broadcast(&network->share->turned);
}
