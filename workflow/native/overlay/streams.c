/* streams.c: how packets move: up in waves through the filter, down to all links, both only as far as windows allow. */
#include "streams.h"
#include "errors.h"

#include <stdlib.h>

/* Gives a link's sender back what was consumed, half a window at a time. */
static void consumed(OverlayStream *stream, Link *link, uint32_t bytes)
{
  link->owed += bytes;
  if (link->gone || !link->neighbour || link->owed < stream->network->settings.window / 2) return;
  post_control(link->neighbour, CREDIT, stream->id, "%ud", link->owed);
  link->owed = 0;
}

static void send_on(OverlayStream *stream, Link *link, OverlayPacket *packet)
{
  link->credit -= packet->frame->bytes;
  packet->frame->kind = DATA, packet->frame->stream = stream->id;
  post(link->neighbour, packet);
}

void stream_send_up(OverlayStream *stream, OverlayPacket *packet) { send_on(stream, &stream->up, packet); }

void stream_send_down(OverlayStream *stream, OverlayPacket *packet)
{
  for (int i = 0; i < stream->nlinks; i++)
    if (!stream->links[i].gone) send_on(stream, &stream->links[i], overlay_keep(packet));
  overlay_release(packet);
}

bool stream_can_send(const OverlayStream *stream)
{
  if (stream->network->role == BACK_END) return stream->up.credit > 0;
  for (int i = 0; i < stream->nlinks; i++)
    if (!stream->links[i].gone && stream->links[i].credit <= 0) return false;
  return true;
}

bool stream_has_sources(const OverlayStream *stream) { return stream->waiting || stream->empty || stream->out.count; }

/* ---- upwards ---- */
static bool has_room(const OverlayStream *stream)
{
  if (stream->network->role == FRONT_END) return stream->out.bytes < stream->network->settings.window;
  return stream->out.count == 0 && stream->up.credit > 0;
}

static bool wave_is_due(const OverlayStream *stream)
{
  if (!stream->waiting) return false;
  if (stream->options.sync == OVERLAY_DO_NOT_WAIT || !stream->empty) return true;
  return stream->options.sync == OVERLAY_TIME_OUT && stream->deadline > 0 && now() >= stream->deadline;
}

static OverlayPacket *take_from(OverlayStream *stream, Link *link)
{
  OverlayPacket *packet = queue_pop(&link->queue);
  if (!packet) return NULL;
  if (!link->queue.count) {
    stream->waiting--;
    if (!link->gone) stream->empty++;
  }
  consumed(stream, link, packet->frame->bytes);
  return packet;
}

static void make_wave(OverlayStream *stream)
{
  int count = 0;
  if (stream->options.sync == OVERLAY_DO_NOT_WAIT) {
    while (!stream->links[stream->turn % stream->nlinks].queue.count) stream->turn++;
    stream->wave[count++] = take_from(stream, &stream->links[stream->turn++ % stream->nlinks]);
    stream->turn %= stream->nlinks;
  } else {
    for (int i = 0; i < stream->nlinks; i++)
      if ((stream->wave[count] = take_from(stream, &stream->links[i]))) count++;
  }
  stream->deadline = stream->waiting ? now() + stream->options.seconds : 0;
  uint32_t before = stream->out.count;
  int root = stream->network->role == FRONT_END;
  if (filter_run(&stream->filter, &stream->state, stream->wave, count, root, &stream->out) != OVERLAY_OK)
    stream_end(stream, OVERLAY_FAILED, overlay_error());
  for (uint32_t i = before; i < stream->out.count; i++)
    stream->out.items[(stream->out.head + i) & (stream->out.room - 1)]->arrival = ++stream->network->arrivals;
  for (int i = 0; i < count; i++) overlay_release(stream->wave[i]);
}

static void show_to_tool(OverlayStream *stream)
{
  if (stream->readable) return;
  stream->readable = true;
  stream->next_readable = stream->network->readable;
  stream->network->readable = stream;
}

void stream_advance(OverlayStream *stream)
{
  OverlayNetwork *network = stream->network;
  while (network->role != BACK_END && stream->up.queue.count && stream_can_send(stream)) {
    OverlayPacket *packet = queue_pop(&stream->up.queue);
    consumed(stream, &stream->up, packet->frame->bytes);
    stream_send_down(stream, packet);
  }
  for (;;) {
    while (network->role == INTERNAL && stream->out.count && stream->up.credit > 0)
      stream_send_up(stream, queue_pop(&stream->out));
    if (stream->ended || !has_room(stream) || !wave_is_due(stream)) break;
    make_wave(stream);
  }
  if (network->role == FRONT_END && stream->out.count) show_to_tool(stream);
  if (network->role != INTERNAL || stream->drained || stream_has_sources(stream)) return;
  stream->drained = true;
  post_control(&network->parent, DRAINED, stream->id, "");
}

/* ---- what arrives ---- */

/* Takes the packet. Who keeps to its window has less than that here when it sends. */
static bool queued(Neighbour *from, Queue *queue, OverlayPacket *packet)
{
  bool keeps = queue->bytes < from->network->settings.window;
  if (keeps && queue_push(queue, packet) == OVERLAY_OK) return true;
  if (!keeps) overlay_release(packet);
  peer_lose(&from->peer, keeps ? overlay_error() : "it sent more than a stream's window");
  return false;
}

static void received_from_child(OverlayStream *stream, Neighbour *child, OverlayPacket *packet)
{
  int64_t last = (int64_t)packet->frame->source + packet->frame->leaves;
  if (packet->frame->source < child->first || packet->frame->leaves < 1 ||
      packet->frame->leaves > (uint32_t)child->width || last > child->first + child->width) {
    overlay_release(packet);
    return peer_lose(&child->peer, "it sent a packet of back-ends that are not behind it");
  }
  if (stream->ended || stream->of_child[child->index] < 0) return overlay_release(packet);
  Link *link = &stream->links[stream->of_child[child->index]];
  if (link->gone) return overlay_release(packet);
  if (!queued(child, &link->queue, packet)) return;
  if (link->queue.count == 1) stream->waiting++, stream->empty--;
  if (stream->deadline <= 0 && stream->options.sync == OVERLAY_TIME_OUT)
    stream->deadline = now() + stream->options.seconds;
  stream_advance(stream);
}

void stream_received(Neighbour *from, OverlayPacket *packet)
{
  OverlayStream *stream = stream_of(from->network, packet->frame->stream);
  if (!stream) return overlay_release(packet); /* it was closed while this was under way */
  if (from->index >= 0) return received_from_child(stream, from, packet);
  packet->arrival = ++from->network->arrivals;
  if (!queued(from, &stream->up.queue, packet)) return;
  if (from->network->role == BACK_END)
    show_to_tool(stream);
  else
    stream_advance(stream);
}

void on_credit(Neighbour *from, OverlayPacket *packet)
{
  OverlayStream *stream = stream_of(from->network, packet->frame->stream);
  uint32_t bytes;
  if (!stream || overlay_unpack(packet, "%ud", &bytes) != OVERLAY_OK) return;
  Link *link = &stream->up;
  if (from->index >= 0) {
    if (stream->of_child[from->index] < 0) return;
    link = &stream->links[stream->of_child[from->index]];
  }
  link->credit += bytes;
  stream_advance(stream);
}

/* ---- for the tool ---- */
OverlayPacket *stream_take(OverlayStream *stream)
{
  if (stream->network->role == FRONT_END) {
    OverlayPacket *packet = queue_pop(&stream->out);
    if (packet) stream_advance(stream);
    return packet;
  }
  OverlayPacket *packet = queue_pop(&stream->up.queue);
  if (packet) consumed(stream, &stream->up, packet->frame->bytes);
  return packet;
}

/* ---- time and loss ---- */
double streams_deadline(const OverlayNetwork *network)
{
  double first = 0;
  for (OverlayStream *stream = network->timed; stream; stream = stream->next_timed)
    if (stream->deadline > 0 && (first <= 0 || stream->deadline < first) && !stream->ended && has_room(stream))
      first = stream->deadline;
  return first;
}

void streams_timed(OverlayNetwork *network)
{
  for (OverlayStream *stream = network->timed; stream; stream = stream->next_timed)
    if (stream->deadline > 0) stream_advance(stream);
}

/* A child that is gone is waited for no longer; nor is one that has nothing more of a stream. Its lost back-ends alone are
 * no reason: what they sent may still wait in it for room. */
static void without(OverlayStream *stream, Neighbour *child)
{
  if (stream->of_child[child->index] < 0) return;
  Link *link = &stream->links[stream->of_child[child->index]];
  if (link->gone || stream_reaches(stream, child)) return;
  link->gone = true;
  if (!link->queue.count) stream->empty--;
  stream_advance(stream);
}

void streams_without(OverlayNetwork *network, Neighbour *child)
{
  for (int bucket = 0; bucket < 64; bucket++)
    for (OverlayStream *stream = network->streams[bucket]; stream; stream = stream->next) without(stream, child);
}

void on_drained(Neighbour *from, OverlayPacket *packet)
{
  OverlayStream *stream = stream_of(from->network, packet->frame->stream);
  if (stream) without(stream, from);
}
