/* network.c: one process of the tree: its event loop, and packets to its neighbours. An iteration of the event loop is one
 * call of network_progress(). */
#include "network.h"
#include "arguments.h"
#include "errors.h"
#include "skew.h"
#include "streams.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EARLY_FLUSH = 128 << 10 }; /* bytes for a neighbour that do not wait for the end of an iteration */
static const double start_period = 0.05;

static void lines_free(char **lines)
{
  for (char **line = lines; line && *line; line++) free(*line);
  free(lines);
}

OverlayNetwork *network_new(Role role)
{
  OverlayNetwork *network = calloc(1, sizeof *network);
  if (!network) return overlay_fail("no memory for a network"), NULL;
  network->role = role;
  network->listener.fd = network->parent.peer.watch.fd = -1;
  network->parent.index = -1;
  network->parent.network = network;
  network->broadcast.network = network;
  network->settings = (Settings){.silence_seconds = 20, .window = DEFAULT_WINDOW};
  network->started = now();
  if (loop_open(&network->loop) != OVERLAY_OK) {
    free(network);
    return NULL;
  }
  return network;
}

void network_free(OverlayNetwork *network)
{
  streams_free(network);
  peer_close(&network->parent.peer);
  free(network->parent.why);
  for (int i = 0; i < network->nchildren; i++) {
    peer_close(&network->children[i]->peer);
    overlay_release(network->children[i]->rejoin);
    free(network->children[i]->why);
    free(network->children[i]);
  }
  stop_listening(network);
  strangers_free(network);
  remove_connection_file(network);
  for (int node = 0; network->addresses && node < network->tree->nodes; node++) free(network->addresses[node]);
  free(network->addresses);
  skew_free(network);
  share_free(network);
  free(network->rows), free(network->events), free(network->parent_now);
  topology_free(network->tree);
  lines_free(network->settings.backend), lines_free(network->settings.launch), lines_free(network->lineage);
  free(network->settings.program), free(network->settings.folder);
  free(network->broadcast.ranges), free(network->lost), free(network->owner), free(network->children);
  loop_end(&network->loop);
  explicit_bzero(network, sizeof *network); /* the token, too */
  free(network);
}

Neighbour *network_add_child(OverlayNetwork *network, int node)
{
  const Topology *tree = network->tree;
  Neighbour **children = realloc(network->children, ((size_t)network->nchildren + 1) * sizeof(Neighbour *));
  if (children) network->children = children;
  Neighbour *child = children ? calloc(1, sizeof *child) : NULL;
  if (!child) return overlay_fail("no memory for a child"), NULL;
  *child = (Neighbour){.network = network,
                       .index = network->nchildren,
                       .node = node,
                       .first = (int)network->first + tree->first[node],
                       .width = tree->width[node],
                       .is_internal = !topology_is_leaf(tree, node)};
  child->peer.watch.fd = -1;
  child->tree_up = !child->is_internal;
  network->children[network->nchildren++] = child;
  return child;
}

/* Children of the own node, and the range of all back-ends. */
int network_children(OverlayNetwork *network)
{
  const Topology *tree = network->tree;
  int count = topology_children(tree, 0, NULL), code = OVERLAY_OK;
  int *nodes = calloc((size_t)count + 1, sizeof *nodes);
  network->broadcast.ranges = calloc(2, sizeof(uint32_t));
  network->lost = calloc((size_t)tree->leaves, sizeof *network->lost);
  network->owner = calloc((size_t)tree->leaves, sizeof *network->owner);
  if (!network->lost || !network->owner || !nodes || !network->broadcast.ranges)
    code = overlay_fail("no memory for %d children", count);
  else
    topology_children(tree, 0, nodes);
  for (int leaf = 0; code == OVERLAY_OK && leaf < tree->leaves; leaf++) network->lost[leaf] = network->settings.join;
  for (int i = 0; code == OVERLAY_OK && i < count; i++) {
    if (!network_add_child(network, nodes[i])) code = OVERLAY_FAILED;
    for (int leaf = 0; code == OVERLAY_OK && leaf < tree->width[nodes[i]]; leaf++)
      network->owner[tree->first[nodes[i]] + leaf] = i;
  }
  free(nodes);
  network->nstarted = network->nchildren;
  if (code != OVERLAY_OK) return code;
  network->broadcast.ranges[1] = network->broadcast.size = network->backends;
  network->broadcast.pairs = 1;
  return OVERLAY_OK;
}

void network_open_peer(Neighbour *neighbour, int socket)
{
  /* The kernel of a host that is there answers these probes also while its process is busy. */
  int silence_seconds = (int)neighbour->network->settings.silence_seconds;
  int on = 1, period = silence_seconds > 8 ? silence_seconds / 4 : 2, probes = 3;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &period, sizeof period);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &period, sizeof period);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  neighbour->peer.received = control_received;
  neighbour->peer.lost = neighbour_lost;
  neighbour->attached = true;
  peer_open(&neighbour->peer, &neighbour->network->loop, socket);
}

double network_clock(const OverlayNetwork *network)
{
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9 + network->clock_ahead;
}

/* ---- sending ---- */
static bool blocked(const Neighbour *neighbour) { return neighbour->peer.watch.events & EPOLLOUT; }

void post(Neighbour *to, OverlayPacket *packet)
{
  peer_send(&to->peer, packet);
  if (!peer_is_up(&to->peer) || blocked(to)) return;
  if (to->peer.queue.bytes >= EARLY_FLUSH) return peer_flush(&to->peer);
  if (to->unflushed) return;
  to->unflushed = true;
  OverlayNetwork *network = to->network;
  if (to->index < 0) return;
  if (network->unflushed)
    network->unflushed_last->next = to;
  else
    network->unflushed = to;
  network->unflushed_last = to, to->next = NULL;
}

void post_control(Neighbour *to, Kind kind, uint32_t stream, const char *format, ...)
{
  if (!peer_is_up(&to->peer)) return;
  va_list arguments;
  va_start(arguments, format);
  OverlayPacket *packet = pack_arguments(0, format, arguments);
  va_end(arguments);
  if (!packet) return peer_lose(&to->peer, overlay_error());
  packet->frame->kind = (uint8_t)kind, packet->frame->stream = stream;
  post(to, packet);
}

static void flush(Neighbour *neighbour)
{
  neighbour->unflushed = false;
  if (!blocked(neighbour)) peer_flush(&neighbour->peer);
}

void network_flush(OverlayNetwork *network)
{
  if (network->parent.unflushed) flush(&network->parent);
  for (Neighbour *next; (next = network->unflushed);) { /* in order: trees have the child first whose sub-tree takes longest */
    network->unflushed = next->next;
    flush(next);
  }
}

/* ---- the event loop ---- */
static double check_period(const OverlayNetwork *network)
{
  if (network->state == STARTING || network->strangers) return start_period;
  return network->settings.silence_seconds / SILENCE_CHECKS;
}

static void check(OverlayNetwork *network)
{
  network->loop.ticked = 0;
  if (network->state == STARTING) check_failed_starts(network);
  if (network->strangers) check_strangers(network);
  /* Ticks are counted, not time: while the tool does not receive, no neighbour counts as silent. */
  network->since_silence_check += check_period(network);
  if (network->since_silence_check < network->settings.silence_seconds / SILENCE_CHECKS) return;
  network->since_silence_check = 0;
  check_silence(network);
}

/* A back-end has one socket. Waiting in recv() itself spares it a call for each packet; the socket's own time-out is
 * its tick then. */
static bool waits_for_parent_only(const OverlayNetwork *network)
{
  return network->role == BACK_END && network->state == RUNNING && peer_is_up(&network->parent.peer) &&
         !blocked(&network->parent) && !network->share;
}

static int wait_for_parent(OverlayNetwork *network)
{
  double period = check_period(network);
  if (network->receive_timeout != period) {
    struct timeval time = {.tv_sec = (time_t)period, .tv_usec = (suseconds_t)((period - (double)(time_t)period) * 1e6)};
    if (setsockopt(network->parent.peer.watch.fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) != 0)
      return overlay_fail("cannot limit the time of a receive: %s", strerror(errno));
    /* The timer still has the short start-up period. */
    if (loop_period(&network->loop, period) != OVERLAY_OK) return OVERLAY_FAILED;
    network->receive_timeout = period;
  }
  if (!peer_receive(&network->parent.peer, 0)) network->loop.ticked = 1;
  return OVERLAY_OK;
}

static int wait_for_any(OverlayNetwork *network, double seconds)
{
  if (loop_period(&network->loop, check_period(network)) != OVERLAY_OK) return OVERLAY_FAILED;
  struct epoll_event ready[MAX_READY];
  if (network->share) unlock_while_waiting(network);
  int count = loop_wait(&network->loop, ready, seconds);
  if (network->share) lock_after_waiting(network);
  loop_call(ready, count);
  if (network->share) wake_waiting_threads(network);
  return count < 0 ? OVERLAY_FAILED : OVERLAY_OK;
}

int network_progress(OverlayNetwork *network, double seconds)
{
  network_flush(network);
  double deadline = network->timed ? streams_deadline(network) : 0, wait = deadline > 0 ? deadline - now() : -1;
  if (deadline > 0 && wait < 0) wait = 0;
  if (seconds >= 0 && (wait < 0 || seconds < wait)) wait = seconds;
  if (network->share && another_thread_waits(network)) {
    handle_losses(network);
    await_other_thread(network, wait);
    return OVERLAY_OK;
  }
  bool parent_only = wait < 0 && waits_for_parent_only(network);
  if ((parent_only ? wait_for_parent(network) : wait_for_any(network, wait)) != OVERLAY_OK) return OVERLAY_FAILED;
  if (network->timed) streams_timed(network);
  if (network->loop.ticked) check(network);
  handle_losses(network);
  network_flush(network);
  handle_losses(network);
  return OVERLAY_OK;
}
