/* overlap: the time that messages of rank 1 take of rank 0 while it is outside of MPI, and afterwards.
 *
 *   control  the time of a computation that is the same in every case, with receives posted before it and rank 1 sending
 *            `messages` messages meanwhile. What it takes longer than with 0 messages is what their reception in the
 *            background takes from it; where the network or the other rank delivers them, nothing.
 *   user     the time to complete the receives of `messages` messages that have arrived already: T = messages o_r
 *
 * The sample is for all messages together. Their arrival is not tested, because a test would receive them: rank 0
 * waits several times as long as the exchange usually takes, which is taken off. What a library does not deliver to a
 * rank outside of MPI, such as the payload of a message above its eager limit, is in `user`.
 *
 * Under SimGrid the computation is a simulated wait and reception in the background is free: control says that wait.
 *
 *   mpiexec -n 2 overlap --cases cases.csv --out samples        cases.csv: id,what,messages,bytes
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

enum { WHAT_COLUMN, MESSAGES_COLUMN, BYTES_COLUMN, TAG = 0, GO = 1, TRIALS = 15, SETTLING = 4 };
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
  double settling; /* seconds for messages to arrive */
  char *buffer;    /* for all messages on rank 0, for one elsewhere */
  MPI_Request *requests;
} State;

static void check(const Case *c, int ranks)
{
  const char *what = c->fields[WHAT_COLUMN].text;
  if (strcmp(what, "control") != 0 && strcmp(what, "user") != 0)
    case_error(c, "what", what, columns[WHAT_COLUMN].meaning);
  require_ranks(c, "what", 2, ranks);
}

/* Every step needs the one before it, so that it takes as long on every run; memory is not touched. */
static uint64_t compute(uint64_t number)
{
  if (COMMODEL_SIMULATED) {
    clock_wait(simulated_seconds);
    return number;
  }
  for (uint64_t i = 0; i < steps; i++) number = number * 0x5851f42d4c957f2du + 0x14057b7ef767814fu;
  return number;
}

static void arm(void *state)
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
  if (!s->control) clock_wait(s->settling);
  double begun = clock_now();
  if (s->control)
    s->number = compute(s->number);
  else
    MPI_TRY(MPI_Waitall(s->messages, s->requests, MPI_STATUSES_IGNORE));
  double done = clock_now();
  if (s->control) MPI_TRY(MPI_Waitall(s->messages, s->requests, MPI_STATUSES_IGNORE));
  s->run->waited = (begun - start) + (clock_now() - done);
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

/* How long the whole exchange takes, on rank 0. */
static double exchange(State *s)
{
  double took[TRIALS];
  for (int i = 0; i < TRIALS; i++) {
    arm(s);
    double start = clock_now();
    pass(s);
    took[i] = clock_now() - start;
  }
  sort_doubles(took, TRIALS);
  return median_sorted(took, TRIALS);
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
  if (!s->control) s->settling = SETTLING * exchange(s);
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
      .name = "overlap", .title = "Reception beside a computation and after it", .kind = "probe",
      .columns = columns, .ncolumns = 3, .min_ranks = 2, .timing = ROOT_ALONE,
      .check = check, .prepare = prepare, .arm = arm, .pass = pass, .cleanup = cleanup,
  };
  return harness_main(argc, argv, &program);
}
