/* streams.c: packets of a stream move up in waves through the filter, and down to all links, within the windows.
 *
 * A link connects a stream to a child or to the parent. Sent packets are stored until they are safe: in `resend_up` for
 * a loss of the parent, in `resend_down` for a loss of a child. A link whose child is lost, or has no more packets of
 * the stream, is `gone`. */
#include "streams.h"
#include "errors.h"

#include <limits.h>
#include <stdlib.h>

/* ---- packets stored for the loss of a process ---- */

/* Number of packets from the parent that all processes below have received. */
static uint64_t count_safe_below(const OverlayStream *stream)
{
  uint64_t safe = stream->packets_down;
  for (int i = 0; i < stream->nlinks; i++)
    if (!stream->links[i].gone && stream->links[i].safe < safe) safe = stream->links[i].safe;
  return safe;
}

/* Number of packets of a child that have reached the front-end, or the state of a filter on the way: at least those
 * consumed before the oldest wave of which a packet is still stored here. It is 0 while packets received through a
 * lost child are not safe, because these include earlier packets of the adopted children. */
static uint64_t count_safe_above(const OverlayStream *stream, const Link *link)
{
  const Queue *unsafe = stream->resend_up.count ? &stream->resend_up : &stream->out;
  uint64_t oldest = unsafe->count ? unsafe->items[unsafe->head]->arrival : stream->waves + 1;
  for (int i = 0; stream->rejoined && i < stream->nlinks; i++)
    if (stream->links[i].gone && stream->links[i].queue.count) return 0;
  if (stream->network->role == FRONT_END) return link->consumed_packets;
  if (oldest <= stream->last_wave_of_lost) return 0;
  uint64_t later = stream->waves + 1 - oldest;
  return link->consumed_packets > later ? link->consumed_packets - later : 0;
}

static void drop_safe_up(OverlayStream *stream)
{
  while (stream->resend_up.count && stream->up.sent - stream->resend_up.count < stream->up.safe)
    overlay_release(queue_pop(&stream->resend_up));
}

/* A child that is a back-end has no children that this process might adopt: for it, sent packets are safe. */
static void drop_safe_down(OverlayStream *stream)
{
  uint64_t safe = stream->packets_down;
  for (int i = 0; i < stream->nlinks; i++) {
    const Link *link = &stream->links[i];
    uint64_t has = link->neighbour->is_internal ? link->safe : link->sent;
    if (!link->gone && has < safe) safe = has;
  }
  while (stream->resend_down.count && stream->packets_down - stream->resend_down.count < safe) overlay_release(queue_pop(&stream->resend_down));
}

/* Flow control: credits the bytes that were consumed to the sender, half a window at a time. */
static void return_credit(OverlayStream *stream, Link *link)
{
  if (link->gone || !link->neighbour || link->unreturned_bytes < stream->network->settings.window / 2) return;
  uint64_t safe = link != &stream->up                    ? count_safe_above(stream, link)
                  : stream->network->role == BACK_END ? link->consumed_packets
                                                         : count_safe_below(stream);
  post_control(link->neighbour, CREDIT, stream->id, "%ud %uld", link->unreturned_bytes, safe);
  link->unreturned_bytes = 0;
}

static void consumed(OverlayStream *stream, Link *link, uint32_t bytes)
{
  link->unreturned_bytes += bytes, link->consumed_packets++;
  return_credit(stream, link);
}

static void send_on(OverlayStream *stream, Link *link, OverlayPacket *packet)
{
  bool up = link == &stream->up;
  link->credit -= packet->frame->bytes, link->sent++;
  stream->counts.of[up ? PACKETS_UP : PACKETS_DOWN]++;
  stream->counts.of[up ? BYTES_UP : BYTES_DOWN] += packet->frame->bytes;
  packet->frame->kind = DATA, packet->frame->stream = stream->id;
  post(link->neighbour, packet);
}

void stream_send_up(OverlayStream *stream, OverlayPacket *packet)
{
  /* An internal process below the front-end keeps packets too: count_safe_above() counts by them. */
  bool keep = stream->network->nlineage > 1 || stream->network->role == INTERNAL;
  if (keep && queue_push(&stream->resend_up, overlay_keep(packet)) != OVERLAY_OK)
    log_line("a stream cannot keep a packet, which is lost with this process's parent: %s", overlay_error());
  send_on(stream, &stream->up, packet);
}

/* Sends stored packets to a link that has not yet received them, as far as its credit allows. */
static void send_missed(OverlayStream *stream, Link *link)
{
  while (!link->gone && link->sent < stream->packets_down && link->credit > 0) {
    uint64_t place = stream->resend_down.count - (stream->packets_down - link->sent);
    send_on(stream, link, overlay_keep(stream->resend_down.items[(stream->resend_down.head + place) & (stream->resend_down.capacity - 1)]));
  }
}

static int run_filter(OverlayStream *stream, Filter *filter, OverlayPacket **in, int count, Queue *out, Origin *origin)
{
  double begin = now();
  int code = filter_run(filter, in, count, stream->network->role == FRONT_END, out, origin);
  stream->counts.filter_seconds += now() - begin;
  return code;
}

/* Runs a filter on one packet; a filter that fails ends the stream. */
int stream_filter(OverlayStream *stream, Filter *filter, OverlayPacket *packet, Queue *out)
{
  Origin origin;
  int code = run_filter(stream, filter, &packet, 1, out, &origin);
  if (code != OVERLAY_OK) stream_end(stream, OVERLAY_FAILED, overlay_error());
  return code;
}

/* Returns the filtered packet that is sent down. A filter must return one packet for each: adopted children count
 * packets to determine which ones they have received. */
static OverlayPacket *filtered_down(OverlayStream *stream, OverlayPacket *packet)
{
  Queue out = {.items = NULL};
  int code = stream_filter(stream, &stream->down, packet, &out);
  if (code == OVERLAY_OK && out.count != 1) {
    overlay_fail("a filter of what goes down gave %u packets for one, wanted one", out.count);
    stream_end(stream, OVERLAY_FAILED, overlay_error());
  }
  OverlayPacket *result = out.count == 1 ? queue_pop(&out) : NULL;
  queue_clear(&out);
  overlay_release(packet);
  return result;
}

void stream_send_down(OverlayStream *stream, OverlayPacket *packet)
{
  bool hold = false;
  if (stream->ended) return overlay_release(packet);
  if (stream->down.run && !(packet = filtered_down(stream, packet))) return;
  stream->packets_down++;
  for (int i = 0; i < stream->nlinks; i++) {
    Link *link = &stream->links[i];
    if (link->gone) continue;
    hold = hold || link->neighbour->is_internal;
    send_on(stream, link, overlay_keep(packet));
  }
  if (hold && queue_push(&stream->resend_down, overlay_keep(packet)) != OVERLAY_OK)
    log_line("a stream cannot keep a packet, which is lost with a child of this process: %s", overlay_error());
  overlay_release(packet);
}

bool stream_can_send(const OverlayStream *stream)
{
  if (stream->network->role == BACK_END) return stream->up.credit > 0 && !stream->out.count;
  for (int i = 0; i < stream->nlinks; i++)
    if (!stream->links[i].gone && (stream->links[i].credit <= 0 || stream->links[i].sent < stream->packets_down)) return false;
  return true;
}

bool stream_has_sources(const OverlayStream *stream) { return stream->waiting || stream->empty || stream->out.count; }

/* ---- upwards ---- */
static bool has_room(const OverlayStream *stream)
{
  if (stream->network->role == FRONT_END) return stream->out.bytes < stream->network->settings.window;
  return stream->out.count == 0 && stream->up.credit > 0;
}

static uint32_t packet_number(const OverlayPacket *packet) { return origin_of(packet->frame).number; }

static const OverlayPacket *first_packet(const Link *link)
{
  return link->queue.count ? link->queue.items[link->queue.head] : NULL;
}

/* The lowest number among the first packets of all links. A wave is made of packets with one number. */
static uint32_t next_number(const OverlayStream *stream)
{
  uint32_t lowest = 0;
  bool any = false;
  for (int i = 0; i < stream->nlinks; i++) {
    const OverlayPacket *next = first_packet(&stream->links[i]);
    if (next && (!any || before(packet_number(next), lowest))) lowest = packet_number(next), any = true;
  }
  return lowest;
}

/* The highest number that was received from every back-end of the stream behind a link, lost back-ends excepted. */
static uint32_t highest_number_of_all(const OverlayStream *stream, const Link *link)
{
  const OverlayNetwork *network = stream->network;
  uint32_t lowest = link->highest_number;
  bool any = false;
  for (int i = 0; link->highest_number_of && i < link->neighbour->width; i++) {
    int backend = link->neighbour->first + i, leaf = backend - (int)network->first;
    if (network->lost[leaf] || network->owner[leaf] != link->neighbour->index || !stream_has_members(stream, backend, 1))
      continue;
    uint32_t last_numbers = before(link->highest_number, link->highest_number_of[i]) ? link->highest_number_of[i] : link->highest_number;
    if (!any || before(last_numbers, lowest)) lowest = last_numbers, any = true;
  }
  return lowest;
}

/* Whether all packets of the wave with the lowest number have arrived. After a child was adopted, some of them may have
 * arrived earlier, through its lost parent. */
static bool is_wave_complete(const OverlayStream *stream)
{
  uint32_t lowest = next_number(stream);
  for (int i = 0; i < stream->nlinks; i++) {
    const Link *link = &stream->links[i];
    if (!link->gone && !link->queue.count && before(highest_number_of_all(stream, link), lowest)) return false;
  }
  return true;
}

/* Whether the stream's own arranger makes a wave now. The arranger sets `take` for each link whose packet is in it. */
static bool is_arranged(OverlayStream *stream)
{
  OverlayArrivals arrivals = {.count = stream->nlinks,
                              .waiting = stream->queued_of,
                              .take = stream->take,
                              .since = now() - stream->last_wave,
                              .argument = stream->arranger.argument,
                              .state = stream->arranger.state};
  bool any = false;
  for (int i = 0; i < stream->nlinks; i++)
    stream->queued_of[i] = (int)stream->links[i].queue.count, stream->take[i] = 0;
  int code = stream->arranger.arrange(&arrivals);
  stream->arranger.state = arrivals.state;
  if (code != OVERLAY_OK) return stream_end(stream, OVERLAY_FAILED, overlay_error()), false;
  stream->deadline = arrivals.again > 0 ? now() + arrivals.again : 0;
  for (int i = 0; i < stream->nlinks; i++) {
    stream->take[i] = stream->take[i] && stream->links[i].queue.count;
    any = any || stream->take[i];
  }
  return any;
}

static bool wave_is_due(OverlayStream *stream)
{
  if (!stream->waiting) return false;
  if (stream->arranger.run) return is_arranged(stream);
  if (stream->options.sync == OVERLAY_DO_NOT_WAIT || !stream->empty) return true;
  if (stream->rejoined && stream->options.sync == OVERLAY_WAIT_FOR_ALL && is_wave_complete(stream)) return true;
  return stream->options.sync == OVERLAY_TIME_OUT && stream->deadline > 0 && now() >= stream->deadline;
}

static OverlayPacket *dequeue(OverlayStream *stream, Link *link)
{
  OverlayPacket *packet = queue_pop(&link->queue);
  if (!packet) return NULL;
  if (!link->queue.count) {
    stream->waiting--;
    if (!link->gone) stream->empty++;
  }
  link->unreturned_bytes += packet->frame->bytes, link->consumed_packets++;
  if (link->gone) stream->last_wave_of_lost = stream->waves + 1;
  return packet;
}

/* The lowest index of the adopted children that have to wait, since earlier packets of their back-ends, received
 * through a lost child, are still queued. */
static int find_first_blocked(const OverlayStream *stream)
{
  int lost = stream->network->nchildren, started = stream->network->nstarted;
  for (int i = 0; i < stream->nlinks; i++) {
    const Link *link = &stream->links[i];
    if (link->gone && link->queue.count && link->neighbour->index < lost) lost = link->neighbour->index;
  }
  return lost < started ? started : lost + 1;
}

static void make_wave(OverlayStream *stream)
{
  int count = 0, turn = -1, end = stream->rejoined ? find_first_blocked(stream) : INT_MAX;
  if (stream->arranger.run) {
    for (int i = 0; i < stream->nlinks; i++)
      if (stream->take[i]) stream->wave[count++] = dequeue(stream, &stream->links[i]);
    stream->last_wave = now();
  } else if (stream->options.sync == OVERLAY_DO_NOT_WAIT) {
    turn = stream->turn % stream->nlinks;
    while (!stream->links[turn].queue.count || stream->links[turn].neighbour->index >= end)
      turn = (turn + 1) % stream->nlinks;
    stream->wave[count++] = dequeue(stream, &stream->links[turn]);
    stream->turn = (turn + 1) % stream->nlinks;
  } else {
    bool by_number = stream->rejoined && stream->options.sync == OVERLAY_WAIT_FOR_ALL;
    uint32_t number = by_number ? next_number(stream) : 0;
    for (int i = 0; i < stream->nlinks; i++) {
      const Link *link = &stream->links[i];
      if (by_number && link->queue.count && packet_number(first_packet(link)) != number) continue;
      if (!by_number && link->neighbour->index >= end) continue;
      if ((stream->wave[count] = dequeue(stream, &stream->links[i]))) count++;
    }
  }
  if (!stream->arranger.run) stream->deadline = stream->waiting ? now() + stream->options.seconds : 0;
  uint32_t first = stream->out.count;
  if (run_filter(stream, &stream->filter, stream->wave, count, &stream->out, &stream->wave_origin) != OVERLAY_OK)
    stream_end(stream, OVERLAY_FAILED, overlay_error());
  stream->state_unsent = stream->filter.save && stream->network->role == INTERNAL;
  stream->waves++, stream->counts.of[WAVES]++;
  for (uint32_t i = first; i < stream->out.count; i++) {
    OverlayPacket *packet = stream->out.items[(stream->out.head + i) & (stream->out.capacity - 1)];
    packet->arrival = stream->network->role == FRONT_END ? ++stream->network->arrivals : stream->waves;
  }
  for (int i = 0; i < count; i++) overlay_release(stream->wave[i]);
  /* Credit is returned after the results of the wave are queued: until then the senders keep their packets. */
  for (int i = 0; turn < 0 && i < stream->nlinks; i++) return_credit(stream, &stream->links[i]);
  if (turn >= 0) return_credit(stream, &stream->links[turn]);
}

static void mark_readable(OverlayStream *stream)
{
  if (stream->readable) return;
  stream->readable = true;
  stream->next_readable = stream->network->readable;
  stream->network->readable = stream;
}

/* Sends the filter's state up, after the results of its wave: an ancestor that has the state counts the wave as
 * received. */
static void send_state(OverlayStream *stream)
{
  OverlayPacket *state = stream->filter.save(stream->filter.state);
  stream->state_unsent = false;
  if (!state) return stream_end(stream, OVERLAY_FAILED, overlay_error());
  state->frame->kind = STATE, state->frame->stream = stream->id;
  set_origin(state->frame, stream->wave_origin);
  post(&stream->network->parent, state);
}

void stream_advance(OverlayStream *stream)
{
  OverlayNetwork *network = stream->network;
  for (int i = 0; stream->rejoined && i < stream->nlinks; i++) send_missed(stream, &stream->links[i]);
  while (network->role != BACK_END && stream->up.queue.count && stream_can_send(stream)) {
    OverlayPacket *packet = queue_pop(&stream->up.queue);
    consumed(stream, &stream->up, packet->frame->bytes);
    stream_send_down(stream, packet);
  }
  for (;;) {
    while (network->role != FRONT_END && stream->out.count && stream->up.credit > 0)
      stream_send_up(stream, queue_pop(&stream->out));
    if (stream->ended || !has_room(stream) || !wave_is_due(stream)) break;
    make_wave(stream);
  }
  if (stream->state_unsent && !stream->out.count) send_state(stream);
  if (network->role == FRONT_END && stream->out.count) mark_readable(stream);
  if (network->role != INTERNAL || stream->drained || stream_has_sources(stream)) return;
  stream->drained = true;
  post_control(&network->parent, DRAINED, stream->id, "");
}

/* ---- received packets ---- */

/* Queues the packet, which this function owns. A sender that exceeds the window is disconnected. */
static bool queued(Neighbour *from, Queue *queue, OverlayPacket *packet)
{
  bool keeps = queue->bytes < from->network->settings.window;
  if (keeps && queue_push(queue, packet) == OVERLAY_OK) return true;
  if (!keeps) overlay_release(packet);
  peer_lose(&from->peer, keeps ? overlay_error() : "it sent more than a stream's window");
  return false;
}

/* Notes the number of a packet. A packet that combines several back-ends has values of all back-ends behind the link; a
 * packet of one back-end comes through a filter that passes on its input. */
static void note_seen(Link *link, Origin origin)
{
  const Neighbour *child = link->neighbour;
  if (origin.leaves > 1 || child->width == 1) {
    if (before(link->highest_number, origin.number)) link->highest_number = origin.number;
    return;
  }
  if (!link->highest_number_of && !(link->highest_number_of = calloc((size_t)child->width, sizeof *link->highest_number_of))) return;
  uint32_t *last_numbers = &link->highest_number_of[origin.source - child->first];
  if (before(*last_numbers, origin.number)) *last_numbers = origin.number;
}

uint32_t stream_seen(const OverlayStream *stream, int backend)
{
  const Neighbour *child = stream->network->children[stream->network->owner[backend - (int)stream->network->first]];
  if (stream->link_of_child[child->index] < 0) return 0;
  const Link *link = &stream->links[stream->link_of_child[child->index]];
  uint32_t single = link->highest_number_of ? link->highest_number_of[backend - child->first] : 0;
  return before(link->highest_number, single) ? single : link->highest_number;
}

static bool is_behind(Neighbour *child, Origin origin)
{
  if (origin.source >= child->first && origin.leaves >= 1 && origin.leaves <= (uint32_t)child->width &&
      origin.source + (int)origin.leaves <= child->first + child->width)
    return true;
  peer_lose(&child->peer, "it sent a packet of back-ends that are not behind it");
  return false;
}

void on_state(Neighbour *from, OverlayPacket *packet)
{
  OverlayStream *stream = stream_of(from->network, packet->frame->stream);
  Origin origin = origin_of(packet->frame);
  if (!is_behind(from, origin) || !stream || stream->link_of_child[from->index] < 0) return;
  Link *link = &stream->links[stream->link_of_child[from->index]];
  if (!stream->filter.load) return;
  note_seen(link, origin);
  overlay_release(link->saved_state);
  link->saved_state = overlay_keep(packet);
}

void stream_load(OverlayStream *stream, const Neighbour *lost)
{
  if (stream->ended || stream->link_of_child[lost->index] < 0) return;
  Link *link = &stream->links[stream->link_of_child[lost->index]];
  if (link->saved_state && stream->filter.load(&stream->filter.state, link->saved_state) != OVERLAY_OK)
    stream_end(stream, OVERLAY_FAILED, overlay_error());
  overlay_release(link->saved_state);
  link->saved_state = NULL;
}

static void received_from_child(OverlayStream *stream, Neighbour *child, OverlayPacket *packet)
{
  Origin origin = origin_of(packet->frame);
  if (!is_behind(child, origin)) return overlay_release(packet);
  if (stream->ended || stream->link_of_child[child->index] < 0) return overlay_release(packet);
  Link *link = &stream->links[stream->link_of_child[child->index]];
  if (link->gone) return overlay_release(packet);
  note_seen(link, origin);
  if (!queued(child, &link->queue, packet)) return;
  if (link->queue.count == 1) stream->waiting++, stream->empty--;
  if (stream->deadline <= 0 && stream->options.sync == OVERLAY_TIME_OUT)
    stream->deadline = now() + stream->options.seconds;
  stream_advance(stream);
}

void stream_received(Neighbour *from, OverlayPacket *packet)
{
  OverlayStream *stream = stream_of(from->network, packet->frame->stream);
  if (!stream) return overlay_release(packet); /* the stream was closed while this packet was in flight */
  if (from->index >= 0) return received_from_child(stream, from, packet);
  packet->arrival = ++from->network->arrivals;
  if (!queued(from, &stream->up.queue, packet)) return;
  if (from->network->role == BACK_END) stream->packets_down++;
  if (from->network->role == BACK_END)
    mark_readable(stream);
  else
    stream_advance(stream);
}

void on_credit(Neighbour *from, OverlayPacket *packet)
{
  OverlayStream *stream = stream_of(from->network, packet->frame->stream);
  uint32_t bytes;
  uint64_t safe;
  if (!stream || overlay_unpack(packet, "%ud %uld", &bytes, &safe) != OVERLAY_OK) return;
  Link *link = &stream->up;
  if (from->index >= 0) {
    if (stream->link_of_child[from->index] < 0) return;
    link = &stream->links[stream->link_of_child[from->index]];
  }
  link->credit += bytes;
  if (from->index < 0 && safe) safe += stream->in_ancestor; /* + those that the ancestor already had */
  if (safe > link->safe && safe <= link->sent) link->safe = safe;
  if (from->index < 0)
    drop_safe_up(stream);
  else
    drop_safe_down(stream);
  stream_advance(stream);
}

/* ---- for the tool ---- */
OverlayPacket *stream_take(OverlayStream *stream)
{
  if (stream->network->role == FRONT_END) {
    OverlayPacket *packet = queue_pop(&stream->out);
    if (!packet) return NULL;
    stream->counts.of[PACKETS_UP]++, stream->counts.of[BYTES_UP] += packet->frame->bytes;
    stream_advance(stream);
    return packet;
  }
  OverlayPacket *packet = queue_pop(&stream->up.queue);
  if (packet) consumed(stream, &stream->up, packet->frame->bytes);
  return packet;
}

/* ---- a lost parent, an adopted child ---- */
void stream_pause(OverlayStream *stream) { stream->up.credit = 0, stream->up.unreturned_bytes = 0; }

void stream_resume(OverlayStream *stream, const uint32_t *last_numbers)
{
  Queue again = {.items = NULL}, received = {.items = NULL};
  int first = (int)stream->network->first;
  for (OverlayPacket *packet; (packet = queue_pop(&stream->resend_up));) {
    Origin origin = origin_of(packet->frame);
    queue_push(before(last_numbers[origin.source - first], origin.number) ? &again : &received, packet);
  }
  for (OverlayPacket *packet; (packet = queue_pop(&stream->out));) queue_push(&again, packet);
  queue_clear(&stream->out), queue_clear(&stream->resend_up);
  stream->out = again, stream->resend_up = received;
  stream->up.credit = stream->network->settings.window, stream->up.safe = 0;
  stream->up.sent = stream->in_ancestor = received.count;
  stream_advance(stream);
}

int stream_add_link(OverlayStream *stream, Neighbour *child, uint64_t packets, uint32_t queued)
{
  OverlayNetwork *network = stream->network;
  uint32_t *last_numbers = calloc((size_t)child->width, sizeof *last_numbers);
  if (!last_numbers) return overlay_fail("no memory for a stream");
  Link link = {.neighbour = child,
               .credit = (int64_t)network->settings.window - queued,
               .sent = packets,
               .safe = packets,
               .highest_number_of = last_numbers};
  for (int i = 0; i < child->width; i++) last_numbers[i] = stream_seen(stream, child->first + i);
  stream_insert(stream, link);
  stream->rejoined = true;
  return OVERLAY_OK;
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

/* Marks the link to a child as gone if no living back-end of the stream is behind it: waves no longer wait for it. If
 * only back-ends behind the child are lost, the child reports by DRAINED that it has sent the last of their packets. */
static void without(OverlayStream *stream, Neighbour *child)
{
  if (stream->link_of_child[child->index] < 0) return;
  Link *link = &stream->links[stream->link_of_child[child->index]];
  if (link->gone || stream_reaches(stream, child)) return;
  link->gone = true;
  if (!link->queue.count) stream->empty--;
  stream_advance(stream);
}

void streams_remove_child(OverlayNetwork *network, Neighbour *child)
{
  for (int bucket = 0; bucket < 64; bucket++)
    for (OverlayStream *stream = network->streams[bucket]; stream; stream = stream->next) without(stream, child);
}

void on_drained(Neighbour *from, OverlayPacket *packet)
{
  OverlayStream *stream = stream_of(from->network, packet->frame->stream);
  if (stream) without(stream, from);
}

int stream_missing(const OverlayStream *stream, int *backends, int max_count)
{
  int count = 0;
  for (uint32_t pair = 0; pair < stream->members.pairs && stream->network->lost; pair++) {
    const uint32_t *range = &stream->members.ranges[2 * pair];
    for (uint32_t i = range[0]; i < range[0] + range[1]; i++) {
      if (!stream->network->lost[i]) continue;
      if (count < max_count) backends[count] = (int)i;
      count++;
    }
  }
  return count;
}
