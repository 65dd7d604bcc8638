/* tool.c: what front-ends and back-ends do with networks and streams. */
#include "errors.h"
#include "streams.h"

#include <stdlib.h>
#include <string.h>

/* ---- networks ---- */
int overlay_backends(const OverlayNetwork *network) { return (int)network->backends; }
int overlay_backend(const OverlayNetwork *network) { return network->role == BACK_END ? (int)network->first : -1; }
int overlay_fd(const OverlayNetwork *network) { return network->loop.epoll; }

static int ended(void)
{
  overlay_fail("the network has ended");
  return OVERLAY_CLOSED;
}

static int flush_locked(OverlayNetwork *network)
{
  network_flush(network);
  handle_losses(network);
  return network->state >= ENDING ? ended() : OVERLAY_OK;
}

int overlay_flush(OverlayNetwork *network)
{
  enter(network);
  int result = flush_locked(network);
  leave(network);
  return result;
}

void overlay_close(OverlayNetwork *network)
{
  if (!network) return;
  share_free(network); /* the other threads are done with it */
  network_flush(network);
  if (network->role == BACK_END)
    network->state = ENDING, drain(network);
  else
    end_children(network);
  network_free(network);
}

/* ---- streams ---- */
static OverlayStream *open_locked(OverlayComm *comm, const OverlayStreamOptions *options)
{
  static const OverlayStreamOptions defaults;
  OverlayNetwork *network = comm->network;
  if (!options) options = &defaults;
  if (network->state != RUNNING) return overlay_fail("streams are opened once all back-ends have attached"), NULL;
  if (options->sync < OVERLAY_WAIT_FOR_ALL || options->sync > OVERLAY_DO_NOT_WAIT ||
      (options->sync == OVERLAY_TIME_OUT && !(options->seconds > 0)))
    return overlay_fail("wanted a known way to wait, and with OVERLAY_TIME_OUT more than 0 seconds"), NULL;
  OverlayPacket *packet = open_packet(options, comm);
  OverlayStream *stream = packet ? stream_new(network, network->opened, packet) : NULL;
  overlay_release(packet);
  if (!stream) return NULL;
  network->opened++;
  stream->options.on_loss = options->on_loss;
  for (int i = 0; i < stream->nlinks; i++) post(stream->links[i].neighbour, overlay_keep(stream->opened));
  return stream;
}

OverlayStream *overlay_open(OverlayComm *comm, const OverlayStreamOptions *options)
{
  OverlayNetwork *network = comm->network;
  enter(network);
  OverlayStream *result = open_locked(comm, options);
  leave(network);
  return result;
}

uint32_t overlay_stream_id(const OverlayStream *stream) { return stream->id; }

void overlay_close_stream(OverlayStream *stream)
{
  if (!stream || stream->network->role != FRONT_END) return;
  OverlayNetwork *network = stream->network;
  enter(network);
  stream_end(stream, OVERLAY_CLOSED, "the front-end has closed the stream");
  stream_free(stream);
  leave(network);
}

static int why_ended(const OverlayStream *stream)
{
  overlay_fail("%s", stream->failure ? stream->failure : "the stream has ended");
  return stream->ended;
}

static int set_argument_locked(OverlayStream *stream, const char *argument)
{
  if (stream->network->role != FRONT_END) return overlay_fail("only the front-end sets the argument of filters");
  return stream->ended ? why_ended(stream) : stream_set_argument(stream, argument);
}

int overlay_set_argument(OverlayStream *stream, const char *argument)
{
  OverlayNetwork *network = stream->network;
  enter(network);
  int result = set_argument_locked(stream, argument);
  leave(network);
  return result;
}

int overlay_missing(const OverlayStream *stream, int *backends, int max_count)
{
  const OverlayNetwork *network = stream->network;
  enter(network);
  int result = stream_missing(stream, backends, max_count);
  leave(network);
  return result;
}

int overlay_ended(const OverlayStream *stream)
{
  enter(stream->network);
  int code = stream->ended ? why_ended(stream) : OVERLAY_OK;
  leave(stream->network);
  return code;
}

/* ---- sending ---- */
static int writable_locked(const OverlayStream *stream)
{
  return !stream->ended && stream->network->state == RUNNING && stream_can_send(stream);
}

int overlay_writable(const OverlayStream *stream)
{
  const OverlayNetwork *network = stream->network;
  enter(network);
  int result = writable_locked(stream);
  leave(network);
  return result;
}

/* What a back-end's filter makes of a packet, each with a number of its own. Takes the reference. */
static void send_filtered(OverlayStream *stream, OverlayPacket *packet)
{
  Queue out = {.items = NULL};
  if (stream_filter(stream, &stream->filter, packet, &out) == OVERLAY_OK)
    for (OverlayPacket *next; (next = queue_pop(&out));) {
      set_origin(next->frame, (Origin){(int)stream->network->first, 1, ++stream->packets_sent});
      stream_send_up(stream, next);
    }
  queue_clear(&out);
  overlay_release(packet);
}

static int send_packet_locked(OverlayStream *stream, OverlayPacket *packet)
{
  OverlayNetwork *network = stream->network;
  bool up = network->role == BACK_END;
  while (!stream->ended && network->state == RUNNING && !stream_can_send(stream))
    if (network_progress(network, -1) != OVERLAY_OK) return OVERLAY_FAILED;
  /* The front-end may end a stream while its back-ends still answer: what they send then is dropped. */
  if (stream->ended) return up ? OVERLAY_OK : why_ended(stream);
  if (network->state != RUNNING) return ended();
  Frame wanted = *packet->frame;
  wanted.kind = DATA, wanted.stream = stream->id;
  set_origin(&wanted, up ? (Origin){(int)network->first, 1, stream->packets_sent + 1} : (Origin){NOT_A_BACKEND, 0, 0});
  bool same = memcmp(&wanted, packet->frame, sizeof wanted) == 0;
  /* The packet may still be on its way on another stream, under its header. */
  OverlayPacket *own = same || packet->references == 1 ? overlay_keep(packet) : copy_packet(packet);
  if (!own) return OVERLAY_FAILED;
  if (!same) *own->frame = wanted;
  if (!up) {
    stream_send_down(stream, own);
  } else if (!stream->filter.run) {
    stream->packets_sent++;
    stream_send_up(stream, own);
  } else {
    send_filtered(stream, own);
  }
  return up || !stream->ended ? OVERLAY_OK : why_ended(stream);
}

int overlay_send_packet(OverlayStream *stream, OverlayPacket *packet)
{
  OverlayNetwork *network = stream->network;
  enter(network);
  int result = send_packet_locked(stream, packet);
  leave(network);
  return result;
}

/* ---- receiving ---- */

/* OVERLAY_OK: nothing yet, but something may come. */
static int may_come(const OverlayStream *stream)
{
  if (stream->ended) return why_ended(stream);
  if (stream->network->state != RUNNING) return ended();
  if (stream->network->role == BACK_END || stream_has_sources(stream)) return OVERLAY_OK;
  overlay_fail("all back-ends of the stream are lost");
  return OVERLAY_LOST;
}

static int turn_until(OverlayNetwork *network, double seconds, double end, bool *waited)
{
  double left = seconds < 0 ? -1 : end - now();
  if (seconds >= 0 && left <= 0 && *waited) {
    overlay_fail("nothing came within %g s", seconds);
    return OVERLAY_TIMEOUT;
  }
  *waited = true;
  return network_progress(network, seconds < 0 ? -1 : left > 0 ? left : 0);
}

static int recv_locked(OverlayStream *stream, double seconds, OverlayPacket **packet)
{
  double end = seconds > 0 ? now() + seconds : 0;
  bool waited = false;
  for (int code; !(*packet = stream_take(stream));) {
    if ((code = may_come(stream)) != OVERLAY_OK) return code;
    if ((code = turn_until(stream->network, seconds, end, &waited)) != OVERLAY_OK) return code;
  }
  return OVERLAY_OK;
}

int overlay_recv(OverlayStream *stream, double seconds, OverlayPacket **packet)
{
  OverlayNetwork *network = stream->network;
  enter(network);
  int result = recv_locked(stream, seconds, packet);
  leave(network);
  return result;
}

/* Returns the stream with the earliest packet; NULL: none has a packet. */
static OverlayStream *next_readable(OverlayNetwork *network)
{
  OverlayStream *first = NULL;
  uint64_t arrival = UINT64_MAX;
  for (OverlayStream **at = &network->readable; *at;) {
    OverlayStream *stream = *at;
    const Queue *queue = network->role == FRONT_END ? &stream->out : &stream->up.queue;
    if (!queue->count) {
      stream->readable = false;
      *at = stream->next_readable;
      continue;
    }
    if (queue->items[queue->head]->arrival < arrival) first = stream, arrival = queue->items[queue->head]->arrival;
    at = &stream->next_readable;
  }
  return first;
}

static OverlayStream *newly_ended(OverlayNetwork *network)
{
  for (int bucket = 0; bucket < 64; bucket++)
    for (OverlayStream *stream = network->streams[bucket]; stream; stream = stream->next)
      if (stream->ended && !stream->end_reported) return stream;
  return NULL;
}

static int recv_any_locked(OverlayNetwork *network, double seconds, OverlayPacket **packet, OverlayStream **stream)
{
  double end = seconds > 0 ? now() + seconds : 0;
  bool waited = false;
  *packet = NULL;
  for (int code; !(*stream = next_readable(network));) {
    if (network->role == FRONT_END && (*stream = newly_ended(network))) {
      (*stream)->end_reported = true;
      return why_ended(*stream);
    }
    if (network->state != RUNNING) return ended();
    if ((code = turn_until(network, seconds, end, &waited)) != OVERLAY_OK) return code;
  }
  *packet = stream_take(*stream);
  return OVERLAY_OK;
}

int overlay_recv_any(OverlayNetwork *network, double seconds, OverlayPacket **packet, OverlayStream **stream)
{
  enter(network);
  int result = recv_any_locked(network, seconds, packet, stream);
  leave(network);
  return result;
}
