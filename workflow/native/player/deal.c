/* deal.c: scattering of a schedule to the ranks, and the steps of a rank's part. */
#include "schedule.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { TAGS = 32768 }; /* every MPI has at least that many tags */

/* The ops and runs of all ranks, sorted by rank: their numbers for each rank, and the index of the first. */
typedef struct {
  Op *ops;
  DataRun *runs;
  int *counts, *starts, *run_counts, *run_starts;
} SortedOps;

static void add_op(const Schedule *schedule, SortedOps *sorted, Op op, int *next, int *next_run)
{
  const DataRun *runs = &schedule->runs[op.run];
  int first = next_run[op.rank];
  op.run = first - sorted->run_starts[op.rank];
  memcpy(&sorted->runs[first], runs, (size_t)op.runs * sizeof *runs);
  next_run[op.rank] += op.runs;
  sorted->ops[next[op.rank]++] = op;
}

static void sum_counts(const int *counts, int *starts, int ranks, const char *what)
{
  long long total = 0;
  for (int r = 0; r < ranks; r++) {
    starts[r] = (int)total;
    total += counts[r];
    if (total > INT_MAX) user_error("schedule: found more than 2147483647 %s, wanted fewer", what);
  }
  starts[ranks] = (int)total;
}

/* Counting sort by rank; a message has an op for each of its ends. */
static SortedOps sort_by_rank(const Schedule *schedule, int ranks)
{
  size_t size = (size_t)ranks + 1;
  SortedOps sorted = {.counts = allocate(size, sizeof(int)), .starts = allocate(size, sizeof(int)),
               .run_counts = allocate(size, sizeof(int)), .run_starts = allocate(size, sizeof(int))};
  for (int i = 0; i < schedule->count; i++) {
    const Op *op = &schedule->rows[i];
    int both = op->kind == SEND ? 2 : 1;
    for (int end = 0; end < both; end++) {
      int rank = end ? op->peer : op->rank;
      sorted.counts[rank]++;
      sorted.run_counts[rank] += op->runs;
    }
  }
  sum_counts(sorted.counts, sorted.starts, ranks, "ends of messages");
  sum_counts(sorted.run_counts, sorted.run_starts, ranks, "runs at both ends of messages");
  sorted.ops = allocate((size_t)sorted.starts[ranks], sizeof *sorted.ops);
  sorted.runs = allocate((size_t)sorted.run_starts[ranks], sizeof *sorted.runs);
  int *next = allocate(size, sizeof *next), *next_run = allocate(size, sizeof *next_run);
  memcpy(next, sorted.starts, size * sizeof *next);
  memcpy(next_run, sorted.run_starts, size * sizeof *next_run);
  for (int i = 0; i < schedule->count; i++) {
    Op op = schedule->rows[i];
    add_op(schedule, &sorted, op, next, next_run);
    if (op.kind != SEND) continue;
    Op arrival = op;
    arrival.kind = RECEIVE;
    arrival.rank = op.peer;
    arrival.peer = op.rank;
    arrival.step = op.peer_step;
    arrival.wait = op.peer_wait;
    add_op(schedule, &sorted, arrival, next, next_run);
  }
  free(next);
  free(next_run);
  return sorted;
}

/* Scatters an array of rank 0. Returns the rank's own part. */
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

Part scatter_schedule(const Schedule *schedule, int rank, int ranks)
{
  SortedOps sorted = {0};
  Part part = {.ranks = schedule->ranks};
  int runs;
  if (rank == 0) sorted = sort_by_rank(schedule, ranks);
  MPI_TRY(MPI_Bcast(&part.ranks, 1, MPI_INT, 0, MPI_COMM_WORLD));
  part.ops = scatter(sorted.ops, sorted.counts, sorted.starts, sizeof(Op), &part.count);
  part.runs = scatter(sorted.runs, sorted.run_counts, sorted.run_starts, sizeof(DataRun), &runs);
  while (part.count > 0 && part.ops[part.count - 1].kind == RESULT) part.count--, part.results++;
  number_messages(&part, ranks);
  free(sorted.ops);
  free(sorted.runs);
  free(sorted.counts);
  free(sorted.starts);
  free(sorted.run_counts);
  free(sorted.run_starts);
  return part;
}

void free_part(Part *part)
{
  free(part->ops);
  free(part->runs);
}

static int phase(const Op *op) { return op->kind == RECEIVE ? 0 : op->kind == SEND ? 1 : 2; }

static int compare_steps(const void *one, const void *other)
{
  const Op *a = one, *b = other;
  if (a->step != b->step) return a->step < b->step ? -1 : 1;
  if (phase(a) != phase(b)) return phase(a) - phase(b);
  return a->row < b->row ? -1 : a->row > b->row;
}

typedef struct {
  int wait, op; /* step of the wait; index of the op */
} Wait;

static int compare_waits(const void *one, const void *other)
{
  const Wait *a = one, *b = other;
  if (a->wait != b->wait) return a->wait < b->wait ? -1 : 1;
  return a->op < b->op ? -1 : a->op > b->op;
}

static Wait *list_waits(const Op *ops, int count, int *messages)
{
  Wait *list = allocate((size_t)count, sizeof *list);
  *messages = 0;
  for (int i = 0; i < count; i++)
    if (phase(&ops[i]) < 2) list[(*messages)++] = (Wait){ops[i].wait, i};
  qsort(list, (size_t)*messages, sizeof *list, compare_waits);
  return list;
}

Step *group_steps(Op *ops, int count, int *waits, int *steps)
{
  int messages, first = 0, due = 0;
  qsort(ops, (size_t)count, sizeof *ops, compare_steps);
  Wait *list = list_waits(ops, count, &messages);
  Step *grouped = allocate((size_t)count + (size_t)messages, sizeof *grouped);
  *steps = 0;
  while (first < count || due < messages) {
    bool posts = first < count && (due == messages || ops[first].step <= list[due].wait);
    int number = posts ? ops[first].step : list[due].wait;
    Step step = {.first = first, .due = due};
    int *ends[3] = {&step.sends, &step.works, &step.end};
    for (int p = 0; p < 3; p++) {
      while (first < count && ops[first].step == number && phase(&ops[first]) == p) first++;
      *ends[p] = first;
    }
    for (; due < messages && list[due].wait == number; due++) waits[due] = list[due].op;
    step.due_end = due;
    grouped[(*steps)++] = step;
  }
  free(list);
  return grouped;
}
