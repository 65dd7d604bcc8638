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

/* Only noted: who sends may be in the middle of a stream. */
void neighbour_lost(Peer *peer, const char *why)
{
  Neighbour *neighbour = (Neighbour *)peer;
  free(neighbour->why);
  neighbour->why = strdup(why ? why : "");
  neighbour->network->losses = true;
}

/* These back-ends are gone: in the front-end, streams that are to stop without them do. */
static void mark_lost(OverlayNetwork *network, int first, int width, const char *why)
{
  memset(network->lost + (first - (int)network->first), 1, (size_t)width * sizeof *network->lost);
  if (network->role != FRONT_END) return;
  log_line("%s", why);
  for (int bucket = 0; bucket < 64; bucket++)
    for (OverlayStream *stream = network->streams[bucket]; stream; stream = stream->next)
      if (stream->options.on_loss == OVERLAY_STOP && overlay_missing(stream, NULL, 0) > 0)
        stream_end(stream, OVERLAY_LOST, why);
}

static void child_lost(Neighbour *child)
{
  OverlayNetwork *network = child->network;
  char why[600];
  snprintf(why, sizeof why, "lost %s: %s", network->tree->name[child->node], child->why);
  child->gone = true;
  if (network->state >= ENDING) return;
  if (network->state == STARTING) return start_failed(network, why);
  uint32_t range[] = {(uint32_t)child->first, (uint32_t)child->width};
  if (network->role == INTERNAL) /* before any wave that is short of them */
    post_control(&network->parent, LOST, 0, "%aud %s", range, 2, why);
  mark_lost(network, child->first, child->width, why);
  streams_without(network, child);
  skew_without(network, child);
}

void handle_losses(OverlayNetwork *network)
{
  while (network->losses) {
    network->losses = false;
    if (network->parent.why) {
      /* Without a parent nothing here has an end: it all ends. */
      if (network->state == STARTING) start_failed(network, network->parent.why);
      network->state = ENDED;
      free(network->parent.why);
      network->parent.why = NULL;
    }
    for (int i = 0; i < network->nchildren; i++) {
      Neighbour *child = &network->children[i];
      if (!child->why) continue;
      child_lost(child);
      free(child->why);
      child->why = NULL;
    }
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
  if (network->role == INTERNAL) post(&network->parent, overlay_keep(packet));
  mark_lost(network, (int)ranges[0], (int)ranges[1], why);
  skew_without(network, NULL);
}

/* A host that is gone does not answer what was sent again and again. One whose process is only busy does answer, so
 * back-ends and the front-end may be silent as long as they like. */
static bool host_is_gone(const Neighbour *neighbour, double silence)
{
  struct tcp_info info;
  socklen_t size = sizeof info;
  if (getsockopt(neighbour->peer.watch.fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  return info.tcpi_last_ack_recv > silence * 1e3 && (info.tcpi_retransmits >= 2 || info.tcpi_probes >= 2);
}

/* An internal process that runs says something between any two looks. */
static void look_at(Neighbour *neighbour)
{
  const OverlayNetwork *network = neighbour->network;
  if (!peer_is_up(&neighbour->peer)) return;
  if (neighbour->beats && neighbour->peer.quiet++ >= LOOKS)
    return peer_lose(&neighbour->peer, "it was silent for too long");
  if (host_is_gone(neighbour, network->settings.silence))
    return peer_lose(&neighbour->peer, "its host does not answer");
  if (network->role == INTERNAL && !neighbour->peer.spoke) post_control(neighbour, PING, 0, "");
  neighbour->peer.spoke = false;
}

void look_for_silence(OverlayNetwork *network)
{
  look_at(&network->parent);
  for (int i = 0; i < network->nchildren; i++) look_at(&network->children[i]);
}
