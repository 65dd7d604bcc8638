/* streamopen.c: how streams begin and end in all processes that they pass through. */
#include "errors.h"
#include "streams.h"

#include <stdlib.h>
#include <string.h>

OverlayStream *stream_of(const OverlayNetwork *network, uint32_t id)
{
  OverlayStream *stream = network->streams[id % 64];
  while (stream && stream->id != id) stream = stream->next;
  return stream;
}

static bool has_member(const uint32_t *ranges, uint32_t pairs, int first, int width)
{
  uint32_t low = 0, high = pairs; /* the first range that ends behind `first` */
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (ranges[2 * middle] + ranges[2 * middle + 1] <= (uint32_t)first)
      low = middle + 1;
    else
      high = middle;
  }
  return low < pairs && ranges[2 * low] < (uint32_t)(first + width);
}

bool stream_has_members(const OverlayStream *stream, int first, int width)
{
  return has_member(stream->members.ranges, stream->members.pairs, first, width);
}

bool stream_reaches(const OverlayStream *stream, const Neighbour *child)
{
  const OverlayNetwork *network = stream->network;
  for (uint32_t pair = 0; pair < stream->members.pairs; pair++) {
    int64_t first = stream->members.ranges[2 * pair], end = first + stream->members.ranges[2 * pair + 1];
    if (first < child->first) first = child->first;
    if (end > child->first + child->width) end = child->first + child->width;
    for (int64_t backend = first; backend < end; backend++)
      if (!network->lost[backend - network->first] && network->owner[backend - network->first] == child->index)
        return true;
  }
  return false;
}

/* In the order of back-ends, which is that of the packets of a wave. */
void stream_insert(OverlayStream *stream, Link link)
{
  int place = stream->nlinks++;
  for (; place && stream->links[place - 1].neighbour->first > link.neighbour->first; place--) {
    stream->links[place] = stream->links[place - 1];
    stream->of_child[stream->links[place].neighbour->index] = place;
  }
  stream->links[place] = link;
  stream->of_child[link.neighbour->index] = place;
  stream->empty += !link.gone;
}

OverlayStream *stream_new(OverlayNetwork *network, uint32_t id, const OverlayStreamOptions *options,
                          const uint32_t *ranges, uint32_t pairs)
{
  OverlayStream *stream = calloc(1, sizeof *stream);
  if (!stream) return overlay_fail("no memory for a stream"), NULL;
  *stream = (OverlayStream){.network = network, .id = id, .options = *options};
  stream->options.filter = NULL; /* the caller's text */
  stream->asked_by = -1;
  stream->filter_name = strdup(options->filter ? options->filter : "");
  stream->up =
      (Link){.neighbour = network->role == FRONT_END ? NULL : &network->parent, .credit = network->settings.window};
  stream->members = (OverlayComm){.ranges = malloc((pairs + 1) * 2 * sizeof *ranges), .pairs = pairs};
  if (stream_grow(stream) != OVERLAY_OK || !stream->members.ranges || !stream->filter_name) {
    overlay_fail("no memory for a stream over %d children", network->nchildren);
    stream_free(stream);
    return NULL;
  }
  if (pairs) memcpy(stream->members.ranges, ranges, pairs * 2 * sizeof *ranges);
  for (int child = 0; child < network->nchildren; child++) {
    Neighbour *neighbour = network->children[child];
    bool gone = !stream_reaches(stream, neighbour);
    if (neighbour->rejoining || (gone && child >= network->nstarted) ||
        !has_member(ranges, pairs, neighbour->first, neighbour->width))
      continue;
    stream_insert(stream, (Link){.neighbour = neighbour, .credit = network->settings.window, .gone = gone});
  }
  if (network->role != BACK_END && filter_find(options->filter, &stream->filter) != OVERLAY_OK) {
    stream_free(stream);
    return NULL;
  }
  stream->next = network->streams[id % 64];
  network->streams[id % 64] = stream;
  if (options->sync == OVERLAY_TIME_OUT) {
    stream->next_timed = network->timed;
    network->timed = stream;
  }
  return stream;
}

int stream_grow(OverlayStream *stream)
{
  size_t children = (size_t)stream->network->nchildren + 1, known = stream->room;
  if (children <= known) return OVERLAY_OK;
  Link *links = realloc(stream->links, children * sizeof *links);
  if (links) stream->links = links;
  int *of_child = realloc(stream->of_child, children * sizeof *of_child);
  if (of_child) stream->of_child = of_child;
  OverlayPacket **wave = realloc(stream->wave, children * sizeof *wave);
  if (wave) stream->wave = wave;
  if (!links || !of_child || !wave) return overlay_fail("no memory for a stream over %zu children", children);
  for (size_t child = known; child < children; child++) of_child[child] = -1;
  stream->room = children;
  return OVERLAY_OK;
}

static void unlink_from(OverlayNetwork *network, OverlayStream *stream)
{
  OverlayStream **at = &network->streams[stream->id % 64];
  while (*at && *at != stream) at = &(*at)->next;
  if (*at) *at = stream->next;
  for (at = &network->timed; *at && *at != stream;) at = &(*at)->next_timed;
  if (*at) *at = stream->next_timed;
  for (at = &network->readable; *at && *at != stream;) at = &(*at)->next_readable;
  if (*at) *at = stream->next_readable;
}

void stream_free(OverlayStream *stream)
{
  unlink_from(stream->network, stream);
  for (int i = 0; i < stream->nlinks; i++) {
    queue_clear(&stream->links[i].queue);
    free(stream->links[i].seen_of);
  }
  queue_clear(&stream->up.queue), queue_clear(&stream->kept), queue_clear(&stream->held);
  queue_clear(&stream->out);
  filter_free(&stream->filter, stream->state);
  free(stream->links), free(stream->of_child), free(stream->wave), free(stream->members.ranges), free(stream->failure);
  free(stream->filter_name);
  free(stream);
}

void streams_free(OverlayNetwork *network)
{
  for (int bucket = 0; bucket < 64; bucket++)
    while (network->streams[bucket]) stream_free(network->streams[bucket]);
}

/* The front-end ends it in the processes below, which would wait for room in it for ever; others tell the front-end. */
void stream_end(OverlayStream *stream, int code, const char *why)
{
  if (stream->ended) return;
  stream->ended = code;
  stream->failure = strdup(why);
  if (stream->network->role == INTERNAL) post_control(&stream->network->parent, STREAM_FAILED, stream->id, "%s", why);
  if (stream->network->role != FRONT_END) return;
  for (int i = 0; i < stream->nlinks; i++)
    post_control(stream->links[i].neighbour, SHUT, stream->id, "%d %s", code, why);
}

static void pass_down(OverlayStream *stream, OverlayPacket *packet)
{
  for (int i = 0; i < stream->nlinks; i++) post(stream->links[i].neighbour, overlay_keep(packet));
}

void on_open(Neighbour *from, OverlayPacket *packet)
{
  OverlayNetwork *network = from->network;
  OverlayStreamOptions options = {.filter = NULL};
  const uint32_t *ranges;
  const char *filter;
  uint32_t count, id = packet->frame->stream;
  if (overlay_unpack(packet, "%s %d %lf %aud", &filter, &options.sync, &options.seconds, &ranges, &count) != OVERLAY_OK)
    return;
  if (stream_of(network, id) || count % 2) return peer_lose(&from->peer, "it opened a stream that is open");
  options.filter = filter;
  OverlayStream *stream = stream_new(network, id, &options, ranges, count / 2);
  if (!stream) return post_control(&network->parent, STREAM_FAILED, id, "%s", overlay_error());
  pass_down(stream, packet);
  if (network->role == INTERNAL) stream_advance(stream); /* all may be lost already */
}

void on_shut(Neighbour *from, OverlayPacket *packet)
{
  OverlayStream *stream = stream_of(from->network, packet->frame->stream);
  const char *why;
  int code;
  if (!stream || overlay_unpack(packet, "%d %s", &code, &why) != OVERLAY_OK) return;
  pass_down(stream, packet);
  if (from->network->role == BACK_END) /* whose tool may hold it */
    stream_end(stream, code < OVERLAY_OK ? code : OVERLAY_CLOSED, why);
  else
    stream_free(stream);
}

void on_stream_failed(Neighbour *from, OverlayPacket *packet)
{
  OverlayStream *stream = stream_of(from->network, packet->frame->stream);
  const char *why;
  if (from->network->role == INTERNAL) return post(&from->network->parent, overlay_keep(packet));
  if (stream && overlay_unpack(packet, "%s", &why) == OVERLAY_OK) stream_end(stream, OVERLAY_FAILED, why);
}
