/* packet.c: packing values into frames, and finding them in frames that anybody may have sent. */
#include "packet.h"
#include "errors.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Atomic counting would cost a single thread a tenth of its packets. */
static bool atomically;

void count_references_atomically(void) { __atomic_store_n(&atomically, true, __ATOMIC_RELAXED); }

static void keep(int *references)
{
  if (__builtin_expect(atomically, 0))
    __atomic_add_fetch(references, 1, __ATOMIC_RELAXED);
  else
    ++*references;
}

static int release(int *references)
{
  return __builtin_expect(atomically, 0) ? __atomic_sub_fetch(references, 1, __ATOMIC_ACQ_REL) : --*references;
}

Block *block_new(size_t size)
{
  Block *block = malloc(sizeof *block + size);
  if (!block) return overlay_fail("no memory for %zu bytes", size), NULL;
  block->references = 1, block->size = size;
  return block;
}

void block_release(Block *block)
{
  if (block && release(&block->references) == 0) free(block);
}

static size_t aligned(size_t at, size_t size) { return (at + size - 1) / size * size; }

/* A walk over the places of values in a frame: where writing and reading agree about them. */
typedef struct {
  size_t at, end;
} Walk;

static size_t reserve(Walk *walk, size_t size, uint64_t count)
{
  size_t start = aligned(walk->at, size);
  if (start > walk->end || count > (walk->end - start) / size) return 0; /* no value lies at 0 */
  walk->at = start + size * (size_t)count;
  return start;
}

/* Where strings one after the other end; NULL if there are not `count` in so many bytes. */
static const char *strings_end(const char *first, size_t bytes, uint32_t count)
{
  for (const char *at = first; count--; at++) {
    size_t remaining = bytes - (size_t)(at - first);
    if (!remaining || !(at = memchr(at, 0, remaining))) return NULL;
    if (!count) return at + 1;
  }
  return first;
}

static const char **string_table(OverlayPacket *packet, int index, const char *first, uint32_t count)
{
  if (!packet->tables && !(packet->tables = calloc(MAX_VALUES, sizeof *packet->tables))) return NULL;
  const char **table = packet->tables[index];
  if (table || !(table = malloc((count ? count : 1) * sizeof *table))) return table;
  for (uint32_t i = 0; i < count; i++, first += strlen(first) + 1) table[i] = first;
  return packet->tables[index] = table;
}

/* Numbers of the other byte order. */
static void turn(char *at, size_t size, uint32_t count)
{
  uint16_t two;
  uint32_t four;
  uint64_t eight;
  for (; size > 1 && count--; at += size)
    if (size == 2)
      memcpy(&two, at, 2), two = __builtin_bswap16(two), memcpy(at, &two, 2);
    else if (size == 4)
      memcpy(&four, at, 4), four = __builtin_bswap32(four), memcpy(at, &four, 4);
    else
      memcpy(&eight, at, 8), eight = __builtin_bswap64(eight), memcpy(at, &eight, 8);
}

static uint32_t read_count(char *at, bool turns)
{
  uint32_t count;
  if (turns) turn(at, 4, 1);
  memcpy(&count, at, 4);
  return count;
}

/* Finds the values of a frame; without `values`, only checks that all are present, and converts their byte order. */
static int walk_values(OverlayPacket *packet, const Type *types, int count, OverlayValue *values)
{
  Frame *frame = packet->frame;
  char *base = (char *)frame;
  bool turns = frame->order != OWN_ORDER;
  Walk walk = {aligned(sizeof *frame + frame->format, 8), frame->bytes};
  for (int i = 0; i < count; i++) {
    Type type = types[i];
    uint32_t elements = 1, bytes;
    size_t at;
    OverlayValue value = {.ud = 0};
    if (type.array || type.code == 's') {
      if (!(at = reserve(&walk, 4, 1))) return overlay_fail("value %d of '%s' is cut off", i + 1, base + sizeof *frame);
      elements = read_count(base + at, turns);
    }
    if (type.code == 's') {
      bytes = elements;
      if (type.array) {
        if (!(at = reserve(&walk, 4, 1))) return overlay_fail("value %d of '%s' is cut off", i + 1, base + sizeof *frame);
        bytes = read_count(base + at, turns);
      }
      uint32_t strings = type.array ? elements : 1;
      if (!(at = reserve(&walk, 1, bytes)))
        return overlay_fail("value %d of '%s' is cut off", i + 1, base + sizeof *frame);
      if (!values && strings_end(base + at, bytes, strings) != base + at + bytes)
        return overlay_fail("value %d of '%s' does not hold %u strings", i + 1, base + sizeof *frame, strings);
      value.s = base + at;
      if (values && type.array && !(value.array = string_table(packet, i, base + at, elements)))
        return overlay_fail("no memory for %u strings", elements);
    } else {
      if (!(at = reserve(&walk, type.size, elements)))
        return overlay_fail("value %d of '%s' is cut off", i + 1, base + sizeof *frame);
      if (turns) turn(base + at, type.size, elements);
      if (type.array)
        value.array = base + at;
      else
        value = element_of(type, base + at, 0);
    }
    if (type.array) value.count = elements;
    if (values) values[i] = value;
  }
  return walk.at + 8 > frame->bytes ? count : overlay_fail("'%s' has bytes after its values", base + sizeof *frame);
}

OverlayPacket *packet_of(Block *block, Frame *frame)
{
  Type types[MAX_VALUES];
  const char *format = (const char *)(frame + 1);
  if (frame->order < LITTLE_ENDIAN_FRAME || frame->order >= END_OF_ORDERS)
    return overlay_fail("found a byte order %d, wanted %d or %d", frame->order, LITTLE_ENDIAN_FRAME, BIG_ENDIAN_FRAME), NULL;
  if (frame->order != OWN_ORDER) {
    frame->bytes = frame_length(frame), frame->format = __builtin_bswap16(frame->format);
    frame->stream = __builtin_bswap32(frame->stream), frame->origin = __builtin_bswap64(frame->origin);
    turn((char *)&frame->tag, sizeof frame->tag, 1);
  }
  if (frame->bytes < sizeof *frame || frame->format < 1 || frame->format > frame->bytes - sizeof *frame ||
      format[frame->format - 1])
    return overlay_fail("found a format that does not end"), NULL;
  OverlayPacket *packet = malloc(sizeof *packet);
  if (!packet) return overlay_fail("no memory for a packet"), NULL;
  *packet = (OverlayPacket){.references = 1, .block = block, .frame = frame};
  int count = format_types(format, types);
  if (count < 0 || walk_values(packet, types, count, NULL) < 0) {
    free(packet);
    return NULL;
  }
  frame->order = OWN_ORDER;
  keep(&block->references);
  return packet;
}

OverlayPacket *copy_packet(OverlayPacket *packet)
{
  Block *block = block_new(packet->frame->bytes);
  if (!block) return NULL;
  memcpy(block->bytes, packet->frame, packet->frame->bytes);
  OverlayPacket *own = packet_of(block, (Frame *)block->bytes);
  block_release(block);
  return own;
}

OverlayPacket *overlay_keep(OverlayPacket *packet)
{
  keep(&packet->references);
  return packet;
}

void overlay_release(OverlayPacket *packet)
{
  if (!packet || release(&packet->references)) return;
  for (int i = 0; packet->tables && i < MAX_VALUES; i++) free(packet->tables[i]);
  free(packet->tables);
  Block *block = packet->block;
  if ((unsigned char *)packet != block->bytes) free(packet); /* else it goes with its block */
  block_release(block);
}

/* Where the next value of this size goes; the gap before it is zeroed, so that nothing else of this process leaves. */
static size_t padded(char *base, size_t at, size_t size)
{
  size_t start = aligned(at, size);
  for (; base && at < start; at++) base[at] = 0;
  return start;
}

/* Lays the values out behind the header; without a frame it only counts the bytes. */
static size_t lay_out(Frame *frame, size_t at, const Type *types, int count, const OverlayValue *values)
{
  char *base = (char *)frame;
  for (int i = 0; i < count; i++) {
    Type type = types[i];
    const OverlayValue *value = &values[i];
    uint32_t elements = type.array ? value->count : 1;
    if (type.array || type.code == 's') {
      size_t heads = padded(base, at, 4);
      at = heads + 4u * (1u + (type.array && type.code == 's'));
      if (base) memcpy(base + heads, &elements, 4);
      if (type.code == 's') {
        const char *const *strings = type.array ? value->array : &value->s;
        size_t start = at;
        for (uint32_t s = 0; s < elements; s++) {
          size_t length = strlen(strings[s]) + 1;
          if (base) memcpy(base + at, strings[s], length);
          at += length;
        }
        uint32_t bytes = (uint32_t)(at - start);
        if (base) memcpy(base + start - 4, &bytes, 4);
        continue;
      }
    }
    at = padded(base, at, type.size);
    if (base && !type.array) set_element(type, base + at, 0, *value);
    if (base && type.array && elements) memcpy(base + at, value->array, (size_t)elements * type.size);
    at += (size_t)elements * type.size;
  }
  return at;
}

OverlayPacket *overlay_pack_values(int tag, const char *format, const OverlayValue *values)
{
  Type types[MAX_VALUES];
  size_t length = strlen(format) + 1;
  int count = format_types(format, types);
  if (count < 0) return NULL;
  if (length > UINT16_MAX)
    return overlay_fail("found a format of %zu bytes, wanted at most %d", length, UINT16_MAX), NULL;
  size_t start = aligned(sizeof(Frame) + length, 8), end = lay_out(NULL, start, types, count, values);
  size_t bytes = aligned(end, 8);
  if (bytes > MAX_FRAME_BYTES)
    return overlay_fail("found a packet of %zu bytes, wanted at most %d MiB", bytes, MAX_FRAME_BYTES >> 20), NULL;
  size_t head = aligned(sizeof(OverlayPacket), 16);
  Block *block = block_new(head + bytes);
  if (!block) return NULL;
  OverlayPacket *packet = (OverlayPacket *)block->bytes;
  Frame *frame = (Frame *)(block->bytes + head);
  *frame = (Frame){.bytes = (uint32_t)bytes, .order = OWN_ORDER, .format = (uint16_t)length, .tag = tag};
  memset(frame + 1, 0, start - sizeof *frame);
  memcpy(frame + 1, format, length);
  *packet = (OverlayPacket){.references = 1, .block = block, .frame = frame};
  padded((char *)frame, lay_out(frame, start, types, count, values), 8);
  return packet;
}

const char *overlay_format(const OverlayPacket *packet) { return (const char *)(packet->frame + 1); }
int overlay_tag(const OverlayPacket *packet) { return packet->frame->tag; }
int overlay_source(const OverlayPacket *packet) { return origin_of(packet->frame).source; }
int overlay_leaves(const OverlayPacket *packet) { return (int)origin_of(packet->frame).leaves; }

int overlay_values(OverlayPacket *packet, OverlayValue *values, int max_count)
{
  Type types[MAX_VALUES];
  int count = format_types(overlay_format(packet), types);
  if (count > max_count) return overlay_fail("'%s' has %d values, wanted at most %d", overlay_format(packet), count, max_count);
  return walk_values(packet, types, count, values);
}

uint64_t overlay_checksum(const void *bytes, size_t count)
{
  uint64_t sum = 0xcbf29ce484222325u;
  for (const unsigned char *at = bytes; count--; at++) sum = (sum ^ *at) * 0x100000001b3u;
  return sum;
}
