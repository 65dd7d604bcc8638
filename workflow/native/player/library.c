/* library: measures the MPI library's collectives with the algorithms that it selects.
 *
 * `bytes` is the size of the message (bcast), of a block of one rank (scatter, gather, allgather), of the block that a
 * rank sends to each other one (alltoall), or of the vector of each rank (reduce, allreduce, reduce-scatter); 0 for
 * barrier. reduce-scatter leaves bytes/ranks on each rank, the larger shares first. Rank 0 is the root. Sums are of
 * doubles if every share consists of whole doubles, else of unsigned bytes, which libraries may add more slowly.
 *
 * Seconds are from the common start until the last rank has finished; for gather and reduce, until the root has. The
 * first warm-up pass sends a pattern and checks the received data; sums of it are exact.
 *
 * With several waves, the collective is called repeatedly, and seconds are the time between the ends of two calls.
 *
 *   mpiexec -n 16 library --cases cases.csv --out samples      cases.csv: id,operation,bytes[,waves]
 */
#include "contents.h"

#include <stdlib.h>
#include <string.h>

enum { OPERATION_COLUMN, BYTES_COLUMN };
static const Column columns[] = {
    {"operation", "", "bcast, scatter, gather, reduce, allreduce, reduce-scatter, allgather, alltoall or barrier", WORD},
    {"bytes", "B", "size of a message, block or vector, depending on the operation", BYTES},
};

typedef struct State State;

/* Data of a rank before or after: nothing, one block or vector, a block for each rank, its share of a vector. */
typedef enum { NOTHING, ONE, ONE_EACH, SHARE } DataKind;

typedef struct {
  const char *name;
  DataKind root_sends, others_send, root_receives, others_receive;
  bool sums, ends_at_root;
  void (*call)(State *s);
} Operation;

struct State {
  const Operation *operation;
  int rank, ranks;
  int count;   /* of one block or vector, in elements */
  int *shares; /* of every rank, in elements */
  MPI_Datatype type;
  char *sent, *received;
  size_t sent_bytes, received_bytes;
};

static void call_bcast(State *s)
{
  MPI_TRY(MPI_Bcast(s->rank ? s->received : s->sent, s->count, s->type, 0, MPI_COMM_WORLD));
}

static void call_scatter(State *s)
{
  MPI_TRY(MPI_Scatter(s->sent, s->count, s->type, s->received, s->count, s->type, 0, MPI_COMM_WORLD));
}

static void call_gather(State *s)
{
  MPI_TRY(MPI_Gather(s->sent, s->count, s->type, s->received, s->count, s->type, 0, MPI_COMM_WORLD));
}

static void call_reduce(State *s)
{
  MPI_TRY(MPI_Reduce(s->sent, s->received, s->count, s->type, MPI_SUM, 0, MPI_COMM_WORLD));
}

static void call_allreduce(State *s)
{
  MPI_TRY(MPI_Allreduce(s->sent, s->received, s->count, s->type, MPI_SUM, MPI_COMM_WORLD));
}

static void call_reduce_scatter(State *s)
{
  MPI_TRY(MPI_Reduce_scatter(s->sent, s->received, s->shares, s->type, MPI_SUM, MPI_COMM_WORLD));
}

static void call_allgather(State *s)
{
  MPI_TRY(MPI_Allgather(s->sent, s->count, s->type, s->received, s->count, s->type, MPI_COMM_WORLD));
}

static void call_alltoall(State *s)
{
  MPI_TRY(MPI_Alltoall(s->sent, s->count, s->type, s->received, s->count, s->type, MPI_COMM_WORLD));
}

static void call_barrier(State *s)
{
  (void)s;
  MPI_TRY(MPI_Barrier(MPI_COMM_WORLD));
}

static const Operation operations[] = {
    {"bcast", ONE, NOTHING, NOTHING, ONE, false, false, call_bcast},
    {"scatter", ONE_EACH, NOTHING, ONE, ONE, false, false, call_scatter},
    {"gather", ONE, ONE, ONE_EACH, NOTHING, false, true, call_gather},
    {"reduce", ONE, ONE, ONE, NOTHING, true, true, call_reduce},
    {"allreduce", ONE, ONE, ONE, ONE, true, false, call_allreduce},
    {"reduce-scatter", ONE, ONE, SHARE, SHARE, true, false, call_reduce_scatter},
    {"allgather", ONE, ONE, ONE_EACH, ONE_EACH, false, false, call_allgather},
    {"alltoall", ONE_EACH, ONE_EACH, ONE_EACH, ONE_EACH, false, false, call_alltoall},
    {"barrier", NOTHING, NOTHING, NOTHING, NOTHING, false, false, call_barrier},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static const Operation *find_operation(const char *name)
{
  for (const Operation *o = operations; o < operations + OPERATIONS; o++)
    if (strcmp(o->name, name) == 0) return o;
  return NULL;
}

static void check(const Case *c, int ranks)
{
  (void)ranks;
  const Field *fields = c->fields;
  const Operation *operation = find_operation(fields[OPERATION_COLUMN].text);
  if (!operation) case_error(c, "operation", fields[OPERATION_COLUMN].text, columns[OPERATION_COLUMN].meaning);
  if (operation->call == call_barrier && fields[BYTES_COLUMN].count != 0)
    case_error(c, "bytes", fields[BYTES_COLUMN].text, "0: a barrier has no message");
}

/* Bytes of rank r's share of a vector, the larger shares first. */
static size_t share(size_t bytes, int ranks, int r)
{
  return bytes / (size_t)ranks + ((size_t)r < bytes % (size_t)ranks);
}

static bool is_whole_doubles(const State *s, size_t bytes)
{
  bool whole = bytes % sizeof(double) == 0;
  for (int r = 0; whole && s->operation->root_receives == SHARE && r < s->ranks; r++)
    whole = share(bytes, s->ranks, r) % sizeof(double) == 0;
  return whole;
}

static size_t data_bytes(const State *s, DataKind holding, size_t bytes)
{
  switch (holding) {
  case ONE: return bytes;
  case ONE_EACH: return bytes * (size_t)s->ranks;
  case SHARE: return share(bytes, s->ranks, s->rank);
  case NOTHING: break;
  }
  return 0;
}

static Contents make_contents(const State *s)
{
  const Operation *o = s->operation;
  size_t first = 0;
  for (int r = 0; o->root_receives == SHARE && r < s->rank; r++) first += (size_t)s->shares[r];
  return (Contents){.type = s->type, .rank = s->rank, .ranks = s->ranks, .block = (size_t)s->count, .first = first,
                    .sums = o->sums, .to_each = o->root_sends == ONE_EACH, .from_all = o->root_receives == ONE_EACH};
}

static void check_received(const State *s)
{
  Contents wanted = make_contents(s);
  size_t count = count_elements(s->type, s->received_bytes), wrong = find_first_error(&wanted, s->received, s->received_bytes);
  if (wrong < count)
    DIE("%s of %d: element %zu of %zu that rank %d received is wrong", s->operation->name, s->count, wrong, count,
        s->rank);
}

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  s->operation = find_operation(c->fields[OPERATION_COLUMN].text);
  s->rank = run->rank;
  s->ranks = run->ranks;
  size_t bytes = (size_t)c->fields[BYTES_COLUMN].count;
  s->type = !s->operation->sums ? MPI_BYTE : is_whole_doubles(s, bytes) ? MPI_DOUBLE : MPI_UINT8_T;
  s->count = (int)count_elements(s->type, bytes);
  s->shares = allocate((size_t)s->ranks, sizeof *s->shares);
  for (int r = 0; r < s->ranks; r++) s->shares[r] = (int)count_elements(s->type, share(bytes, s->ranks, r));
  bool root = s->rank == 0;
  s->sent_bytes = data_bytes(s, root ? s->operation->root_sends : s->operation->others_send, bytes);
  s->received_bytes = data_bytes(s, root ? s->operation->root_receives : s->operation->others_receive, bytes);
  s->sent = allocate_buffer(s->sent_bytes, 1);
  s->received = allocate_buffer(s->received_bytes, 1);
  Contents own = make_contents(s);
  fill_contents(&own, s->sent, s->sent_bytes);
  if (s->operation->ends_at_root) run->finish = 0;
  return s;
}

static void pass(void *state)
{
  State *s = state;
  s->operation->call(s);
}

static void first_pass(void *state)
{
  State *s = state;
  memset(s->received, 0xa5, s->received_bytes);
  pass(state);
  check_received(s);
}

static void cleanup(void *state)
{
  State *s = state;
  free(s->shares);
  free(s->sent);
  free(s->received);
  free(s);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "library", .title = "The MPI library's own collectives", .kind = "player",
      .columns = columns, .ncolumns = 2, .min_ranks = 1, .timing = TIMED_BY_HARNESS, .streams = true,
      .check = check, .prepare = prepare, .first_pass = first_pass, .pass = pass, .cleanup = cleanup,
  };
  return harness_main(argc, argv, &program);
}
