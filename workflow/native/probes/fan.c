/* fan: each of ranks 1..n exchanges one message with rank 0.
 *
 *   out    0 sends to each, until all have received    T = L + o_s + o_r + (s-1) G + (n-1) max(g, o_s)
 *   in     each sends to 0, until 0 has received all   T = L + o_s + o_r + (s-1) G + (n-1) max(g, o_r)
 *   round  out, and each replies with `answer` bytes, until 0 has all replies; out and in ignore `answer`
 *
 * (LogGP, g + (s-1) G instead of g for long messages.) The ranks are aligned like those of the player; ranks above n are
 * idle. The column `how` selects the MPI calls:
 *
 *   isend  nonblocking sends and receives
 *   list   persistent requests, started together
 *   put    one-sided, into a window of the target that is open to its origins only (post, start, complete, wait)
 *
 * The player has neither persistent requests nor puts, and posts receives of replies only after its sends have completed:
 * on simulated Fast Ethernet, 8 replies to 1 KiB took 740.0 us with the player, and 732.0 us with this program.
 *
 *   mpiexec -n 9 fan --cases cases.csv --out samples        cases.csv: id,direction,how,n,bytes,answer
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

enum { DIRECTION_COLUMN, HOW_COLUMN, N_COLUMN, BYTES_COLUMN, ANSWER_COLUMN, TAG = 0 };
static const Column columns[] = {
    {"direction", "", "out, in or round", WORD},
    {"how", "", "isend, list or put", WORD},
    {"n", "1", "ranks that exchange a message with rank 0, from 1", COUNT},
    {"bytes", "B", "size of each message", BYTES},
    {"answer", "B", "size of each answer, used by direction round only", BYTES},
};

typedef struct {
  int rank, n;
  int request_bytes, reply_bytes; /* bytes of a message from rank 0, and of its reply */
  bool out, in, list, put;
  char *sent, *received; /* received holds n messages on rank 0 */
  MPI_Request *requests; /* receives before sends */
  int nrequests;
  /* A window for each direction, since a rank is target and origin at the same time in round. */
  MPI_Win out_window, in_window;
  MPI_Group partners; /* partners of the rank */
} State;

static void check(const Case *c, int ranks)
{
  const char *direction = c->fields[DIRECTION_COLUMN].text, *how = c->fields[HOW_COLUMN].text;
  const Field *n = &c->fields[N_COLUMN];
  if (strcmp(direction, "out") != 0 && strcmp(direction, "in") != 0 && strcmp(direction, "round") != 0)
    case_error(c, "direction", direction, columns[DIRECTION_COLUMN].meaning);
  if (strcmp(how, "isend") != 0 && strcmp(how, "list") != 0 && strcmp(how, "put") != 0)
    case_error(c, "how", how, columns[HOW_COLUMN].meaning);
  if (n->count < 1) case_error(c, "n", n->text, "a whole number from 1");
  require_ranks(c, "n", n->count + 1, ranks);
}

static char *received_message(State *s, int i) { return s->received + (size_t)i * (size_t)s->reply_bytes; }

static void make_list(State *s)
{
  bool root = s->rank == 0, receives = root ? s->in : s->out, sends = root ? s->out : s->in;
  int receive_bytes = root ? s->reply_bytes : s->request_bytes, send_bytes = root ? s->request_bytes : s->reply_bytes;
  int first = root ? 1 : 0, last = root ? s->n : s->rank > s->n ? -1 : 0; /* peers */
  for (int peer = first; receives && peer <= last; peer++)
    MPI_TRY(MPI_Recv_init(received_message(s, peer - first), receive_bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD,
                          &s->requests[s->nrequests++]));
  for (int peer = first; sends && peer <= last; peer++)
    MPI_TRY(MPI_Send_init(s->sent, send_bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &s->requests[s->nrequests++]));
}

static void make_windows(State *s)
{
  bool leaf = s->rank > 0 && s->rank <= s->n;
  MPI_Aint in_bytes = s->rank == 0 ? (MPI_Aint)s->n * s->reply_bytes : 0, out_bytes = leaf ? s->request_bytes : 0;
  s->partners = star_partners(s->rank, s->n);
  MPI_TRY(MPI_Win_create(s->received, out_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &s->out_window));
  MPI_TRY(MPI_Win_create(s->received, in_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &s->in_window));
}

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  const char *direction = c->fields[DIRECTION_COLUMN].text, *how = c->fields[HOW_COLUMN].text;
  bool round = strcmp(direction, "round") == 0;
  s->rank = run->rank;
  s->n = (int)c->fields[N_COLUMN].count;
  s->request_bytes = (int)c->fields[BYTES_COLUMN].count;
  s->reply_bytes = round ? (int)c->fields[ANSWER_COLUMN].count : s->request_bytes;
  s->out = strcmp(direction, "in") != 0;
  s->in = strcmp(direction, "out") != 0;
  s->list = strcmp(how, "list") == 0;
  s->put = strcmp(how, "put") == 0;
  run->participates = s->rank <= s->n;
  run->finish = s->in ? 0 : -1;
  s->sent = allocate_buffer(run->participates, (size_t)(s->rank == 0 ? s->request_bytes : s->reply_bytes));
  s->received = s->rank == 0 ? allocate_buffer((size_t)s->n, (size_t)s->reply_bytes)
                             : allocate_buffer(run->participates, (size_t)s->request_bytes);
  s->requests = allocate(2 * (size_t)s->n, sizeof *s->requests);
  if (s->list) make_list(s);
  if (s->put) make_windows(s);
  return s;
}

static void isend_root(State *s)
{
  int count = 0;
  for (int i = 0; s->in && i < s->n; i++)
    MPI_TRY(MPI_Irecv(received_message(s, i), s->reply_bytes, MPI_BYTE, i + 1, TAG, MPI_COMM_WORLD, &s->requests[count++]));
  for (int i = 0; s->out && i < s->n; i++)
    MPI_TRY(MPI_Isend(s->sent, s->request_bytes, MPI_BYTE, i + 1, TAG, MPI_COMM_WORLD, &s->requests[count++]));
  MPI_TRY(MPI_Waitall(count, s->requests, MPI_STATUSES_IGNORE));
}

static void isend_leaf(State *s)
{
  if (s->out) {
    MPI_TRY(MPI_Irecv(s->received, s->request_bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, s->requests));
    MPI_TRY(MPI_Wait(s->requests, MPI_STATUS_IGNORE));
  }
  if (s->in) {
    MPI_TRY(MPI_Isend(s->sent, s->reply_bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, s->requests));
    MPI_TRY(MPI_Wait(s->requests, MPI_STATUS_IGNORE));
  }
}

static void list_root(State *s)
{
  MPI_TRY(MPI_Startall(s->nrequests, s->requests));
  MPI_TRY(MPI_Waitall(s->nrequests, s->requests, MPI_STATUSES_IGNORE));
}

static void list_leaf(State *s)
{
  for (int i = 0; i < s->nrequests; i++) { /* the reply after its request */
    MPI_TRY(MPI_Start(&s->requests[i]));
    MPI_TRY(MPI_Wait(&s->requests[i], MPI_STATUS_IGNORE));
  }
}

static void put_root(State *s)
{
  if (s->in) MPI_TRY(MPI_Win_post(s->partners, 0, s->in_window));
  if (s->out) {
    MPI_TRY(MPI_Win_start(s->partners, 0, s->out_window));
    for (int i = 0; i < s->n; i++)
      MPI_TRY(MPI_Put(s->sent, s->request_bytes, MPI_BYTE, i + 1, 0, s->request_bytes, MPI_BYTE, s->out_window));
    MPI_TRY(MPI_Win_complete(s->out_window));
  }
  if (s->in) MPI_TRY(MPI_Win_wait(s->in_window));
}

static void put_leaf(State *s)
{
  if (s->out) {
    MPI_TRY(MPI_Win_post(s->partners, 0, s->out_window));
    MPI_TRY(MPI_Win_wait(s->out_window));
  }
  if (s->in) {
    MPI_Aint place = (MPI_Aint)(s->rank - 1) * s->reply_bytes;
    MPI_TRY(MPI_Win_start(s->partners, 0, s->in_window));
    MPI_TRY(MPI_Put(s->sent, s->reply_bytes, MPI_BYTE, 0, place, s->reply_bytes, MPI_BYTE, s->in_window));
    MPI_TRY(MPI_Win_complete(s->in_window));
  }
}

static void pass(void *state)
{
  State *s = state;
  if (s->rank > s->n) return;
  if (s->put)
    (s->rank == 0 ? put_root : put_leaf)(s);
  else if (s->list)
    (s->rank == 0 ? list_root : list_leaf)(s);
  else
    (s->rank == 0 ? isend_root : isend_leaf)(s);
}

static void cleanup(void *state)
{
  State *s = state;
  for (int i = 0; i < s->nrequests; i++) MPI_TRY(MPI_Request_free(&s->requests[i]));
  if (s->put) {
    MPI_TRY(MPI_Win_free(&s->in_window));
    MPI_TRY(MPI_Win_free(&s->out_window));
    MPI_TRY(MPI_Group_free(&s->partners));
  }
  free(s->sent);
  free(s->received);
  free(s->requests);
  free(s);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "fan", .title = "One rank and n others", .kind = "probe",
      .columns = columns, .ncolumns = 5, .min_ranks = 2, .timing = TIMED_BY_HARNESS,
      .check = check, .prepare = prepare, .pass = pass, .cleanup = cleanup,
  };
  return harness_main(argc, argv, &program);
}
