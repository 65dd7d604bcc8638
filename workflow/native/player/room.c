/* room.c: places for messages in one buffer: concurrent messages lie side by side, others share memory. Each place
 * begins at a multiple of 64 bytes. */
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  size_t from, to;
  int until;
} Place;

struct Room {
  Place *places; /* in use, in order */
  size_t count, most;
  size_t next; /* before this place there was no gap for the last message of the step */
  size_t bytes;
  int step;
};

Room *open_room(void)
{
  Room *room = allocate(1, sizeof *room);
  room->step = -1;
  return room;
}

static void enter(Room *room, int step)
{
  size_t kept = 0;
  for (size_t i = 0; i < room->count; i++)
    if (room->places[i].until >= step) room->places[kept++] = room->places[i];
  room->count = kept;
  room->next = 0;
  room->step = step;
}

static void grow(Room *room)
{
  if (room->count < room->most) return;
  room->most = room->most ? 2 * room->most : 16;
  Place *larger = allocate(room->most, sizeof *larger);
  if (room->count) memcpy(larger, room->places, room->count * sizeof *larger);
  free(room->places);
  room->places = larger;
}

size_t take_room(Room *room, size_t bytes, int step, int until)
{
  if (step != room->step) enter(room, step);
  size_t length = (bytes + 63) / 64 * 64, at = room->next, from;
  for (;; at++) {
    from = at == 0 ? 0 : room->places[at - 1].to;
    if (at == room->count || room->places[at].from - from >= length) break;
  }
  grow(room);
  memmove(&room->places[at + 1], &room->places[at], (room->count - at) * sizeof *room->places);
  room->places[at] = (Place){from, from + length, until};
  room->count++;
  room->next = at + 1;
  if (from + length > room->bytes) room->bytes = from + length;
  return from;
}

size_t close_room(Room *room)
{
  size_t bytes = room->bytes;
  free(room->places);
  free(room);
  return bytes;
}
