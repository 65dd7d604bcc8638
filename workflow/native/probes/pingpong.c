/* pingpong: one message from rank 0 to rank 1 and one back, blocking.
 *
 * Seconds are the full round trip on rank 0, not halved: T = 2 (L + o_s + o_r + (s-1) G) under LogGP.
 *
 *   mpiexec -n 2 pingpong --cases cases.csv --out samples        cases.csv: id,bytes
 */
#include "harness.h"

#include <stdlib.h>

enum { BYTES_COLUMN, TAG = 0 };
static const Column columns[] = {{"bytes", "B", "size of the message, each way", BYTES}};

typedef struct {
  int rank, bytes;
  char *buffer;
} State;

static void check(const Case *c, int ranks) { require_ranks(c, "bytes", 2, ranks); }

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  s->rank = run->rank;
  s->bytes = (int)c->fields[BYTES_COLUMN].count;
  s->buffer = allocate((size_t)s->bytes, 1);
  return s;
}

static void pass(void *state)
{
  State *s = state;
  if (s->rank == 0) {
    MPI_TRY(MPI_Send(s->buffer, s->bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD));
    MPI_TRY(MPI_Recv(s->buffer, s->bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  } else if (s->rank == 1) {
    MPI_TRY(MPI_Recv(s->buffer, s->bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MPI_TRY(MPI_Send(s->buffer, s->bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD));
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
      .name = "pingpong", .title = "Round trip of one message", .kind = "probe",
      .columns = columns, .ncolumns = 1, .min_ranks = 2, .timing = ROOT_ALONE,
      .check = check, .prepare = prepare, .pass = pass, .cleanup = cleanup,
  };
  return harness_main(argc, argv, &program);
}
