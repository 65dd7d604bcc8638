/* deal.c: distribution of a schedule to the ranks, and the steps of a rank's part. */
#include "schedule.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { TAGS = 32768 }; /* every MPI has at least that many tags */

/* The parts of all ranks one after the other: how many ops and runs each has, and where its first is. */
typedef struct {
  Op *ops;
  DataRun *runs;
  int *counts, *starts, *run_counts, *run_starts;
} Deal;

static void place(const Schedule *schedule, Deal *deal, Op op, int *next, int *next_run)
{
  const DataRun *runs = &schedule->runs[op.run];
  int first = next_run[op.rank];
  op.run = first - deal->run_starts[op.rank];
  memcpy(&deal->runs[first], runs, (size_t)op.runs * sizeof *runs);
  next_run[op.rank] += op.runs;
  deal->ops[next[op.rank]++] = op;
}

static void add_up(const int *counts, int *starts, int ranks, const char *what)
{
  long long total = 0;
  for (int r = 0; r < ranks; r++) {
    starts[r] = (int)total;
    total += counts[r];
    if (total > INT_MAX) user_error("schedule: found more than 2147483647 %s, wanted fewer", what);
  }
  starts[ranks] = (int)total;
}

/* Counting sort by rank; a message counts for both of its ends. */
static Deal sort_by_rank(const Schedule *schedule, int ranks)
{
  size_t room = (size_t)ranks + 1;
  Deal deal = {.counts = allocate(room, sizeof(int)), .starts = allocate(room, sizeof(int)),
               .run_counts = allocate(room, sizeof(int)), .run_starts = allocate(room, sizeof(int))};
  for (int i = 0; i < schedule->count; i++) {
    const Op *op = &schedule->rows[i];
    int both = op->kind == SEND ? 2 : 1;
    for (int end = 0; end < both; end++) {
      int rank = end ? op->peer : op->rank;
      deal.counts[rank]++;
      deal.run_counts[rank] += op->runs;
    }
  }
  add_up(deal.counts, deal.starts, ranks, "ends of messages");
  add_up(deal.run_counts, deal.run_starts, ranks, "runs at both ends of messages");
  deal.ops = allocate((size_t)deal.starts[ranks], sizeof *deal.ops);
  deal.runs = allocate((size_t)deal.run_starts[ranks], sizeof *deal.runs);
  int *next = allocate(room, sizeof *next), *next_run = allocate(room, sizeof *next_run);
  memcpy(next, deal.starts, room * sizeof *next);
  memcpy(next_run, deal.run_starts, room * sizeof *next_run);
  for (int i = 0; i < schedule->count; i++) {
    Op op = schedule->rows[i];
    place(schedule, &deal, op, next, next_run);
    if (op.kind != SEND) continue;
    Op arrival = op;
    arrival.kind = RECEIVE;
    arrival.rank = op.peer;
    arrival.peer = op.rank;
    arrival.step = op.peer_step;
    arrival.wait = op.peer_wait;
    place(schedule, &deal, arrival, next, next_run);
  }
  free(next);
  free(next_run);
  return deal;
}

/* Every rank's own part of an array at rank 0. */
static void *scatter(const void *all, int *counts, int *starts, size_t size, int *count)
{
  MPI_TRY(MPI_Scatter(counts, 1, MPI_INT, count, 1, MPI_INT, 0, MPI_COMM_WORLD));
  void *part = allocate((size_t)*count, size);
  MPI_Datatype type;
  MPI_TRY(MPI_Type_contiguous((int)size, MPI_BYTE, &type));
  MPI_TRY(MPI_Type_commit(&type));
  MPI_TRY(MPI_Scatterv(all, counts, starts, type, part, *count, type, 0, MPI_COMM_WORLD));
  MPI_TRY(MPI_Type_free(&type));
  return part;
}

/* Both ends number the messages of their two ranks in the order of the file. */
static void number_messages(Part *part, int ranks)
{
  int *sent = allocate((size_t)ranks, sizeof *sent), *received = allocate((size_t)ranks, sizeof *received);
  for (Op *op = part->ops; op < part->ops + part->count; op++)
    if (op->kind == SEND || op->kind == RECEIVE) op->tag = (op->kind == SEND ? sent : received)[op->peer]++ % TAGS;
  free(sent);
  free(received);
}

Part deal_schedule(const Schedule *schedule, int rank, int ranks)
{
  Deal deal = {0};
  Part part = {.ranks = schedule->ranks};
  int runs;
  if (rank == 0) deal = sort_by_rank(schedule, ranks);
  MPI_TRY(MPI_Bcast(&part.ranks, 1, MPI_INT, 0, MPI_COMM_WORLD));
  part.ops = scatter(deal.ops, deal.counts, deal.starts, sizeof(Op), &part.count);
  part.runs = scatter(deal.runs, deal.run_counts, deal.run_starts, sizeof(DataRun), &runs);
  while (part.count > 0 && part.ops[part.count - 1].kind == RESULT) part.count--, part.results++;
  number_messages(&part, ranks);
  free(deal.ops);
  free(deal.runs);
  free(deal.counts);
  free(deal.starts);
  free(deal.run_counts);
  free(deal.run_starts);
  return part;
}

void free_part(Part *part)
{
  free(part->ops);
  free(part->runs);
}

static int phase(const Op *op) { return op->kind == RECEIVE ? 0 : op->kind == SEND ? 1 : 2; }

static int by_step(const void *one, const void *other)
{
  const Op *a = one, *b = other;
  if (a->step != b->step) return a->step < b->step ? -1 : 1;
  if (phase(a) != phase(b)) return phase(a) - phase(b);
  return a->row < b->row ? -1 : a->row > b->row;
}

typedef struct {
  int wait, place;
} Due;

static int by_wait(const void *one, const void *other)
{
  const Due *a = one, *b = other;
  if (a->wait != b->wait) return a->wait < b->wait ? -1 : 1;
  return a->place < b->place ? -1 : a->place > b->place;
}

static Due *in_order_of_waiting(const Op *ops, int count, int *messages)
{
  Due *dues = allocate((size_t)count, sizeof *dues);
  *messages = 0;
  for (int i = 0; i < count; i++)
    if (phase(&ops[i]) < 2) dues[(*messages)++] = (Due){ops[i].wait, i};
  qsort(dues, (size_t)*messages, sizeof *dues, by_wait);
  return dues;
}

Step *group_steps(Op *ops, int count, int *waits, int *steps)
{
  int messages, first = 0, due = 0;
  qsort(ops, (size_t)count, sizeof *ops, by_step);
  Due *dues = in_order_of_waiting(ops, count, &messages);
  Step *grouped = allocate((size_t)count + (size_t)messages, sizeof *grouped);
  *steps = 0;
  while (first < count || due < messages) {
    bool posts = first < count && (due == messages || ops[first].step <= dues[due].wait);
    int number = posts ? ops[first].step : dues[due].wait;
    Step step = {.first = first, .due = due};
    int *ends[3] = {&step.sends, &step.works, &step.end};
    for (int p = 0; p < 3; p++) {
      while (first < count && ops[first].step == number && phase(&ops[first]) == p) first++;
      *ends[p] = first;
    }
    for (; due < messages && dues[due].wait == number; due++) waits[due] = dues[due].place;
    step.due_end = due;
    grouped[(*steps)++] = step;
  }
  free(dues);
  return grouped;
}
