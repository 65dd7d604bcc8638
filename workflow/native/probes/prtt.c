/* prtt: the parametrised round trip of Hoefler, Lichei and Rehm (2007), which measures LogGP's parameters on one rank.
 *
 * Rank 0 sends n messages of `bytes` with MPI_Isend, computes for d seconds after each but the last, and for e seconds
 * after the last. Then it waits for its sends, and receives one message of `bytes` that rank 1 sends when it has received
 * all n. d and e are multiples (`delay`, `late`) of a plain round trip of that size, which is measured first, since they
 * have to be longer than a round trip. Their actual length is subtracted, so that a sample is the rest of rank 0's time:
 *
 *   PRTT(1,0,s) = 2 (L + o_s + o_r + (s-1) G)
 *   PRTT(n,0,s) - PRTT(1,0,s) = (n-1) (g + (s-1) G)
 *   PRTT(n,d,s) - PRTT(1,0,s) = (n-1) o_s             for d > g + (s-1) G
 *   PRTT(1,0,s,e) = o_s + o_r                         for e > PRTT(1,0,s)
 *
 * Receives are posted before the ranks are aligned, so that no message is unexpected.
 *
 *   mpiexec -n 2 prtt --cases cases.csv --out samples        cases.csv: id,n,delay,late,bytes
 */
#include "harness.h"

#include <stdlib.h>

enum { N_COLUMN, DELAY_COLUMN, LATE_COLUMN, BYTES_COLUMN, TAG = 0, TRIPS = 12 };
static const Column columns[] = {
    {"n", "1", "messages from rank 0 to rank 1, from 1", COUNT},
    {"delay", "round trips", "computation after each message but the last", NUMBER},
    {"late", "round trips", "computation before the answer is received", NUMBER},
    {"bytes", "B", "size of each message and of the answer", BYTES},
};

typedef struct {
  Run *run;
  int rank, n, bytes;
  double delay, late; /* in seconds */
  char *sent, *received; /* received holds n messages on rank 1 */
  MPI_Request *receives, *sends;
} State;

static void check(const Case *c, int ranks)
{
  const Field *n = &c->fields[N_COLUMN];
  if (n->count < 1) case_error(c, "n", n->text, "a whole number from 1");
  require_ranks(c, "n", 2, ranks);
}

/* The fastest of a few plain round trips, on rank 0; the first ones include the setup of connections. */
static double measure_round_trip(State *s)
{
  double shortest = 0;
  for (int i = 0; i < TRIPS && s->rank < 2; i++) {
    double start = clock_now();
    if (s->rank == 0) MPI_TRY(MPI_Send(s->sent, s->bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD));
    MPI_TRY(MPI_Recv(s->received, s->bytes, MPI_BYTE, 1 - s->rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (s->rank == 1) MPI_TRY(MPI_Send(s->sent, s->bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD));
    double duration = clock_now() - start;
    if (i == 0 || duration < shortest) shortest = duration;
  }
  return shortest;
}

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  s->run = run;
  s->rank = run->rank;
  s->n = (int)c->fields[N_COLUMN].count;
  s->bytes = (int)c->fields[BYTES_COLUMN].count;
  size_t arrivals = s->rank == 1 ? (size_t)s->n : s->rank == 0;
  s->sent = allocate_buffer(s->rank < 2, (size_t)s->bytes);
  s->received = allocate_buffer(arrivals, (size_t)s->bytes);
  s->receives = allocate(arrivals, sizeof *s->receives);
  s->sends = allocate((size_t)s->n, sizeof *s->sends);
  double trip = measure_round_trip(s);
  s->delay = c->fields[DELAY_COLUMN].real * trip;
  s->late = c->fields[LATE_COLUMN].real * trip;
  return s;
}

static void post_receives(void *state)
{
  State *s = state;
  int arrivals = s->rank == 0 ? 1 : s->rank == 1 ? s->n : 0;
  for (int i = 0; i < arrivals; i++)
    MPI_TRY(MPI_Irecv(s->received + (size_t)i * (size_t)s->bytes, s->bytes, MPI_BYTE, 1 - s->rank, TAG, MPI_COMM_WORLD,
                      &s->receives[i]));
}

static void send_messages(State *s)
{
  for (int i = 0; i < s->n; i++) {
    MPI_TRY(MPI_Isend(s->sent, s->bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &s->sends[i]));
    if (s->delay > 0 && i < s->n - 1) s->run->excluded += clock_wait(s->delay);
  }
  if (s->late > 0) s->run->excluded += clock_wait(s->late); /* meanwhile sends complete that need no progress by this rank */
  MPI_TRY(MPI_Waitall(s->n, s->sends, MPI_STATUSES_IGNORE));
  MPI_TRY(MPI_Wait(s->receives, MPI_STATUS_IGNORE));
}

static void send_reply(State *s)
{
  MPI_TRY(MPI_Waitall(s->n, s->receives, MPI_STATUSES_IGNORE));
  MPI_TRY(MPI_Send(s->sent, s->bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD));
}

static void pass(void *state)
{
  State *s = state;
  if (s->rank == 0) send_messages(s);
  if (s->rank == 1) send_reply(s);
}

static void cleanup(void *state)
{
  State *s = state;
  free(s->sent);
  free(s->received);
  free(s->receives);
  free(s->sends);
  free(s);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "prtt", .title = "Parametrised round trip for LogGP", .kind = "probe",
      .columns = columns, .ncolumns = 4, .min_ranks = 2, .timing = TIMED_BY_ROOT,
      .check = check, .prepare = prepare, .before_alignment = post_receives, .pass = pass, .cleanup = cleanup,
  };
  return harness_main(argc, argv, &program);
}
