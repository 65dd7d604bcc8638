/* stream: each of ranks 1..senders sends `each` messages to rank 0, all in flight at once, until rank 0 has received all.
 *
 * T = L + o_s + o_r + (bytes-1) G + (senders*each - 1) max(g, o_r) for short messages under LogGP. Fits use the slope over
 * `each`, which depends neither on latency nor on the start. Rank 0 posts its receives before the common start, so that no
 * message is unexpected. Ranks above senders are idle.
 *
 *   mpiexec -n 3 stream --cases cases.csv --out samples        cases.csv: id,senders,each,bytes
 */
#include "harness.h"

#include <limits.h>
#include <stdlib.h>

enum { SENDERS_COLUMN, EACH_COLUMN, BYTES_COLUMN, TAG = 0 };
static const Column columns[] = {
    {"senders", "1", "ranks that send to rank 0, from 1", COUNT},
    {"each", "1", "messages of each sender, from 1", COUNT},
    {"bytes", "B", "size of each message", BYTES},
};

typedef struct {
  int rank, senders, each, bytes;
  char *buffer; /* for all messages on rank 0, for one elsewhere */
  MPI_Request *requests;
} State;

static void check(const Case *c, int ranks)
{
  const Field *senders = &c->fields[SENDERS_COLUMN], *each = &c->fields[EACH_COLUMN];
  if (senders->count < 1) case_error(c, "senders", senders->text, "a whole number from 1");
  if (each->count < 1) case_error(c, "each", each->text, "a whole number from 1");
  require_ranks(c, "senders", senders->count + 1, ranks);
  if (senders->count * each->count > INT_MAX)
    case_error(c, "each", each->text, "at most 2147483647 messages of all senders together");
}

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  s->rank = run->rank;
  s->senders = (int)c->fields[SENDERS_COLUMN].count;
  s->each = (int)c->fields[EACH_COLUMN].count;
  s->bytes = (int)c->fields[BYTES_COLUMN].count;
  run->participates = s->rank <= s->senders;
  run->finish = 0;
  size_t messages = s->rank == 0 ? (size_t)s->senders * (size_t)s->each : (size_t)s->each;
  s->buffer = allocate_buffer(s->rank == 0 ? messages : run->participates, (size_t)s->bytes);
  s->requests = allocate(messages, sizeof *s->requests);
  return s;
}

static void post_receives(void *state)
{
  State *s = state;
  if (s->rank != 0) return;
  for (int i = 0; i < s->senders * s->each; i++)
    MPI_TRY(MPI_Irecv(s->buffer + (size_t)i * (size_t)s->bytes, s->bytes, MPI_BYTE, i % s->senders + 1, TAG,
                      MPI_COMM_WORLD, &s->requests[i]));
}

static void pass(void *state)
{
  State *s = state;
  if (s->rank > s->senders) return;
  for (int i = 0; s->rank > 0 && i < s->each; i++)
    MPI_TRY(MPI_Isend(s->buffer, s->bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &s->requests[i]));
  MPI_TRY(MPI_Waitall(s->rank == 0 ? s->senders * s->each : s->each, s->requests, MPI_STATUSES_IGNORE));
}

static void cleanup(void *state)
{
  State *s = state;
  free(s->buffer);
  free(s->requests);
  free(s);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "stream", .title = "Many messages to one rank", .kind = "probe",
      .columns = columns, .ncolumns = 3, .min_ranks = 2, .timing = TIMED_BY_HARNESS,
      .check = check, .prepare = prepare, .before_alignment = post_receives, .pass = pass, .cleanup = cleanup,
  };
  return harness_main(argc, argv, &program);
}
