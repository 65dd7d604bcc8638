/* overlap: processor time of rank 0 for messages of rank 1, while rank 0 is outside of MPI, and afterwards.
 *
 *   control  the time of a fixed computation, with receives posted before it and rank 1 sending `messages` messages
 *            meanwhile. The difference to 0 messages is the processor time of their reception in the background: none if
 *            the network or the other rank delivers them.
 *   user     the time to complete the receives of `messages` messages that have arrived already: T = messages · o_r
 *
 * A sample is for all messages together. A test for their arrival would receive them. In cases `user`, rank 0 therefore
 * waits four times the median time of the exchange. The sample excludes this wait. Data that the library does not
 * deliver to a rank outside of MPI, such as the payload of a message above its eager limit, is part of `user`.
 *
 * Under SimGrid the computation is a simulated wait and reception in the background is free: control is that wait.
 *
 *   mpiexec -n 2 overlap --cases cases.csv --out samples        cases.csv: id,what,messages,bytes
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

enum { WHAT_COLUMN, MESSAGES_COLUMN, BYTES_COLUMN, TAG = 0, GO = 1, TRIALS = 15, ARRIVAL_FACTOR = 4 };
static const Column columns[] = {
    {"what", "", "control or user", WORD},
    {"messages", "1", "messages from rank 1 to rank 0", COUNT},
    {"bytes", "B", "size of each message", BYTES},
};
static const uint64_t steps = 1 << 21; /* of the computation: 2 to 4 ms on today's machines */
static const double simulated_seconds = 2e-3;

typedef struct {
  Run *run;
  int rank, messages, bytes;
  bool control;
  uint64_t number; /* result of the computation, kept so that it is not optimized away */
  double arrival_seconds; /* for which rank 0 waits until all messages have arrived; not in cases `control` */
  char *buffer;    /* for all messages on rank 0, for one on rank 1, empty elsewhere */
  MPI_Request *requests;
} State;

static void check(const Case *c, int ranks)
{
  const char *what = c->fields[WHAT_COLUMN].text;
  if (strcmp(what, "control") != 0 && strcmp(what, "user") != 0)
    case_error(c, "what", what, columns[WHAT_COLUMN].meaning);
  require_ranks(c, "what", 2, ranks);
}

/* Each step depends on the previous one, so that runs take equal times; memory is not accessed. */
static uint64_t compute(uint64_t number)
{
  if (COMMODEL_SIMULATED) {
    clock_wait(simulated_seconds);
    return number;
  }
  for (uint64_t i = 0; i < steps; i++) number = number * 0x5851f42d4c957f2du + 0x14057b7ef767814fu;
  return number;
}

static void post_receives(void *state)
{
  State *s = state;
  for (int i = 0; s->rank == 0 && i < s->messages; i++)
    MPI_TRY(MPI_Irecv(s->buffer + (size_t)i * (size_t)s->bytes, s->bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD,
                      &s->requests[i]));
}

static void receive_all(State *s)
{
  double start = clock_now();
  MPI_TRY(MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD));
  if (!s->control) clock_wait(s->arrival_seconds);
  double begin = clock_now();
  if (s->control)
    s->number = compute(s->number);
  else
    MPI_TRY(MPI_Waitall(s->messages, s->requests, MPI_STATUSES_IGNORE));
  double end = clock_now();
  if (s->control) MPI_TRY(MPI_Waitall(s->messages, s->requests, MPI_STATUSES_IGNORE));
  s->run->excluded = (begin - start) + (clock_now() - end);
}

static void send_all(State *s)
{
  MPI_TRY(MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  for (int i = 0; i < s->messages; i++)
    MPI_TRY(MPI_Isend(s->buffer, s->bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &s->requests[i]));
  MPI_TRY(MPI_Waitall(s->messages, s->requests, MPI_STATUSES_IGNORE));
}

static void pass(void *state)
{
  State *s = state;
  if (s->rank == 0) receive_all(s);
  if (s->rank == 1) send_all(s);
}

/* Median seconds of the whole exchange, on rank 0. */
static double measure_exchange(State *s)
{
  double durations[TRIALS];
  for (int i = 0; i < TRIALS; i++) {
    post_receives(s);
    double start = clock_now();
    pass(s);
    durations[i] = clock_now() - start;
  }
  sort_doubles(durations, TRIALS);
  return median_sorted(durations, TRIALS);
}

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  s->run = run;
  s->rank = run->rank;
  s->control = strcmp(c->fields[WHAT_COLUMN].text, "control") == 0;
  s->messages = (int)c->fields[MESSAGES_COLUMN].count;
  s->bytes = (int)c->fields[BYTES_COLUMN].count;
  s->buffer = allocate_buffer(s->rank == 0 ? (size_t)s->messages : s->rank == 1, (size_t)s->bytes);
  s->requests = allocate((size_t)s->messages, sizeof *s->requests);
  if (!s->control) s->arrival_seconds = ARRIVAL_FACTOR * measure_exchange(s);
  return s;
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
      .name = "overlap", .title = "Reception during a computation and after it", .kind = "probe",
      .columns = columns, .ncolumns = 3, .min_ranks = 2, .timing = TIMED_BY_ROOT,
      .check = check, .prepare = prepare, .before_alignment = post_receives, .pass = pass, .cleanup = cleanup,
  };
  return harness_main(argc, argv, &program);
}
