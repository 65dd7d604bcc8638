/* arena.c: allocation of messages in one buffer. Messages in flight at the same time have disjoint slots, others reuse
 * memory. Each slot begins at a multiple of 64 bytes. */
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  size_t begin, end; /* bytes */
  int last_step;     /* in which the message is in flight */
} Slot;

struct Arena {
  Slot *slots; /* in use, in order of their addresses */
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
  size_t remaining = 0;
  for (size_t i = 0; i < arena->count; i++)
    if (arena->slots[i].last_step >= step) arena->slots[remaining++] = arena->slots[i];
  arena->count = remaining;
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

size_t allocate_in_arena(Arena *arena, size_t bytes, int step, int last_step)
{
  if (step != arena->step) release_slots(arena, step);
  size_t length = (bytes + 63) / 64 * 64, slot = arena->next, begin;
  for (;; slot++) {
    begin = slot == 0 ? 0 : arena->slots[slot - 1].end;
    if (slot == arena->count || arena->slots[slot].begin - begin >= length) break;
  }
  ensure_capacity(arena);
  memmove(&arena->slots[slot + 1], &arena->slots[slot], (arena->count - slot) * sizeof *arena->slots);
  arena->slots[slot] = (Slot){begin, begin + length, last_step};
  arena->count++;
  arena->next = slot + 1;
  if (begin + length > arena->bytes) arena->bytes = begin + length;
  return begin;
}

size_t close_arena(Arena *arena)
{
  size_t bytes = arena->bytes;
  free(arena->slots);
  free(arena);
  return bytes;
}
