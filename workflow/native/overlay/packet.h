/* packet.h: frames, which packets are on the wire and in memory alike, and the blocks that they lie in.
 *
 * A frame is a header, its format string with the zero at its end, and the values, each aligned to its size. Its length
 * is a multiple of 8, so the next frame of a stream of bytes is aligned too and values are used where they arrived. A
 * sender uses the byte order of its host and says which; a receiver of the other order turns all numbers where they lie.
 */
#ifndef OVERLAY_PACKET_H
#define OVERLAY_PACKET_H

#include "overlay.h"

#include <stdalign.h>

enum { MAX_FRAME_BYTES = 256 << 20, MAX_VALUES = 64, NOT_A_BACKEND = -1 };

enum { LITTLE_ENDIAN_FRAME = 1, BIG_ENDIAN_FRAME, BOTH_ORDERS };
enum { OWN_ORDER = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? LITTLE_ENDIAN_FRAME : BIG_ENDIAN_FRAME };

typedef struct {
  uint32_t bytes; /* of the frame, the header too */
  uint8_t kind, order;
  uint16_t format; /* bytes of the format string, its end too */
  uint32_t stream;
  int32_t tag;
  uint64_t origin; /* in as few bytes as it takes: origin_of() */
} Frame;

/* Of one that has arrived: its length, in whatever order. */
static inline uint32_t frame_length(const Frame *frame)
{
  return frame->order == OWN_ORDER ? frame->bytes : __builtin_bswap32(frame->bytes);
}

/* Whose values a packet holds. */
typedef struct {
  int source; /* the lowest back-end, or NOT_A_BACKEND */
  uint32_t leaves;
  uint32_t number; /* which of its back-ends' packets it was made of, counted from 1, modulo 2^26 */
} Origin;
enum { NODE_BITS = 19, NODE_MASK = (1 << NODE_BITS) - 1, NUMBER_MASK = (1 << 26) - 1 };

static inline Origin origin_of(const Frame *frame)
{
  uint64_t origin = frame->origin;
  return (Origin){(int)(origin & NODE_MASK) - 1, origin >> NODE_BITS & NODE_MASK, (uint32_t)(origin >> 2 * NODE_BITS)};
}

static inline void set_origin(Frame *frame, Origin origin)
{
  frame->origin = (uint64_t)(origin.number & NUMBER_MASK) << 2 * NODE_BITS |
                  (uint64_t)(origin.leaves & NODE_MASK) << NODE_BITS | ((uint64_t)(origin.source + 1) & NODE_MASK);
}

/* Whether one number comes before another; they go around. */
static inline int before(uint32_t one, uint32_t other) { return ((one - other) & NUMBER_MASK) > NUMBER_MASK / 2; }

typedef struct {
  int references;
  size_t size;
  alignas(16) unsigned char bytes[];
} Block;
Block *block_new(size_t size);
void block_release(Block *block);
void count_references_atomically(void); /* from now on: several threads have packets */

struct OverlayPacket {
  int references;
  Block *block; /* that the frame lies in */
  Frame *frame;
  uint64_t arrival;     /* counts what a tool can receive; in an internal process, the wave that it was made in */
  const char ***tables; /* of string arrays that were unpacked */
};
/* The packet of a frame in a block, in this host's byte order from now on. NULL: no memory, or it is malformed: overlay_error() says how. */
OverlayPacket *packet_of(Block *block, Frame *frame);
OverlayPacket *packet_own(OverlayPacket *packet); /* the same values under a header of their own, to change */

/* format.c: the types that a format string names. */
typedef struct {
  char code;    /* as in a format string: 'd', 'f', 'c' or 's', 'u' for unsigned */
  uint8_t size; /* of an element in bytes; 1 for strings */
  uint8_t array;
} Type;
int format_types(const char *format, Type types[static MAX_VALUES]); /* how many; OVERLAY_FAILED */
int format_same(const char *one, const char *other);                  /* the same types, however they are spaced */

/* One element of an array of numbers, widened. */
OverlayValue element_of(Type type, const void *array, uint32_t index);
void set_element(Type type, void *array, uint32_t index, OverlayValue value);

#endif
