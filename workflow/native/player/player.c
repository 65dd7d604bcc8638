/* player: executes and measures any schedule file.
 *
 * In each of its steps, a rank posts its receives, posts its sends in row order, waits for the messages due in the step,
 * then does its local work. It enters its next step when it has finished the previous one. There is no barrier between
 * steps. Seconds are from the common start until the last rank has finished, or rank R if the column finish is R.
 *
 * With several waves, each rank executes its part repeatedly; seconds are the time between the ends of two waves.
 * Messages of different waves cannot match: a rank completes all messages of a wave before it posts any of the next, and
 * MPI matches the messages of a pair of ranks with one tag in the order of posting.
 *
 * The first warm-up pass sends and checks data, which differ in each wave (payload.c). Timed passes send whatever the
 * buffers contain.
 *
 *   mpiexec -n 16 player --cases cases.csv --out samples      cases.csv: id,schedule,finish[,waves]
 *   schedule file: step,wait,kind,rank,peer,peer_step,peer_wait,bytes,seconds,runs with kind send (rank to peer),
 *   reduce, copy, compute, and at the end result: the addresses of a reduction's result. The sender posts a message in
 *   step and waits for it in wait, the receiver in peer_step and peer_wait. Defaults: peer_step is step, and each wait is
 *   in the step of the post.
 *   runs: the contents of a message, ADDRESS+LENGTH;…
 */
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

enum { SCHEDULE_COLUMN, FINISH_COLUMN };
static const Column columns[] = {
    {"schedule", "", "path of the schedule file", WORD},
    {"finish", "", "all, or the rank whose end ends the sample", WORD},
};

typedef struct {
  Part part;
  Op *ops; /* of the part */
  const Run *run;
  int rank;
  bool sums; /* the operation is a reduction */
  char **buffers; /* of every op: the buffer of its message; not used for local work */
  Step *steps;
  int nsteps;
  int *waits;             /* indices of messages among the ops, in the order of waiting */
  MPI_Request *requests;  /* requests due in a step are contiguous */
  MPI_Request **request;  /* of every op */
  MPI_Request **due;      /* of every step: the first that it waits for */
  char *sent, *received, *result; /* messages in flight have disjoint buffers; others share memory */
  size_t sent_bytes, received_bytes, result_bytes;
} State;

/* Sets the rank whose end ends the sample, -1 for all. Returns false for invalid texts. */
static bool parse_finish(const char *text, int *finish)
{
  long long rank = -1;
  bool good = strcmp(text, "all") == 0 || (parse_integer(text, &rank) && rank >= 0 && rank < 1 << 30);
  *finish = (int)rank;
  return good;
}

static void check(const Case *c, int ranks)
{
  int finish;
  const char *text = c->fields[FINISH_COLUMN].text;
  if (!parse_finish(text, &finish)) case_error(c, "finish", text, columns[FINISH_COLUMN].meaning);
  require_ranks(c, "finish", (long long)finish + 1, ranks);
  Schedule schedule = read_schedule(c->fields[SCHEDULE_COLUMN].text);
  require_ranks(c, "schedule", schedule.ranks, ranks);
  free_schedule(&schedule);
}

static void raise_maximum(size_t *most, size_t value)
{
  if (value > *most) *most = value;
}

/* Allocates the buffers of all messages and of the local work. */
static void allocate_messages(State *s, int count)
{
  size_t *offsets = allocate((size_t)count, sizeof *offsets);
  Arena *sent = open_arena(), *received = open_arena();
  for (int i = 0; i < count; i++) {
    const Op *op = &s->ops[i];
    if (op->kind == SEND || op->kind == RECEIVE)
      offsets[i] = allocate_in_arena(op->kind == SEND ? sent : received, (size_t)op->bytes, op->step, op->wait);
    else
      raise_maximum(&s->result_bytes, (size_t)op->bytes);
  }
  s->sent_bytes = close_arena(sent);
  s->received_bytes = close_arena(received);
  raise_maximum(&s->received_bytes, s->result_bytes); /* local work reads received data */
  s->sent = allocate_buffer(s->sent_bytes, 1);
  s->received = allocate_buffer(s->received_bytes, 1);
  s->result = allocate_buffer(s->result_bytes, 1);
  s->buffers = allocate((size_t)count, sizeof *s->buffers);
  for (int i = 0; i < count; i++) s->buffers[i] = (s->ops[i].kind == SEND ? s->sent : s->received) + offsets[i];
  free(offsets);
}

/* Assigns requests in the order of waiting; the array is reused from its start whenever no message is in flight. */
static void assign_requests(State *s, int count)
{
  int *index = allocate((size_t)count, sizeof *index), *due = allocate((size_t)s->nsteps, sizeof *due);
  int base = 0, most = 0, posted = 0;
  for (int k = 0; k < s->nsteps; k++) {
    const Step *step = &s->steps[k];
    if (posted == step->due) base = step->due;
    posted += step->works - step->first;
    due[k] = step->due - base;
    for (int d = step->due; d < step->due_end; d++) index[s->waits[d]] = d - base;
    if (step->due_end - base > most) most = step->due_end - base;
  }
  s->requests = allocate((size_t)most, sizeof *s->requests);
  s->request = allocate((size_t)count, sizeof *s->request);
  s->due = allocate((size_t)s->nsteps, sizeof *s->due);
  for (int i = 0; i < count; i++) s->request[i] = &s->requests[index[i]];
  for (int k = 0; k < s->nsteps; k++) s->due[k] = &s->requests[due[k]];
  free(index);
  free(due);
}

/* Fills a buffer with ones, so that sums are never subnormal. */
static void fill_ones(char *buffer, size_t bytes)
{
  double *numbers = (double *)(void *)buffer;
  for (size_t i = 0; i < bytes / sizeof *numbers; i++) numbers[i] = 1;
}

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  Schedule schedule = {0};
  int own[2], most[2];
  if (run->rank == 0) schedule = read_schedule(c->fields[SCHEDULE_COLUMN].text);
  s->part = scatter_schedule(&schedule, run->rank, run->ranks);
  if (run->rank == 0) free_schedule(&schedule);
  int count = s->part.count;
  s->ops = s->part.ops;
  s->run = run;
  s->rank = run->rank;
  s->waits = allocate((size_t)count, sizeof *s->waits);
  s->steps = group_steps(s->ops, count, s->waits, &s->nsteps);
  allocate_messages(s, count);
  assign_requests(s, count);
  fill_ones(s->sent, s->sent_bytes);
  fill_ones(s->received, s->received_bytes);
  fill_ones(s->result, s->result_bytes);

  parse_finish(c->fields[FINISH_COLUMN].text, &run->finish);
  own[0] = count;
  own[1] = s->part.results;
  MPI_TRY(MPI_Allreduce(own, most, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
  run->participates = count > 0 || run->finish == run->rank || most[0] == 0; /* all ranks participate in an empty schedule */
  s->sums = most[1] > 0;
  return s;
}

static void post_receives(State *s, const Step *step)
{
  for (int i = step->first; i < step->sends; i++)
    MPI_TRY(MPI_Irecv(s->buffers[i], s->ops[i].bytes, MPI_BYTE, s->ops[i].peer, s->ops[i].tag, MPI_COMM_WORLD,
                      s->request[i]));
}

static void post_sends(State *s, const Step *step)
{
  for (int i = step->sends; i < step->works; i++)
    MPI_TRY(MPI_Isend(s->buffers[i], s->ops[i].bytes, MPI_BYTE, s->ops[i].peer, s->ops[i].tag, MPI_COMM_WORLD,
                      s->request[i]));
}

static void wait_all(State *s, const Step *step)
{
  MPI_TRY(MPI_Waitall(step->due_end - step->due, s->due[step - s->steps], MPI_STATUSES_IGNORE));
}

static void do_work(State *s, const Step *step)
{
  for (int i = step->works; i < step->end; i++) {
    const Op *op = &s->ops[i];
    if (op->kind == REDUCE)
      add_doubles((double *)(void *)s->result, (const double *)(void *)s->received, (size_t)op->bytes / sizeof(double));
    else if (op->kind == COPY)
      copy_bytes(s->result, s->received, (size_t)op->bytes);
    else
      clock_wait(op->seconds);
  }
}

static void pass(void *state)
{
  State *s = state;
  for (const Step *step = s->steps; step < s->steps + s->nsteps; step++) {
    post_receives(s, step);
    post_sends(s, step);
    wait_all(s, step);
    do_work(s, step);
  }
}

static bool combines(const State *s, const Step *step)
{
  for (int i = step->works; i < step->end; i++)
    if (s->ops[i].kind == REDUCE) return true;
  return false;
}

static void first_pass(void *state)
{
  State *s = state;
  Payload *payload = open_payload(&s->part, s->rank, s->sums, s->run->wave);
  for (const Step *step = s->steps; step < s->steps + s->nsteps; step++) {
    for (int i = step->first; i < step->sends; i++) memset(s->buffers[i], 0, (size_t)s->ops[i].bytes);
    for (int i = step->sends; i < step->works; i++) pack(payload, &s->ops[i], s->buffers[i]);
    post_receives(s, step);
    post_sends(s, step);
    wait_all(s, step);
    for (int d = step->due; d < step->due_end; d++) {
      const Op *op = &s->ops[s->waits[d]];
      if (op->kind == RECEIVE && !unpack(payload, op, s->buffers[s->waits[d]], combines(s, step)))
        DIE("message from rank %d to rank %d in step %d of wave %d (line %d of the schedule, %d bytes) arrived with "
            "wrong content", op->peer, op->rank, op->step, s->run->wave, op->row + 2, op->bytes);
    }
    do_work(s, step);
  }
  if (!results_are_exact(payload)) DIE("rank %d ends with a result that is not the sum of all ranks' data", s->rank);
  close_payload(payload);
  fill_ones(s->sent, s->sent_bytes);
  fill_ones(s->received, s->received_bytes);
  fill_ones(s->result, s->result_bytes);
}

static void cleanup(void *state)
{
  State *s = state;
  free_part(&s->part);
  free(s->buffers);
  free(s->steps);
  free(s->waits);
  free(s->requests);
  free(s->request);
  free(s->due);
  free(s->sent);
  free(s->received);
  free(s->result);
  free(s);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "player", .title = "Execution of a schedule", .kind = "player",
      .columns = columns, .ncolumns = 2, .min_ranks = 1, .timing = TIMED_BY_HARNESS, .streams = true,
      .check = check, .prepare = prepare, .first_pass = first_pass, .pass = pass, .cleanup = cleanup,
  };
  return harness_main(argc, argv, &program);
}
