/* arena.c: places for messages in one buffer: concurrent messages lie side by side, others share memory. Each place
 * begins at a multiple of 64 bytes. */
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  size_t from, to;
  int until;
} Place;

struct Arena {
  Place *places; /* in use, in order */
  size_t count, most;
  size_t next; /* before this place there was no gap for the last message of the step */
  size_t bytes;
  int step;
};

Arena *open_arena(void)
{
  Arena *arena = allocate(1, sizeof *arena);
  arena->step = -1;
  return arena;
}

static void enter(Arena *arena, int step)
{
  size_t kept = 0;
  for (size_t i = 0; i < arena->count; i++)
    if (arena->places[i].until >= step) arena->places[kept++] = arena->places[i];
  arena->count = kept;
  arena->next = 0;
  arena->step = step;
}

static void grow(Arena *arena)
{
  if (arena->count < arena->most) return;
  arena->most = arena->most ? 2 * arena->most : 16;
  Place *larger = allocate(arena->most, sizeof *larger);
  if (arena->count) memcpy(larger, arena->places, arena->count * sizeof *larger);
  free(arena->places);
  arena->places = larger;
}

size_t allocate_in_arena(Arena *arena, size_t bytes, int step, int until)
{
  if (step != arena->step) enter(arena, step);
  size_t length = (bytes + 63) / 64 * 64, at = arena->next, from;
  for (;; at++) {
    from = at == 0 ? 0 : arena->places[at - 1].to;
    if (at == arena->count || arena->places[at].from - from >= length) break;
  }
  grow(arena);
  memmove(&arena->places[at + 1], &arena->places[at], (arena->count - at) * sizeof *arena->places);
  arena->places[at] = (Place){from, from + length, until};
  arena->count++;
  arena->next = at + 1;
  if (from + length > arena->bytes) arena->bytes = from + length;
  return from;
}

size_t close_arena(Arena *arena)
{
  size_t bytes = arena->bytes;
  free(arena->places);
  free(arena);
  return bytes;
}
