/* share.c: one network, several threads. One mutex locks the whole network. A thread that waits for sockets unlocks it.
 * Other threads that have to wait meanwhile wait until that thread has handled its events. */
#include "errors.h"
#include "network.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

struct Share {
  pthread_mutex_t mutex;
  pthread_cond_t events_handled;
  bool is_waiting; /* a thread waits for sockets, or handles the events of this wait */
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
  pthread_cond_init(&share->events_handled, &monotonic);
  pthread_condattr_destroy(&monotonic);
  count_references_atomically();
  network->share = share;
  return OVERLAY_OK;
}

void share_free(OverlayNetwork *network)
{
  if (!network->share) return;
  pthread_cond_destroy(&network->share->events_handled);
  pthread_mutex_destroy(&network->share->mutex);
  free(network->share);
  network->share = NULL;
}

void share_lock(Share *share) { pthread_mutex_lock(&share->mutex); }
void share_unlock(Share *share) { pthread_mutex_unlock(&share->mutex); }

bool another_thread_waits(const OverlayNetwork *network) { return network->share->is_waiting; }

/* Waits until the thread that waits for sockets has handled its events, or for this time (below 0: without limit). */
void await_other_thread(OverlayNetwork *network, double seconds)
{
  if (seconds < 0) {
    pthread_cond_wait(&network->share->events_handled, &network->share->mutex);
    return;
  }
  double seconds_part, part = modf(now() + seconds, &seconds_part);
  struct timespec end = {.tv_sec = (time_t)seconds_part, .tv_nsec = (long)(part * 1e9)};
  pthread_cond_timedwait(&network->share->events_handled, &network->share->mutex, &end);
}

void unlock_while_waiting(OverlayNetwork *network)
{
  network->share->is_waiting = true;
  pthread_mutex_unlock(&network->share->mutex);
}

void lock_after_waiting(OverlayNetwork *network)
{
  pthread_mutex_lock(&network->share->mutex);
}

void wake_waiting_threads(OverlayNetwork *network)
{
  network->share->is_waiting = false;
  pthread_cond_broadcast(&network->share->events_handled);
}
