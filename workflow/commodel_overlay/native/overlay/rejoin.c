/* rejoin.c: a process whose parent is lost (the orphan) attaches to its next living ancestor, which adopts it.
 *
 * The orphan's first packet (REJOIN) lists its streams, the number of packets received of each, and the number of bytes of
 * them that it has not consumed. The ancestor sends the missing packets again. It also sends, in one packet for each
 * stream (RESUME), the numbers of the packets that it received through the lost process; the orphan sends the others
 * again. The ancestor does this after it has noticed itself that the process between them is lost. The tree does not get
 * deeper; an ancestor adopts at most the children of lost processes.
 */
#include "errors.h"
#include "skew.h"
#include "streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_CONNECT_SECONDS = 10 };

/* ---- the orphan ---- */
int take_lineage(OverlayNetwork *network, const char *const *ancestors, uint32_t count)
{
  char **lineage = calloc((size_t)network->nlineage + count + 1, sizeof *lineage);
  if (!lineage) return overlay_fail("no memory for the addresses of ancestors");
  for (int i = 0; i < network->nlineage; i++) lineage[i] = network->lineage[i];
  free(network->lineage);
  network->lineage = lineage;
  for (uint32_t i = 0; i < count; i++) {
    if (!(lineage[network->nlineage] = strdup(ancestors[i])))
      return overlay_fail("no memory for the addresses of ancestors");
    network->nlineage++;
  }
  return OVERLAY_OK;
}

static bool takes_part(const OverlayStream *stream) { return stream->network->role == INTERNAL || !stream->ended; }

/* Sends the ancestor the state of each stream (REJOIN). */
static int send_rejoin(OverlayNetwork *network)
{
  uint32_t count = 0, *id, *queued;
  uint64_t *packets;
  for (int bucket = 0; bucket < 64; bucket++)
    for (OverlayStream *stream = network->streams[bucket]; stream; stream = stream->next) count += takes_part(stream);
  id = malloc((count + 1) * sizeof *id), queued = malloc((count + 1) * sizeof *queued);
  packets = malloc((count + 1) * sizeof *packets);
  int code = id && queued && packets ? OVERLAY_OK : overlay_fail("no memory for %u streams", count);
  count = 0;
  for (int bucket = 0; code == OVERLAY_OK && bucket < 64; bucket++)
    for (OverlayStream *stream = network->streams[bucket]; stream; stream = stream->next) {
      stream_pause(stream);
      if (!takes_part(stream)) continue;
      id[count] = stream->id, queued[count] = (uint32_t)stream->up.queue.bytes;
      packets[count++] = stream->packets_down + (network->role == INTERNAL ? stream->up.queue.count : 0);
    }
  if (code == OVERLAY_OK)
    post_control(&network->parent, REJOIN, 0, "%aud %auld %aud", id, count, packets, count, queued, count);
  free(id), free(queued), free(packets);
  return code;
}

bool rejoin(OverlayNetwork *network)
{
  double patience = network->settings.silence_seconds / 2;
  if (patience > MAX_CONNECT_SECONDS) patience = MAX_CONNECT_SECONDS;
  while (network->ancestor < network->nlineage) {
    const char *address = network->lineage[network->ancestor++];
    if (attach_to(network, address, patience) != OVERLAY_OK) continue;
    /* The last ancestor is the front-end, which sends no heartbeats while its tool does not call the library. */
    network->parent.is_internal = network->ancestor < network->nlineage;
    network->parent.rejoining = true;
    network->receive_timeout = 0;
    if (send_rejoin(network) == OVERLAY_OK) return true;
    log_line("cannot attach to an ancestor: %s", overlay_error());
    peer_close(&network->parent.peer);
  }
  return false;
}

void on_resume(Neighbour *from, OverlayPacket *packet)
{
  OverlayNetwork *network = from->network;
  OverlayStream *stream = stream_of(network, packet->frame->stream);
  const uint32_t *last_numbers;
  uint32_t count;
  if (!stream || overlay_unpack(packet, "%aud", &last_numbers, &count) != OVERLAY_OK) return;
  if (count != (network->tree ? (uint32_t)network->tree->leaves : 1))
    return peer_lose(&from->peer, "it resumed a stream over other back-ends");
  stream_resume(stream, last_numbers);
}

/* Reports losses and the ends of streams again: the lost parent may not have forwarded them. */
void on_adopted(Neighbour *from, OverlayPacket *packet)
{
  OverlayNetwork *network = from->network;
  (void)packet;
  if (!from->rejoining) return;
  from->rejoining = false;
  for (int leaf = 0, begin; network->tree && leaf < network->tree->leaves; leaf++) {
    for (begin = leaf; leaf < network->tree->leaves && network->lost[leaf]; leaf++) continue;
    uint32_t range[] = {network->first + (uint32_t)begin, (uint32_t)(leaf - begin)};
    if (leaf > begin) post_control(from, LOST, 0, "%aud %s", range, 2, "lost before its parent was");
  }
  for (int bucket = 0; bucket < 64; bucket++)
    for (OverlayStream *stream = network->streams[bucket]; stream; stream = stream->next) {
      if (stream->drained) post_control(from, DRAINED, stream->id, "");
      if (stream->ended && network->role == INTERNAL)
        post_control(from, STREAM_FAILED, stream->id, "%s", stream->failure ? stream->failure : "");
    }
}

/* ---- the ancestor ---- */
Adoption adoption_of(const OverlayNetwork *network, uint32_t node)
{
  const Topology *tree = network->tree;
  int64_t own = (int64_t)node - network->node;
  if (!tree || network->state != RUNNING || own <= 0 || own >= tree->nodes || tree->parent[own] == 0) return REFUSE;
  for (int leaf = tree->first[own]; leaf < tree->first[own] + tree->width[own]; leaf++)
    if (!network->lost[leaf] && !network->children[network->owner[leaf]]->gone) return WAIT;
  return ADOPT;
}

void adopt(OverlayNetwork *network, uint32_t node, uint32_t process, int socket, Authentic *authentic)
{
  Neighbour *child = network_add_child(network, (int)(node - network->node));
  int code = child ? OVERLAY_OK : OVERLAY_FAILED;
  for (int bucket = 0; bucket < 64; bucket++)
    for (OverlayStream *stream = network->streams[bucket]; stream && code == OVERLAY_OK; stream = stream->next)
      code = stream_grow(stream);
  if (code != OVERLAY_OK) {
    log_line("cannot adopt a process: %s", overlay_error());
    if (child) child->gone = true;
    free(authentic);
    close(socket);
    return;
  }
  child->tree_up = child->ready = child->rejoining = true;
  if (!network->settings.launch && !network->settings.one_step) child->adopted = (pid_t)process;
  child->peer.authentic = authentic;
  network_open_peer(child, socket);
}

/* Whether back-ends of the stream behind it were given up, so that the stream continues without them. */
static bool was_lost(const OverlayNetwork *network, const Neighbour *child)
{
  for (int i = 0; i < child->width; i++)
    if (network->lost[child->first - (int)network->first + i]) return true;
  return false;
}

static void resume_at(Neighbour *child, OverlayStream *stream, uint64_t packets, uint32_t queued)
{
  bool is_stored = packets <= stream->packets_down && stream->packets_down - packets <= stream->resend_down.count;
  if (!is_stored || stream_add_link(stream, child, packets, queued) != OVERLAY_OK)
    return post_control(child, SHUT, stream->id, "%d %s", OVERLAY_LOST, is_stored ? overlay_error() : "packets were lost");
  const Link *link = &stream->links[stream->link_of_child[child->index]];
  post_control(child, RESUME, stream->id, "%aud", link->highest_number_of, (uint32_t)child->width);
  if (stream->argument) post_control(child, ARGUMENT, stream->id, "%s", stream->argument);
}

static void open_at(Neighbour *child, OverlayStream *stream)
{
  if (stream->packets_down != stream->resend_down.count) return; /* the stream continues without this child */
  if (stream_add_link(stream, child, 0, 0) != OVERLAY_OK) return peer_lose(&child->peer, overlay_error());
  post(child, overlay_keep(stream->opened));
  if (stream->argument) post_control(child, ARGUMENT, stream->id, "%s", stream->argument);
}

static void take_over(Neighbour *child, double *seconds)
{
  OverlayNetwork *network = child->network;
  int own = child->first - (int)network->first;
  for (int leaf = own; leaf < own + child->width; leaf++) {
    Neighbour *before = network->children[network->owner[leaf]];
    if (!before->gone) continue; /* a process above this back-end has already attached here */
    if (before->lost_at > 0) *seconds = now() - before->lost_at;
    network->owner[leaf] = child->index, network->lost[leaf] = false;
  }
  for (int i = 0; i < network->nchildren; i++) {
    Neighbour *before = network->children[i];
    if (!before->gone || before == child) continue;
    streams_remove_child(network, before);
    bool all = true;
    for (int leaf = before->first; leaf < before->first + before->width; leaf++)
      all = all && network->owner[leaf - (int)network->first] != before->index;
    if (all) before->silence_checks_left = 0;
  }
}

static void reattached(OverlayNetwork *network, uint32_t node, uint32_t to, const uint32_t *range, double seconds)
{
  char text[600];
  bool joins = seconds < 0;
  if (network->role == INTERNAL)
    return post_control(&network->parent, REATTACHED, 0, "%ud %ud %aud %lf", node, to, range, 2, seconds);
  if (joins)
    snprintf(text, sizeof text, "%s has joined", network->tree->name[node]);
  else
    snprintf(text, sizeof text, "%s has attached to %s, %.3f s after its parent was lost", network->tree->name[node],
             network->tree->name[to], seconds);
  if (!joins) log_line("%s", text);
  note_parent(network, (int)node, (int)to);
  note_event(network,
             (OverlayEvent){.kind = joins ? OVERLAY_EVENT_JOINED : OVERLAY_EVENT_REATTACHED,
                            .first = joins ? (int)range[0] : 0,
                            .count = joins ? (int)range[1] : 0,
                            .node = (int)node,
                            .parent = (int)to,
                            .stream = -1},
             text);
}

void report_attached(OverlayNetwork *network, const Neighbour *child, double seconds)
{
  uint32_t range[] = {(uint32_t)child->first, (uint32_t)child->width};
  reattached(network, network->node + (uint32_t)child->node, network->node, range, seconds);
}

void on_rejoin(Neighbour *from, OverlayPacket *packet)
{
  OverlayNetwork *network = from->network;
  const uint32_t *id, *queued;
  const uint64_t *packets;
  uint32_t count, counts[2];
  if (!from->rejoining) return peer_lose(&from->peer, "it attached a second time");
  if (overlay_unpack(packet, "%aud %auld %aud", &id, &count, &packets, &counts[0], &queued, &counts[1]) != OVERLAY_OK)
    return;
  if (counts[0] != count || counts[1] != count) return peer_lose(&from->peer, "it attached with half of a stream");
  Adoption adoption = adoption_of(network, network->node + (uint32_t)from->node);
  if (adoption == REFUSE) return peer_lose(&from->peer, "it attached while the network ends");
  if (adoption == WAIT) {
    if (from->rejoin) return peer_lose(&from->peer, "it attached a second time");
    from->rejoin = overlay_keep(packet), from->silence_checks_left = 2 * SILENCE_CHECKS;
    return;
  }
  from->silence_checks_left = 0;
  bool late = was_lost(network, from);
  double seconds = 0;
  from->rejoining = false, from->ready = true;
  for (uint32_t i = 0; i < count; i++) {
    OverlayStream *stream = stream_of(network, id[i]);
    bool goes_on = stream && !stream->ended && stream->link_of_child[from->index] < 0 && !late;
    if (goes_on)
      resume_at(from, stream, packets[i], queued[i]);
    else
      post_control(from, SHUT, id[i], "%d %s", late ? OVERLAY_LOST : OVERLAY_CLOSED,
                   late ? "it went on while this process was lost" : "the stream has ended");
    if (goes_on) stream->last_adopted = from->index;
  }
  for (int bucket = 0; bucket < 64; bucket++)
    for (OverlayStream *stream = network->streams[bucket]; stream; stream = stream->next)
      if (!stream->ended && stream->link_of_child[from->index] < 0 && !late && stream->last_adopted != from->index &&
          stream_has_members(stream, from->first, from->width))
        open_at(from, stream);
  take_over(from, &seconds);
  post_control(from, ADOPTED, 0, "");
  report_attached(network, from, seconds);
  for (int bucket = 0; bucket < 64; bucket++)
    for (OverlayStream *stream = network->streams[bucket]; stream; stream = stream->next) stream_advance(stream);
}

void retry_rejoins(OverlayNetwork *network)
{
  for (int i = 0; i < network->nchildren; i++) {
    Neighbour *child = network->children[i];
    OverlayPacket *packet = child->rejoin;
    child->rejoin = NULL;
    if (packet && !child->gone) on_rejoin(child, packet);
    overlay_release(packet);
  }
}

void on_reattached(Neighbour *from, OverlayPacket *packet)
{
  OverlayNetwork *network = from->network;
  const uint32_t *range;
  uint32_t node, to, count;
  double seconds;
  if (overlay_unpack(packet, "%ud %ud %aud %lf", &node, &to, &range, &count, &seconds) != OVERLAY_OK || count != 2) return;
  if (range[0] < (uint32_t)from->first || range[1] > (uint32_t)from->width ||
      range[0] - (uint32_t)from->first > (uint32_t)from->width - range[1] ||
      node - network->node >= (uint32_t)network->tree->nodes || to - network->node >= (uint32_t)network->tree->nodes)
    return peer_lose(&from->peer, "it adopted a process that is not behind it");
  for (uint32_t leaf = range[0] - network->first; leaf < range[0] - network->first + range[1]; leaf++)
    if (network->owner[leaf] == from->index) network->lost[leaf] = false;
  reattached(network, node, to, range, seconds);
}
