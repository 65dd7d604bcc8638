/* chain: a message goes 0 -> 1 -> ... -> height, and a message of the same size comes back the same way.
 *
 * Seconds are the round trip on rank 0: T = 2 height (L + o_s + o_r + (s-1) G) under LogGP.
 *
 *   mpiexec -n 9 chain --cases cases.csv --out samples        cases.csv: id,height,bytes
 */
#include "harness.h"

#include <stdlib.h>

enum { HEIGHT_COLUMN, BYTES_COLUMN, TAG = 0 };
static const Column columns[] = {
    {"height", "1", "links from rank 0 to the last rank, from 1", COUNT},
    {"bytes", "B", "size of the message", BYTES},
};

typedef struct {
  int rank, height, bytes;
  char *buffer;
} State;

static void check(const Case *c, int ranks)
{
  const Field *height = &c->fields[HEIGHT_COLUMN];
  if (height->count < 1) case_error(c, "height", height->text, "a whole number from 1");
  require_ranks(c, "height", height->count + 1, ranks);
}

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  s->rank = run->rank;
  s->height = (int)c->fields[HEIGHT_COLUMN].count;
  s->bytes = (int)c->fields[BYTES_COLUMN].count;
  s->buffer = allocate((size_t)s->bytes, 1);
  return s;
}

static void pass(void *state)
{
  State *s = state;
  if (s->rank > s->height) return;
  int before = s->rank > 0 ? s->rank - 1 : MPI_PROC_NULL;
  int after = s->rank < s->height ? s->rank + 1 : MPI_PROC_NULL;
  MPI_TRY(MPI_Recv(s->buffer, s->bytes, MPI_BYTE, before, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  MPI_TRY(MPI_Send(s->buffer, s->bytes, MPI_BYTE, after, TAG, MPI_COMM_WORLD));
  MPI_TRY(MPI_Recv(s->buffer, s->bytes, MPI_BYTE, after, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  MPI_TRY(MPI_Send(s->buffer, s->bytes, MPI_BYTE, before, TAG, MPI_COMM_WORLD));
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
      .name = "chain", .title = "Round trip along a chain of ranks", .kind = "probe",
      .columns = columns, .ncolumns = 2, .min_ranks = 2, .timing = ROOT_ALONE,
      .check = check, .prepare = prepare, .pass = pass, .cleanup = cleanup,
  };
  return harness_main(argc, argv, &program);
}
