/* schedule.c: reading a schedule file and dealing it out to the ranks. */
#include "schedule.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char header[] = "step,kind,rank,peer,bytes,seconds";
enum { STEP, KIND, RANK, PEER, SIZE, DURATION, FIELDS };

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

static Op parse_row(Place at, char **fields)
{
  static const struct { const char *name; OpKind kind; } kinds[] = {
      {"send", SEND}, {"reduce", REDUCE}, {"copy", COPY}, {"compute", COMPUTE}};
  Op op = {.peer = -1, .kind = -1};
  for (int k = 0; k < 4; k++)
    if (strcmp(fields[KIND], kinds[k].name) == 0) op.kind = (int)kinds[k].kind;
  if (op.kind < 0) wrong(at, "kind", fields[KIND], "send, reduce, copy or compute");
  op.step = whole(at, "step", fields[STEP], "a whole number from 0");
  op.rank = whole(at, "rank", fields[RANK], "a rank, a whole number from 0");
  if (op.kind == SEND) {
    op.peer = whole(at, "peer", fields[PEER], "the receiving rank, a whole number from 0");
    if (op.peer == op.rank) wrong(at, "peer", fields[PEER], "another rank than the sending one");
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

Schedule read_schedule(const char *path)
{
  char *text = read_text(path, "schedule"), *cursor = text, *fields[FIELDS], *line = next_line(&cursor);
  if (!line || strcmp(line, header) != 0)
    user_error("%s:1: found '%.80s', wanted the header %s", path, line ? line : "", header);
  size_t lines = 1;
  for (const char *c = cursor; *c; c++) lines += *c == '\n';
  if (lines > INT_MAX - 1) user_error("%s: found %zu rows, wanted at most 2147483646", path, lines);

  Schedule schedule = {.rows = allocate(lines, sizeof(Op))};
  Place at = {path, 1};
  while ((line = next_line(&cursor))) {
    at.line++;
    int found = split_fields(line, fields, FIELDS);
    if (found != FIELDS) user_error("%s:%d: found %d fields, wanted %s", path, at.line, found, header);
    Op op = parse_row(at, fields);
    op.row = schedule.count;
    if (op.row > 0 && op.step < schedule.rows[op.row - 1].step)
      wrong(at, "step", fields[STEP], "rows sorted by step");
    int top = op.rank > op.peer ? op.rank : op.peer;
    if (top >= schedule.ranks) schedule.ranks = top + 1;
    schedule.rows[schedule.count++] = op;
  }
  free(text);
  return schedule;
}

void free_schedule(Schedule *schedule) { free(schedule->rows); }

/* Counting sort by rank; a message counts for both of its ends. */
static Op *sort_by_rank(const Schedule *schedule, int ranks, int *counts, int *starts)
{
  long long total = 0;
  for (int i = 0; i < schedule->count; i++) {
    const Op *op = &schedule->rows[i];
    counts[op->rank]++;
    if (op->kind == SEND) counts[op->peer]++;
  }
  for (int r = 0; r < ranks; r++) {
    starts[r] = (int)total;
    total += counts[r];
    if (total > INT_MAX) user_error("schedule: found more than 2147483647 ends of messages, wanted fewer");
  }
  Op *sorted = allocate((size_t)total, sizeof *sorted);
  int *next = allocate((size_t)ranks, sizeof *next);
  memcpy(next, starts, (size_t)ranks * sizeof *next);
  for (int i = 0; i < schedule->count; i++) {
    Op op = schedule->rows[i];
    sorted[next[op.rank]++] = op;
    if (op.kind != SEND) continue;
    Op arrival = op;
    arrival.kind = RECEIVE;
    arrival.rank = op.peer;
    arrival.peer = op.rank;
    sorted[next[arrival.rank]++] = arrival;
  }
  free(next);
  return sorted;
}

Op *deal_schedule(const Schedule *schedule, int rank, int ranks, int *count)
{
  int *counts = NULL, *starts = NULL;
  Op *sorted = NULL;
  if (rank == 0) {
    counts = allocate((size_t)ranks, sizeof *counts);
    starts = allocate((size_t)ranks, sizeof *starts);
    sorted = sort_by_rank(schedule, ranks, counts, starts);
  }
  MPI_TRY(MPI_Scatter(counts, 1, MPI_INT, count, 1, MPI_INT, 0, MPI_COMM_WORLD));
  Op *mine = allocate((size_t)*count, sizeof *mine);
  MPI_Datatype type;
  MPI_TRY(MPI_Type_contiguous((int)sizeof(Op), MPI_BYTE, &type));
  MPI_TRY(MPI_Type_commit(&type));
  MPI_TRY(MPI_Scatterv(sorted, counts, starts, type, mine, *count, type, 0, MPI_COMM_WORLD));
  MPI_TRY(MPI_Type_free(&type));
  free(counts);
  free(starts);
  free(sorted);
  return mine;
}

static int phase(const Op *op) { return op->kind == RECEIVE ? 0 : op->kind == SEND ? 1 : 2; }

Step *group_steps(Op *ops, int count, int *steps)
{
  Step *grouped = allocate((size_t)count, sizeof *grouped);
  Op *ordered = allocate((size_t)count, sizeof *ordered);
  *steps = 0;
  for (int first = 0, end; first < count; first = end) {
    int bounds[4] = {first, first, first, first}, next = first;
    for (end = first; end < count && ops[end].step == ops[first].step; end++)
      ;
    for (int p = 0; p < 3; p++) {
      for (int i = first; i < end; i++)
        if (phase(&ops[i]) == p) ordered[next++] = ops[i];
      bounds[p + 1] = next;
    }
    grouped[(*steps)++] = (Step){bounds[0], bounds[1], bounds[2], bounds[3]};
  }
  memcpy(ops, ordered, (size_t)count * sizeof *ops);
  free(ordered);
  return grouped;
}
