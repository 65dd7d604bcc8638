/* arena.c: allocation of messages in one buffer: concurrent messages have disjoint slots, others share memory. Each slot
 * begins at a multiple of 64 bytes. */
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  size_t from, to;
  int until;
} Slot;

struct Arena {
  Slot *slots; /* in use, in order */
  size_t count, capacity;
  size_t next; /* slot at which the search of this step continues */
  size_t bytes;
  int step;
};

Arena *open_arena(void)
{
  Arena *arena = allocate(1, sizeof *arena);
  arena->step = -1;
  return arena;
}

static void release_slots(Arena *arena, int step)
{
  size_t kept = 0;
  for (size_t i = 0; i < arena->count; i++)
    if (arena->slots[i].until >= step) arena->slots[kept++] = arena->slots[i];
  arena->count = kept;
  arena->next = 0;
  arena->step = step;
}

static void ensure_capacity(Arena *arena)
{
  if (arena->count < arena->capacity) return;
  arena->capacity = arena->capacity ? 2 * arena->capacity : 16;
  Slot *larger = allocate(arena->capacity, sizeof *larger);
  if (arena->count) memcpy(larger, arena->slots, arena->count * sizeof *larger);
  free(arena->slots);
  arena->slots = larger;
}

size_t allocate_in_arena(Arena *arena, size_t bytes, int step, int until)
{
  if (step != arena->step) release_slots(arena, step);
  size_t length = (bytes + 63) / 64 * 64, at = arena->next, from;
  for (;; at++) {
    from = at == 0 ? 0 : arena->slots[at - 1].to;
    if (at == arena->count || arena->slots[at].from - from >= length) break;
  }
  ensure_capacity(arena);
  memmove(&arena->slots[at + 1], &arena->slots[at], (arena->count - at) * sizeof *arena->slots);
  arena->slots[at] = (Slot){from, from + length, until};
  arena->count++;
  arena->next = at + 1;
  if (from + length > arena->bytes) arena->bytes = from + length;
  return from;
}

size_t close_arena(Arena *arena)
{
  size_t bytes = arena->bytes;
  free(arena->slots);
  free(arena);
  return bytes;
}
