/* hrelation: a superstep of BSP on ranks 0..procs-1: each sends h messages and receives h, then all enter a barrier.
 *
 * T = w + g h + l with no local work w: the slope over h is g, and h = 0 is the barrier alone. Message i of rank r goes
 * to rank r + 1 + i mod (procs-1), so that no rank sends to itself and load is even whatever h is. The barrier is by
 * dissemination, ceil(log2 procs) rounds in which rank r signals rank r + 2^k and is signalled by r - 2^k: MPI_Barrier may cost
 * nothing under a simulator. A sample ends when the last rank has left the
 * barrier. Its time is:
 *
 *   T = max(h o_s, o_s + L) + h o_r + ceil(log2 procs) (L + o_s + o_r)
 *
 * for short messages under LogGP with o_s = o_r >= g, without the first two terms for h = 0.
 *
 * A superstep that the player executes takes the same time in simulation. Between two ranks in shared memory, the
 * player's takes 0.96 times as long as this probe's on average over 13 cases, and 0.95 times (0.80 to 0.98) for the
 * barrier alone, because the player uses neither MPI_Sendrecv nor a second communicator.
 *
 *   mpiexec -n 8 hrelation --cases cases.csv --out samples        cases.csv: id,procs,h,bytes
 */
#include "harness.h"

#include <stdlib.h>

enum { PROCS_COLUMN, H_COLUMN, BYTES_COLUMN, TAG = 0, BARRIER = 1 };
static const Column columns[] = {
    {"procs", "1", "ranks that take part, from 2", COUNT},
    {"h", "1", "messages that each of them sends and receives", COUNT},
    {"bytes", "B", "size of each message", BYTES},
};

typedef struct {
  int rank, procs, h, bytes;
  char *sent, *received; /* received holds h messages */
  MPI_Request *requests; /* receives before sends */
  MPI_Comm members;      /* MPI_COMM_NULL on ranks that idle */
} State;

static void check(const Case *c, int ranks)
{
  const Field *procs = &c->fields[PROCS_COLUMN], *h = &c->fields[H_COLUMN];
  if (procs->count < 2) case_error(c, "procs", procs->text, "a whole number from 2");
  require_ranks(c, "procs", procs->count, ranks);
  if (h->count > 1 << 30) case_error(c, "h", h->text, "at most 1073741824");
}

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  s->rank = run->rank;
  s->procs = (int)c->fields[PROCS_COLUMN].count;
  s->h = (int)c->fields[H_COLUMN].count;
  s->bytes = (int)c->fields[BYTES_COLUMN].count;
  run->participates = s->rank < s->procs;
  s->sent = allocate_buffer(run->participates, (size_t)s->bytes);
  s->received = allocate_buffer(run->participates ? (size_t)s->h : 0, (size_t)s->bytes);
  s->requests = allocate(2 * (size_t)s->h, sizeof *s->requests);
  MPI_TRY(MPI_Comm_split(MPI_COMM_WORLD, run->participates ? 0 : MPI_UNDEFINED, s->rank, &s->members));
  return s;
}

static void barrier(const State *s)
{
  for (int distance = 1; distance < s->procs; distance *= 2) {
    int after = (s->rank + distance) % s->procs, before = (s->rank + s->procs - distance) % s->procs;
    MPI_TRY(MPI_Sendrecv(NULL, 0, MPI_BYTE, after, BARRIER, NULL, 0, MPI_BYTE, before, BARRIER, s->members,
                         MPI_STATUS_IGNORE));
  }
}

static void pass(void *state)
{
  State *s = state;
  int count = 0;
  if (s->rank >= s->procs) return;
  for (int i = 0; i < s->h; i++) {
    int before = (s->rank + s->procs - 1 - i % (s->procs - 1)) % s->procs;
    MPI_TRY(MPI_Irecv(s->received + (size_t)i * (size_t)s->bytes, s->bytes, MPI_BYTE, before, TAG, s->members,
                      &s->requests[count++]));
  }
  for (int i = 0; i < s->h; i++) {
    int after = (s->rank + 1 + i % (s->procs - 1)) % s->procs;
    MPI_TRY(MPI_Isend(s->sent, s->bytes, MPI_BYTE, after, TAG, s->members, &s->requests[count++]));
  }
  MPI_TRY(MPI_Waitall(count, s->requests, MPI_STATUSES_IGNORE));
  barrier(s);
}

static void cleanup(void *state)
{
  State *s = state;
  if (s->members != MPI_COMM_NULL) MPI_TRY(MPI_Comm_free(&s->members));
  free(s->sent);
  free(s->received);
  free(s->requests);
  free(s);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "hrelation", .title = "Superstep of BSP", .kind = "probe",
      .columns = columns, .ncolumns = 3, .min_ranks = 2, .timing = TIMED_BY_HARNESS,
      .check = check, .prepare = prepare, .pass = pass, .cleanup = cleanup,
  };
  return harness_main(argc, argv, &program);
}
