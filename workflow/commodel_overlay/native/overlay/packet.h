/* packet.h: frames, the format of packets on the wire and in memory, and blocks, the memory that contains frames.
 *
 * A frame is a header, a format string with its terminating zero, and the values, each aligned to its size. Its length
 * is a multiple of 8. The next frame in a receive buffer is therefore aligned, and values are read without a copy. A
 * sender uses the byte order of its host and marks the frame with it. A receiver with the other order swaps the bytes
 * of all numbers in place.
 */
#ifndef OVERLAY_PACKET_H
#define OVERLAY_PACKET_H

#include "overlay.h"

#include <stdalign.h>

enum { MAX_FRAME_BYTES = 256 << 20, MAX_VALUES = 64, NOT_A_BACKEND = -1 };

enum { LITTLE_ENDIAN_FRAME = 1, BIG_ENDIAN_FRAME, END_OF_ORDERS };
enum { OWN_ORDER = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? LITTLE_ENDIAN_FRAME : BIG_ENDIAN_FRAME };

typedef struct {
  uint32_t bytes; /* length of the frame, header included */
  uint8_t kind, order;
  uint16_t format; /* bytes of the format string, terminating zero included */
  uint32_t stream;
  int32_t tag;
  uint64_t origin; /* the three fields of an Origin, packed: origin_of() */
} Frame;

/* Length in bytes of a received frame, in either byte order. */
static inline uint32_t frame_length(const Frame *frame)
{
  return frame->order == OWN_ORDER ? frame->bytes : __builtin_bswap32(frame->bytes);
}

/* The back-ends whose values a packet contains. */
typedef struct {
  int source; /* the lowest back-end, or NOT_A_BACKEND */
  uint32_t leaves; /* number of these back-ends */
  /* Each back-end numbers its packets of a stream from 1, modulo 2^26. This is the highest number of those combined. */
  uint32_t number;
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

/* Whether one number precedes another; numbers wrap around at 2^26. */
static inline int before(uint32_t one, uint32_t other) { return ((one - other) & NUMBER_MASK) > NUMBER_MASK / 2; }

typedef struct {
  int references;
  size_t size;
  alignas(16) unsigned char bytes[];
} Block;
Block *block_new(size_t size);
void block_release(Block *block);
void count_references_atomically(void); /* from now on, because several threads use packets */

struct OverlayPacket {
  int references;
  Block *block; /* contains the frame */
  Frame *frame;
  /* Position in the order of received packets. In an internal process, for a packet that moves up: number of its wave. */
  uint64_t arrival;
  const char ***tables; /* for each value that is an unpacked string array: pointers to its strings */
};
/* Returns the packet of a frame in a block, and converts the frame to this host's byte order. NULL if the frame is
 * malformed or memory is exhausted: see overlay_error(). */
OverlayPacket *packet_of(Block *block, Frame *frame);
OverlayPacket *copy_packet(OverlayPacket *packet); /* a copy, whose header can be changed */

/* format.c: the types that a format string names. */
typedef struct {
  char code;    /* 'd' or 'u': a signed or unsigned integer, %c and %uc included; 'f'; 's' */
  uint8_t size; /* of an element in bytes; 1 for strings */
  uint8_t array;
} Type;
int format_types(const char *format, Type types[static MAX_VALUES]); /* returns the number of types, or OVERLAY_FAILED */
int format_same(const char *one, const char *other);                  /* whether the types are the same; spaces do not matter */

/* Returns or sets an element of an array of numbers; a value has the widest type of its kind. */
OverlayValue element_of(Type type, const void *array, uint32_t index);
void set_element(Type type, void *array, uint32_t index, OverlayValue value);

#endif
