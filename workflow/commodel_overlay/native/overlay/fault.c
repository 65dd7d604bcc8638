/* fault.c: neighbours that are gone or silent, and what becomes of the others. */
#include "errors.h"
#include "skew.h"
#include "streams.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Only recorded here, since the caller may be in the middle of a stream's work. */
void neighbour_lost(Peer *peer, const char *why)
{
  Neighbour *neighbour = (Neighbour *)peer;
  free(neighbour->why);
  neighbour->why = strdup(why ? why : "");
  neighbour->network->has_losses = true;
}

/* Marks those of the back-ends that are behind the child as lost, and reports them to the parent. In the front-end, ends
 * the streams that stop at a loss. */
void mark_lost(OverlayNetwork *network, const Neighbour *child, int first, int width, const char *why)
{
  int end = first - (int)network->first + width;
  bool any = false;
  for (int leaf = first - (int)network->first, begin; leaf < end; leaf++) {
    for (begin = leaf; leaf < end && network->owner[leaf] == child->index && !network->lost[leaf]; leaf++)
      network->lost[leaf] = true;
    if (leaf == begin) continue;
    any = true;
    uint32_t range[] = {network->first + (uint32_t)begin, (uint32_t)(leaf - begin)};
    if (network->role == INTERNAL) post_control(&network->parent, LOST, 0, "%aud %s", range, 2, why);
    note_event(network,
               (OverlayEvent){.kind = OVERLAY_EVENT_LOST, .first = (int)range[0], .count = (int)range[1], .stream = -1}, why);
  }
  if (!any || network->role != FRONT_END) return;
  log_line("%s", why);
  for (int bucket = 0; bucket < 64; bucket++)
    for (OverlayStream *stream = network->streams[bucket]; stream; stream = stream->next)
      if (stream->options.on_loss == OVERLAY_STOP && stream_missing(stream, NULL, 0) > 0)
        stream_end(stream, OVERLAY_LOST, why);
}

/* What is behind a child has not attached here, or is no more. */
static void sub_tree_lost(Neighbour *child)
{
  mark_lost(child->network, child, child->first, child->width, child->why); /* before any wave that is short of them */
  streams_remove_child(child->network, child);
  free(child->why);
  child->why = NULL;
}

/* The children of an internal process may attach here now. Until they have, streams wait for what is behind it. */
static void child_lost(Neighbour *child)
{
  OverlayNetwork *network = child->network;
  char why[600];
  snprintf(why, sizeof why, "lost %s: %s", network->tree->name[child->node], child->why);
  free(child->why);
  child->why = NULL;
  child->gone = true;
  if (network->parent_now) network->parent_now[child->node] = OVERLAY_GONE;
  gather_on(network);
  if (network->state >= ENDING) return;
  if (network->state == STARTING) return start_failed(network, why);
  child->lost_at = now();
  child->why = strdup(why);
  skew_remove_child(network, child);
  for (int bucket = 0; bucket < 64; bucket++)
    for (OverlayStream *stream = network->streams[bucket]; stream; stream = stream->next) stream_load(stream, child);
  if (!child->is_internal || child->rejoining || !child->why) return sub_tree_lost(child);
  child->silence_checks_left = SILENCE_CHECKS;
}

static bool has_children(const OverlayNetwork *network)
{
  bool any = false;
  for (int i = 0; i < network->nchildren; i++)
    any = any || peer_is_up(&network->children[i]->peer) || network->children[i]->silence_checks_left > 0;
  return any;
}

void handle_losses(OverlayNetwork *network)
{
  while (network->has_losses) {
    network->has_losses = false;
    for (int i = 0; i < network->nchildren; i++) {
      Neighbour *child = network->children[i];
      if (child->why && !child->gone) child_lost(child);
    }
    bool idle = network->role == INTERNAL && !has_children(network);
    if (network->parent.why) {
      /* Without an ancestor nothing here has an end: it all ends. */
      if (network->state == STARTING) start_failed(network, network->parent.why);
      free(network->parent.why);
      network->parent.why = NULL;
      if (network->state != RUNNING || idle || !rejoin(network)) network->state = ENDED;
    } else if (idle && network->parent.rejoining) {
      network->state = ENDED; /* it was taken for lost, and its children have gone elsewhere */
    }
    retry_rejoins(network);
  }
}

void on_lost(Neighbour *from, OverlayPacket *packet)
{
  OverlayNetwork *network = from->network;
  const uint32_t *ranges;
  const char *why;
  uint32_t count;
  if (overlay_unpack(packet, "%aud %s", &ranges, &count, &why) != OVERLAY_OK || count != 2) return;
  if (ranges[0] < (uint32_t)from->first || ranges[1] > (uint32_t)from->width ||
      ranges[0] - (uint32_t)from->first > (uint32_t)from->width - ranges[1])
    return peer_lose(&from->peer, "it lost back-ends that are not behind it");
  mark_lost(network, from, (int)ranges[0], (int)ranges[1], why);
  skew_remove_child(network, NULL);
  retry_rejoins(network);
}

/* A host that is gone does not answer what was sent again and again. One whose process is only busy does answer, so
 * back-ends and the front-end may be silent as long as they like. */
static bool host_is_gone(const Neighbour *neighbour, double silence_seconds)
{
  struct tcp_info info;
  socklen_t size = sizeof info;
  if (getsockopt(neighbour->peer.watch.fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  return info.tcpi_last_ack_recv > silence_seconds * 1e3 && (info.tcpi_retransmits >= 2 || info.tcpi_probes >= 2);
}

/* A running internal process sends a heartbeat between any two checks. */
static void look_at(Neighbour *neighbour)
{
  const OverlayNetwork *network = neighbour->network;
  if (!peer_is_up(&neighbour->peer)) return;
  if (neighbour->is_internal && neighbour->peer.silent_checks++ >= SILENCE_CHECKS)
    return peer_lose(&neighbour->peer, "it was silent for too long");
  if (host_is_gone(neighbour, network->settings.silence_seconds))
    return peer_lose(&neighbour->peer, "its host does not answer");
  if (network->role == INTERNAL && !neighbour->peer.sent_since_check) post_control(neighbour, PING, 0, "");
  neighbour->peer.sent_since_check = false;
}

void check_silence(OverlayNetwork *network)
{
  look_at(&network->parent);
  for (int i = 0; i < network->nchildren; i++) {
    Neighbour *child = network->children[i];
    look_at(child);
    if (child->silence_checks_left <= 0 || --child->silence_checks_left > 0) continue;
    if (child->gone)
      sub_tree_lost(child);
    else
      peer_lose(&child->peer, "its parent is not lost");
  }
}
