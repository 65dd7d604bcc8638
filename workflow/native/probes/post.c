/* post: time for which rank 0 posts n operations, one to each of ranks 1..n. Their completion is not timed.
 *
 *   isend  n calls of MPI_Isend                          T = n o_s under LogGP
 *   list   one MPI_Startall of n persistent sends        T <= n o_s, since they are posted together
 *   put    n calls of MPI_Put in an open epoch           T = n o_s, or less if the library defers them
 *   irecv  n calls of MPI_Irecv                          T = 0: in LogGP, o_r occurs on arrival
 *
 * A sample is the time of all n. Receives are posted before the ranks are aligned. The messages of irecv are sent only
 * after rank 0 has posted its receives, so that none of them is unexpected.
 *
 *   mpiexec -n 9 post --cases cases.csv --out samples        cases.csv: id,how,n,bytes
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

enum { HOW_COLUMN, N_COLUMN, BYTES_COLUMN, TAG = 0, GO = 1 };
typedef enum { ISEND, LIST, PUT, IRECV, HOWS } How;
static const char *const hows[] = {"isend", "list", "put", "irecv"};
static const Column columns[] = {
    {"how", "", "isend, list, put or irecv", WORD},
    {"n", "1", "operations, one for each of as many ranks, from 1", COUNT},
    {"bytes", "B", "size of each message", BYTES},
};

typedef struct {
  Run *run;
  int rank, n, bytes;
  How how;
  char *sent, *received; /* irecv: received holds n messages on rank 0 */
  MPI_Request *requests;
  MPI_Win window;
  MPI_Group partners; /* partners of the rank */
} State;

static How find_how(const char *text)
{
  int how = 0;
  while (how < HOWS && strcmp(hows[how], text) != 0) how++;
  return (How)how;
}

static void check(const Case *c, int ranks)
{
  const Field *how = &c->fields[HOW_COLUMN], *n = &c->fields[N_COLUMN];
  if (find_how(how->text) == HOWS) case_error(c, "how", how->text, columns[HOW_COLUMN].meaning);
  if (n->count < 1) case_error(c, "n", n->text, "a whole number from 1");
  require_ranks(c, "n", n->count + 1, ranks);
}

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  s->run = run;
  s->rank = run->rank;
  s->how = find_how(c->fields[HOW_COLUMN].text);
  s->n = (int)c->fields[N_COLUMN].count;
  s->bytes = (int)c->fields[BYTES_COLUMN].count;
  size_t arrivals = s->rank == 0 && s->how == IRECV ? (size_t)s->n : s->rank <= s->n;
  s->sent = allocate_buffer(s->rank <= s->n, (size_t)s->bytes);
  s->received = allocate_buffer(arrivals, (size_t)s->bytes);
  s->requests = allocate((size_t)s->n, sizeof *s->requests);
  for (int i = 0; s->how == LIST && s->rank == 0 && i < s->n; i++)
    MPI_TRY(MPI_Send_init(s->sent, s->bytes, MPI_BYTE, i + 1, TAG, MPI_COMM_WORLD, &s->requests[i]));
  if (s->how == PUT) {
    s->partners = star_partners(s->rank, s->n);
    int open = s->rank <= s->n ? s->bytes : 0;
    MPI_TRY(MPI_Win_create(s->received, open, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &s->window));
  }
  return s;
}

static void post_receives(void *state)
{
  State *s = state;
  if (s->rank == 0 || s->rank > s->n || s->how == PUT) return;
  int bytes = s->how == IRECV ? 0 : s->bytes, tag = s->how == IRECV ? GO : TAG;
  MPI_TRY(MPI_Irecv(s->received, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, s->requests));
}

static void post_all(State *s)
{
  switch (s->how) {
  case ISEND:
    for (int i = 0; i < s->n; i++)
      MPI_TRY(MPI_Isend(s->sent, s->bytes, MPI_BYTE, i + 1, TAG, MPI_COMM_WORLD, &s->requests[i]));
    return;
  case LIST:
    MPI_TRY(MPI_Startall(s->n, s->requests));
    return;
  case PUT:
    for (int i = 0; i < s->n; i++)
      MPI_TRY(MPI_Put(s->sent, s->bytes, MPI_BYTE, i + 1, 0, s->bytes, MPI_BYTE, s->window));
    return;
  case IRECV:
    for (int i = 0; i < s->n; i++)
      MPI_TRY(MPI_Irecv(s->received + (size_t)i * (size_t)s->bytes, s->bytes, MPI_BYTE, i + 1, TAG, MPI_COMM_WORLD,
                        &s->requests[i]));
    return;
  case HOWS:
    return;
  }
}

static void pass_root(State *s)
{
  double start = clock_now();
  if (s->how == PUT) MPI_TRY(MPI_Win_start(s->partners, 0, s->window));
  double posting = clock_now();
  post_all(s);
  double posted = clock_now();
  if (s->how == PUT) MPI_TRY(MPI_Win_complete(s->window));
  for (int i = 0; s->how == IRECV && i < s->n; i++)
    MPI_TRY(MPI_Send(NULL, 0, MPI_BYTE, i + 1, GO, MPI_COMM_WORLD));
  if (s->how != PUT) MPI_TRY(MPI_Waitall(s->n, s->requests, MPI_STATUSES_IGNORE));
  s->run->excluded = (posting - start) + (clock_now() - posted);
}

static void pass_leaf(State *s)
{
  if (s->how == PUT) {
    MPI_TRY(MPI_Win_post(s->partners, 0, s->window));
    MPI_TRY(MPI_Win_wait(s->window));
    return;
  }
  MPI_TRY(MPI_Wait(s->requests, MPI_STATUS_IGNORE));
  if (s->how == IRECV) MPI_TRY(MPI_Send(s->sent, s->bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD));
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
  for (int i = 0; s->how == LIST && s->rank == 0 && i < s->n; i++) MPI_TRY(MPI_Request_free(&s->requests[i]));
  if (s->how == PUT) {
    MPI_TRY(MPI_Win_free(&s->window));
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
      .name = "post", .title = "Posting operations", .kind = "probe",
      .columns = columns, .ncolumns = 3, .min_ranks = 2, .timing = TIMED_BY_ROOT,
      .check = check, .prepare = prepare, .before_alignment = post_receives, .pass = pass, .cleanup = cleanup,
  };
  return harness_main(argc, argv, &program);
}
