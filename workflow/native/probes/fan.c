/* fan: rank 0 and ranks 1..n, which exchange one message each with it.
 *
 *   out    0 sends to each, until the last has it      T = L + o_s + o_r + (s-1) G + (n-1) max(g, o_s)
 *   in     each sends to 0, until 0 has all            T = L + o_s + o_r + (s-1) G + (n-1) max(g, o_r)
 *   round  out, and each answers, until 0 has all answers
 *
 * (LogGP, g + (s-1) G for g with long messages.) The ranks start together like the player's; ranks above n idle.
 *
 *   mpiexec -n 9 fan --cases cases.csv --out samples        cases.csv: id,direction,n,bytes
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

enum { DIRECTION_COLUMN, N_COLUMN, BYTES_COLUMN, TAG = 0 };
static const Column columns[] = {
    {"direction", "", "out, in or round", WORD},
    {"n", "1", "ranks that exchange a message with rank 0, from 1", COUNT},
    {"bytes", "B", "size of each message", BYTES},
};

typedef struct {
  int rank, n, bytes;
  bool out, in;
  char *sent, *received; /* received holds n messages on rank 0 */
  MPI_Request *requests; /* rank 0: n sends, then n receives */
} State;

static void check(const Case *c, int ranks)
{
  const char *direction = c->fields[DIRECTION_COLUMN].text;
  const Field *n = &c->fields[N_COLUMN];
  if (strcmp(direction, "out") != 0 && strcmp(direction, "in") != 0 && strcmp(direction, "round") != 0)
    case_error(c, "direction", direction, columns[DIRECTION_COLUMN].meaning);
  if (n->count < 1) case_error(c, "n", n->text, "a whole number from 1");
  require_ranks(c, "n", n->count + 1, ranks);
}

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  const char *direction = c->fields[DIRECTION_COLUMN].text;
  s->rank = run->rank;
  s->n = (int)c->fields[N_COLUMN].count;
  s->bytes = (int)c->fields[BYTES_COLUMN].count;
  s->out = strcmp(direction, "in") != 0;
  s->in = strcmp(direction, "out") != 0;
  run->takes_part = s->rank <= s->n;
  run->finish = s->in ? 0 : -1;
  s->sent = allocate((size_t)s->bytes, 1);
  s->received = allocate(s->rank == 0 ? (size_t)s->n : 1, (size_t)s->bytes);
  s->requests = allocate(2 * (size_t)s->n, sizeof *s->requests);
  return s;
}

static void pass_root(State *s)
{
  int open = 0;
  for (int i = 0; s->in && i < s->n; i++)
    MPI_TRY(MPI_Irecv(s->received + (size_t)i * (size_t)s->bytes, s->bytes, MPI_BYTE, i + 1, TAG, MPI_COMM_WORLD,
                      &s->requests[open++]));
  for (int i = 0; s->out && i < s->n; i++)
    MPI_TRY(MPI_Isend(s->sent, s->bytes, MPI_BYTE, i + 1, TAG, MPI_COMM_WORLD, &s->requests[open++]));
  MPI_TRY(MPI_Waitall(open, s->requests, MPI_STATUSES_IGNORE));
}

static void pass_leaf(State *s)
{
  if (s->out) {
    MPI_TRY(MPI_Irecv(s->received, s->bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, s->requests));
    MPI_TRY(MPI_Wait(s->requests, MPI_STATUS_IGNORE));
  }
  if (s->in) {
    MPI_TRY(MPI_Isend(s->sent, s->bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, s->requests));
    MPI_TRY(MPI_Wait(s->requests, MPI_STATUS_IGNORE));
  }
}

static void pass(void *state)
{
  State *s = state;
  if (s->rank == 0)
    pass_root(s);
  else if (s->rank <= s->n)
    pass_leaf(s);
}

static void cleanup(void *state)
{
  State *s = state;
  free(s->sent);
  free(s->received);
  free(s->requests);
  free(s);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "fan", .title = "One rank and n others", .kind = "probe",
      .columns = columns, .ncolumns = 3, .min_ranks = 2, .timing = ALL_TOGETHER,
      .check = check, .prepare = prepare, .pass = pass, .cleanup = cleanup,
  };
  return harness_main(argc, argv, &program);
}
