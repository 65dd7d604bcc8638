/* ring: every rank of 0..procs-1 sends to the next one and receives from the one before, all at the same time.
 *
 * T = L + o_s + o_r + (s-1) G under LogGP, whatever procs is: from the common start until the last rank has both sent
 * and received. Two ranks send to each other.
 *
 *   mpiexec -n 8 ring --cases cases.csv --out samples        cases.csv: id,procs,bytes
 */
#include "harness.h"

#include <stdlib.h>

enum { PROCS_COLUMN, BYTES_COLUMN, TAG = 0 };
static const Column columns[] = {
    {"procs", "1", "ranks in the ring, from 2", COUNT},
    {"bytes", "B", "size of each message", BYTES},
};

typedef struct {
  int bytes, before, after;
  bool idle;
  char *sent, *received;
} State;

static void check(const Case *c, int ranks)
{
  const Field *procs = &c->fields[PROCS_COLUMN];
  if (procs->count < 2) case_error(c, "procs", procs->text, "a whole number from 2");
  require_ranks(c, "procs", procs->count, ranks);
}

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  int procs = (int)c->fields[PROCS_COLUMN].count;
  s->bytes = (int)c->fields[BYTES_COLUMN].count;
  s->before = (run->rank + procs - 1) % procs;
  s->after = (run->rank + 1) % procs;
  s->idle = run->rank >= procs;
  s->sent = allocate_buffer(!s->idle, (size_t)s->bytes);
  s->received = allocate_buffer(!s->idle, (size_t)s->bytes);
  run->takes_part = !s->idle;
  return s;
}

static void pass(void *state)
{
  State *s = state;
  MPI_Request requests[2];
  if (s->idle) return;
  MPI_TRY(MPI_Irecv(s->received, s->bytes, MPI_BYTE, s->before, TAG, MPI_COMM_WORLD, &requests[0]));
  MPI_TRY(MPI_Isend(s->sent, s->bytes, MPI_BYTE, s->after, TAG, MPI_COMM_WORLD, &requests[1]));
  MPI_TRY(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
}

static void cleanup(void *state)
{
  State *s = state;
  free(s->sent);
  free(s->received);
  free(s);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "ring", .title = "Every rank to the next", .kind = "probe",
      .columns = columns, .ncolumns = 2, .min_ranks = 2, .timing = ALL_TOGETHER,
      .check = check, .prepare = prepare, .pass = pass, .cleanup = cleanup,
  };
  return harness_main(argc, argv, &program);
}
