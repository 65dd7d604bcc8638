/* pairs: ranks k and k + pairs (k < pairs) play one round of ping-pong, all pairs at the same time.
 *
 * From the common start until the last pair is done: T = 2 (L + o_s + o_r + (s-1) G) under LogGP for any number of
 * pairs. What it takes beyond that is what they cost each other on a network or in memory that they share.
 *
 *   mpiexec -n 8 pairs --cases cases.csv --out samples        cases.csv: id,pairs,bytes
 */
#include "harness.h"

#include <stdlib.h>

enum { PAIRS_COLUMN, BYTES_COLUMN, TAG = 0 };
static const Column columns[] = {
    {"pairs", "1", "pairs of ranks, from 1", COUNT},
    {"bytes", "B", "size of the message, each way", BYTES},
};

typedef struct {
  int rank, pairs, bytes;
  char *buffer;
} State;

static void check(const Case *c, int ranks)
{
  const Field *pairs = &c->fields[PAIRS_COLUMN];
  if (pairs->count < 1) case_error(c, "pairs", pairs->text, "a whole number from 1");
  require_ranks(c, "pairs", 2 * pairs->count, ranks);
}

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  s->rank = run->rank;
  s->pairs = (int)c->fields[PAIRS_COLUMN].count;
  s->bytes = (int)c->fields[BYTES_COLUMN].count;
  s->buffer = allocate((size_t)s->bytes, 1);
  run->takes_part = s->rank < 2 * s->pairs;
  return s;
}

static void pass(void *state)
{
  State *s = state;
  if (s->rank < s->pairs) {
    int peer = s->rank + s->pairs;
    MPI_TRY(MPI_Send(s->buffer, s->bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD));
    MPI_TRY(MPI_Recv(s->buffer, s->bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  } else if (s->rank < 2 * s->pairs) {
    int peer = s->rank - s->pairs;
    MPI_TRY(MPI_Recv(s->buffer, s->bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MPI_TRY(MPI_Send(s->buffer, s->bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD));
  }
}

static void cleanup(void *state)
{
  State *s = state;
  free(s->buffer);
  free(s);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "pairs", .title = "Round trips of several pairs at once", .kind = "probe",
      .columns = columns, .ncolumns = 2, .min_ranks = 2, .timing = ALL_TOGETHER,
      .check = check, .prepare = prepare, .pass = pass, .cleanup = cleanup,
  };
  return harness_main(argc, argv, &program);
}
