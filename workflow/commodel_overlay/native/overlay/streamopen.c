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
  int link_index = stream->nlinks++;
  for (; link_index && stream->links[link_index - 1].neighbour->first > link.neighbour->first; link_index--) {
    stream->links[link_index] = stream->links[link_index - 1];
    stream->link_of_child[stream->links[link_index].neighbour->index] = link_index;
  }
  stream->links[link_index] = link;
  stream->link_of_child[link.neighbour->index] = link_index;
  stream->empty += !link.gone;
}

/* ---- the packet that opens a stream ---- */
enum { FILTER, ROOT, LEAF, DOWN, SYNC, NAMES };

static const char *or_none(const char *name) { return name ? name : ""; }

OverlayPacket *open_packet(const OverlayStreamOptions *options, const OverlayComm *comm)
{
  const char *names[NAMES] = {[FILTER] = or_none(options->filter),
                              [ROOT] = or_none(options->root),
                              [LEAF] = or_none(options->leaf),
                              [DOWN] = or_none(options->down),
                              [SYNC] = or_none(options->sync_filter)};
  OverlayPacket *packet = overlay_pack(0, "%as %d %lf %aud", names, (uint32_t)NAMES, options->sync, options->seconds,
                                       comm->ranges, comm->pairs * 2);
  if (packet) packet->frame->kind = OPEN;
  return packet;
}

static int find_filters(OverlayStream *stream, const char *const *names)
{
  Role role = stream->network->role;
  if (role == BACK_END) return *names[LEAF] ? filter_find(names[LEAF], &stream->filter) : OVERLAY_OK;
  for (int link_index = FILTER; role == FRONT_END && link_index <= LEAF; link_index++) { /* filters of other processes are checked here, to report errors at once */
    Filter other;
    if (filter_find(names[link_index], &other) != OVERLAY_OK) return OVERLAY_FAILED;
    filter_free(&other);
  }
  int code = filter_find(role == FRONT_END && *names[ROOT] ? names[ROOT] : names[FILTER], &stream->filter);
  if (role == FRONT_END && *names[ROOT]) stream->filter.load = NULL; /* what is saved below is another one's */
  if (code == OVERLAY_OK && *names[DOWN]) code = filter_find(names[DOWN], &stream->down);
  return code == OVERLAY_OK ? filter_find_arranger(names[SYNC], &stream->arranger) : code;
}

OverlayStream *stream_new(OverlayNetwork *network, uint32_t id, OverlayPacket *opened)
{
  const char *const *names;
  const uint32_t *ranges;
  uint32_t nnames, count;
  OverlayStream *stream = calloc(1, sizeof *stream);
  if (!stream) return overlay_fail("no memory for a stream"), NULL;
  *stream = (OverlayStream){.network = network, .id = id, .last_adopted = -1, .opened = overlay_keep(opened)};
  opened->frame->stream = id;
  stream->up =
      (Link){.neighbour = network->role == FRONT_END ? NULL : &network->parent, .credit = network->settings.window};
  int code = overlay_unpack(opened, "%as %d %lf %aud", &names, &nnames, &stream->options.sync, &stream->options.seconds,
                            &ranges, &count);
  if (code == OVERLAY_OK && (nnames != NAMES || count % 2)) code = overlay_fail("found half of a stream to open");
  if (code == OVERLAY_OK) {
    stream->members = (OverlayComm){.ranges = malloc((count + 1) * sizeof *ranges), .pairs = count / 2};
    if (!stream->members.ranges) code = overlay_fail("no memory for a stream");
  }
  if (code == OVERLAY_OK && count) memcpy(stream->members.ranges, ranges, count * sizeof *ranges);
  if (code == OVERLAY_OK) code = stream_grow(stream);
  if (code == OVERLAY_OK) code = find_filters(stream, names);
  if (code != OVERLAY_OK) {
    stream_free(stream);
    return NULL;
  }
  for (int child = 0; child < network->nchildren; child++) {
    Neighbour *neighbour = network->children[child];
    bool gone = !stream_reaches(stream, neighbour);
    if (neighbour->rejoining || (gone && child >= network->nstarted) ||
        !stream_has_members(stream, neighbour->first, neighbour->width))
      continue;
    stream_insert(stream, (Link){.neighbour = neighbour, .credit = network->settings.window, .gone = gone});
  }
  stream->next = network->streams[id % 64];
  network->streams[id % 64] = stream;
  if (stream->options.sync == OVERLAY_TIME_OUT || stream->arranger.run) {
    stream->next_timed = network->timed;
    network->timed = stream;
  }
  return stream;
}

int stream_grow(OverlayStream *stream)
{
  size_t children = (size_t)stream->network->nchildren + 1, old_room = stream->room;
  if (children <= old_room) return OVERLAY_OK;
  Link *links = realloc(stream->links, children * sizeof *links);
  if (links) stream->links = links;
  int *of_child = realloc(stream->link_of_child, children * sizeof *of_child);
  if (of_child) stream->link_of_child = of_child;
  OverlayPacket **wave = realloc(stream->wave, children * sizeof *wave);
  if (wave) stream->wave = wave;
  int *waiting_of = realloc(stream->queued_of, children * sizeof *waiting_of);
  if (waiting_of) stream->queued_of = waiting_of;
  int *take = realloc(stream->take, children * sizeof *take);
  if (take) stream->take = take;
  if (!links || !of_child || !wave || !waiting_of || !take) return overlay_fail("no memory for a stream over %zu children", children);
  for (size_t child = old_room; child < children; child++) of_child[child] = -1;
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
  add_counts(&stream->network->counts, &stream->counts);
  for (int i = 0; i < stream->nlinks; i++) {
    queue_clear(&stream->links[i].queue);
    free(stream->links[i].highest_number_of);
    overlay_release(stream->links[i].saved_state);
  }
  queue_clear(&stream->up.queue), queue_clear(&stream->resend_up), queue_clear(&stream->resend_down);
  queue_clear(&stream->out);
  filter_free(&stream->filter), filter_free(&stream->down), filter_free(&stream->arranger);
  free(stream->links), free(stream->link_of_child), free(stream->wave), free(stream->members.ranges), free(stream->failure);
  free(stream->argument), free(stream->queued_of), free(stream->take);
  overlay_release(stream->opened);
  free(stream);
}

void streams_free(OverlayNetwork *network)
{
  for (int bucket = 0; bucket < 64; bucket++)
    while (network->streams[bucket]) stream_free(network->streams[bucket]);
}

static void mark_ended(OverlayStream *stream, int code, const char *why)
{
  if (stream->ended) return;
  stream->ended = code;
  stream->failure = strdup(why);
}

/* The front-end ends it in the processes below, which would wait for room in it for ever; others tell the front-end. */
void stream_end(OverlayStream *stream, int code, const char *why)
{
  if (stream->ended) return;
  mark_ended(stream, code, why);
  if (stream->network->role != FRONT_END) return post_control(&stream->network->parent, STREAM_FAILED, stream->id, "%s", why);
  note_event(stream->network,
             (OverlayEvent){.kind = OVERLAY_EVENT_ENDED, .stream = (int)stream->id, .code = code}, why);
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
  uint32_t id = packet->frame->stream;
  if (stream_of(network, id)) return peer_lose(&from->peer, "it opened a stream that is open");
  OverlayStream *stream = stream_new(network, id, packet);
  if (!stream) return post_control(&network->parent, STREAM_FAILED, id, "%s", overlay_error());
  pass_down(stream, packet);
  if (network->role == INTERNAL) stream_advance(stream); /* all may be lost already */
}

int stream_set_argument(OverlayStream *stream, const char *argument)
{
  char *copy = strdup(argument);
  if (!copy) return overlay_fail("no memory for an argument");
  free(stream->argument);
  stream->argument = copy;
  for (int i = 0; i < stream->nlinks; i++)
    post_control(stream->links[i].neighbour, ARGUMENT, stream->id, "%s", argument);
  Filter *filters[] = {&stream->filter, &stream->down, &stream->arranger};
  for (int i = 0; i < 3; i++)
    if (filters[i]->run && filter_set_argument(filters[i], argument) != OVERLAY_OK) return OVERLAY_FAILED;
  return OVERLAY_OK;
}

void on_argument(Neighbour *from, OverlayPacket *packet)
{
  OverlayStream *stream = stream_of(from->network, packet->frame->stream);
  const char *argument;
  if (!stream || overlay_unpack(packet, "%s", &argument) != OVERLAY_OK) return;
  if (stream_set_argument(stream, argument) != OVERLAY_OK) stream_end(stream, OVERLAY_FAILED, overlay_error());
}

void on_shut(Neighbour *from, OverlayPacket *packet)
{
  OverlayStream *stream = stream_of(from->network, packet->frame->stream);
  const char *why;
  int code;
  if (!stream || overlay_unpack(packet, "%d %s", &code, &why) != OVERLAY_OK) return;
  pass_down(stream, packet);
  if (from->network->role == BACK_END) /* whose tool may still use it */
    mark_ended(stream, code < OVERLAY_OK ? code : OVERLAY_CLOSED, why);
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
