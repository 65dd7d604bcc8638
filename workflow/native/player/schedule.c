/* schedule.c: reading a schedule file and dealing it out to the ranks. */
#include "schedule.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char header[] = "step,wait,kind,rank,peer,peer_step,peer_wait,bytes,seconds,runs";
enum { TAGS = 32768 }; /* every MPI has at least that many tags */
enum { STEP, WAIT, KIND, RANK, PEER, PEER_STEP, PEER_WAIT, SIZE, DURATION, RUNS, FIELDS };

typedef struct {
  const char *path;
  int line;
} Place;

static _Noreturn void wrong(Place at, const char *column, const char *found, const char *wanted)
{
  user_error("%s:%d: column %s: found '%s', wanted %s", at.path, at.line, column, found, wanted);
}

static int whole(Place at, const char *column, const char *text, const char *wanted)
{
  long long value;
  if (!parse_integer(text, &value) || value < 0 || value > INT_MAX) wrong(at, column, text, wanted);
  return (int)value;
}

/* The step of a wait; where none is given, that of the post. */
static int wait_of(Place at, const char *column, const char *text, int post)
{
  int step = *text ? whole(at, column, text, "a whole number from 0") : post;
  if (step < post) wrong(at, column, text, "no step before the one that posts the message");
  return step;
}

static Op parse_row(Place at, char **fields)
{
  static const struct { const char *name; OpKind kind; } kinds[] = {
      {"send", SEND}, {"reduce", REDUCE}, {"copy", COPY}, {"compute", COMPUTE}, {"result", RESULT}};
  Op op = {.peer = -1, .kind = -1};
  for (int k = 0; k < 5; k++)
    if (strcmp(fields[KIND], kinds[k].name) == 0) op.kind = (int)kinds[k].kind;
  if (op.kind < 0) wrong(at, "kind", fields[KIND], "send, reduce, copy, compute or result");
  op.step = op.wait = op.peer_step = op.peer_wait = whole(at, "step", fields[STEP], "a whole number from 0");
  op.rank = whole(at, "rank", fields[RANK], "a rank, a whole number from 0");
  if (op.kind == SEND) {
    op.peer = whole(at, "peer", fields[PEER], "the receiving rank, a whole number from 0");
    if (op.peer == op.rank) wrong(at, "peer", fields[PEER], "another rank than the sending one");
    if (*fields[PEER_STEP]) op.peer_step = whole(at, "peer_step", fields[PEER_STEP], "a whole number from 0");
    op.wait = wait_of(at, "wait", fields[WAIT], op.step);
    op.peer_wait = wait_of(at, "peer_wait", fields[PEER_WAIT], op.peer_step);
  }
  if (op.kind == COMPUTE) {
    if (!parse_real(fields[DURATION], &op.seconds) || op.seconds < 0)
      wrong(at, "seconds", fields[DURATION], "a number of seconds from 0");
  } else {
    op.bytes = whole(at, "bytes", fields[SIZE],
                     "a whole number of bytes from 0 to 2147483647, the most that one MPI message can count");
  }
  return op;
}

/* Runs are written ADDRESS+LENGTH;ADDRESS+LENGTH…; nothing where a file does not tell. */
static void parse_runs(Place at, char *text, Op *op, Schedule *schedule)
{
  static const char form[] = "ADDRESS+LENGTH;… of as many bytes as the message has";
  long long total = 0;
  op->run = schedule->nruns;
  for (char *next; text && *text; text = next) {
    DataRun *run = &schedule->runs[schedule->nruns++];
    if ((next = strchr(text, ';'))) *next++ = 0;
    char *plus = strchr(text, '+');
    if (!plus) wrong(at, "runs", text, form);
    *plus = 0;
    if (!parse_integer(text, &run->first) || run->first < 0) wrong(at, "runs", text, form);
    run->length = whole(at, "runs", plus + 1, form);
    total += run->length;
  }
  op->runs = schedule->nruns - op->run;
  if (op->runs && total != op->bytes) wrong(at, "runs", "other bytes", form);
}

/* How many runs a file holds at most. */
static size_t count_runs(const char *text)
{
  size_t count = 0;
  for (const char *c = text; *c; c++) count += *c == '+';
  return count;
}

Schedule read_schedule(const char *path)
{
  char *text = read_text(path, "schedule"), *cursor = text, *fields[FIELDS], *line = next_line(&cursor);
  if (!line || strcmp(line, header) != 0)
    user_error("%s:1: found '%.80s', wanted the header %s", path, line ? line : "", header);
  size_t lines = 1;
  for (const char *c = cursor; *c; c++) lines += *c == '\n';
  if (lines > INT_MAX - 1) user_error("%s: found %zu rows, wanted at most 2147483646", path, lines);

  size_t runs = count_runs(cursor);
  if (runs > INT_MAX) user_error("%s: found %zu runs, wanted at most 2147483647", path, runs);
  Schedule schedule = {.rows = allocate(lines, sizeof(Op)), .runs = allocate(runs, sizeof(DataRun))};
  Place at = {path, 1};
  while ((line = next_line(&cursor))) {
    at.line++;
    int nfields = split_fields(line, fields, FIELDS);
    if (nfields != FIELDS) user_error("%s:%d: found %d fields, wanted %s", path, at.line, nfields, header);
    Op op = parse_row(at, fields);
    op.row = schedule.count;
    parse_runs(at, fields[RUNS], &op, &schedule);
    if (op.row > 0 && op.step < schedule.rows[op.row - 1].step)
      wrong(at, "step", fields[STEP], "rows sorted by step");
    int top = op.rank > op.peer ? op.rank : op.peer;
    if (top == INT_MAX) wrong(at, "rank", "2147483647", "a rank below 2147483647");
    if (top >= schedule.ranks) schedule.ranks = top + 1;
    schedule.rows[schedule.count++] = op;
  }
  free(text);
  return schedule;
}

void free_schedule(Schedule *schedule)
{
  free(schedule->rows);
  free(schedule->runs);
}

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

/* Both ends of a message count those of their two ranks in the same order, that of the file. */
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
