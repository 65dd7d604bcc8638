/* roundtrip.c: one rank's part in a round trip, with blocking calls. */
#include "roundtrip.h"

#include <stdlib.h>

enum { TAG = 0 };

typedef struct {
  int before, after, bytes;
  char *sent, *received;
} State;

void *prepare_round_trip(int before, int after, const Field *bytes)
{
  State *s = allocate(1, sizeof *s);
  bool idle = before == MPI_PROC_NULL && after == MPI_PROC_NULL;
  s->before = before;
  s->after = after;
  s->bytes = (int)bytes->count;
  s->sent = allocate_buffer(!idle, (size_t)s->bytes);
  s->received = allocate_buffer(!idle, (size_t)s->bytes);
  return s;
}

static void receive(const State *s, int peer)
{
  MPI_TRY(MPI_Recv(s->received, s->bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void send(const State *s, int peer)
{
  MPI_TRY(MPI_Send(s->sent, s->bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD));
}

void pass_round_trip(void *state)
{
  const State *s = state; /* a call with MPI_PROC_NULL takes time too */
  if (s->before != MPI_PROC_NULL) receive(s, s->before);
  if (s->after != MPI_PROC_NULL) {
    send(s, s->after);
    receive(s, s->after);
  }
  if (s->before != MPI_PROC_NULL) send(s, s->before);
}

void cleanup_round_trip(void *state)
{
  State *s = state;
  free(s->sent);
  free(s->received);
  free(s);
}
