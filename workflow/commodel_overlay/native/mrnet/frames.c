/* frames.c: packets and filters of the overlay network for processes of MRNet. */
#include "frames.h"
#include "filter.h"

#include <stdlib.h>
#include <string.h>

size_t frame_bytes(const OverlayPacket *packet) { return packet->frame->bytes; }

void *frame_copy(const OverlayPacket *packet)
{
  void *copy = malloc(packet->frame->bytes);
  return copy ? memcpy(copy, packet->frame, packet->frame->bytes) : NULL;
}

OverlayPacket *packet_of_frame(const void *bytes, size_t count)
{
  const Frame *sent = bytes;
  if (count < sizeof *sent || sent->bytes != count) return overlay_fail("found a packet that is cut off"), NULL;
  Block *block = block_new(count);
  if (!block) return NULL;
  memcpy(block->bytes, bytes, count);
  OverlayPacket *packet = packet_of(block, (Frame *)block->bytes);
  block_release(block);
  return packet;
}

OverlayPacket *packet_from(OverlayPacket *packet, int backend)
{
  OverlayPacket *own = copy_packet(packet);
  if (own) set_origin(own->frame, (Origin){backend, 1, 0});
  return own;
}

/* ---- a filter of a stream ---- */
static int by_source(const void *one, const void *other)
{
  int a = overlay_source(*(OverlayPacket *const *)one), b = overlay_source(*(OverlayPacket *const *)other);
  return (a > b) - (a < b);
}

int reduce_wave(void **state, const char *name, OverlayPacket **in, int count, Emit *emit, void *target)
{
  Filter *filter = *state;
  Origin origin;
  if (!filter) {
    if (!(filter = *state = calloc(1, sizeof *filter))) return overlay_fail("no memory for a filter");
    if (filter_find(name, filter) != OVERLAY_OK) return OVERLAY_FAILED;
  }
  Queue out = {.items = NULL};
  qsort(in, (size_t)count, sizeof *in, by_source);
  int code = filter_run(filter, in, count, 0, &out, &origin);
  for (OverlayPacket *packet; (packet = queue_pop(&out)); overlay_release(packet)) emit(target, packet);
  queue_clear(&out);
  return code;
}
