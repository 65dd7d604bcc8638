/* schedule.c: reading a schedule file. */
#include "schedule.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char header[] = "step,wait,kind,rank,peer,peer_step,peer_wait,bytes,seconds,runs";
enum { STEP, WAIT, KIND, RANK, PEER, PEER_STEP, PEER_WAIT, SIZE, DURATION, RUNS, FIELDS };

typedef struct {
  const char *path;
  int line;
} Position;

static _Noreturn void field_error(Position at, const char *column, const char *found, const char *wanted)
{
  user_error("%s:%d: column %s: found '%s', wanted %s", at.path, at.line, column, found, wanted);
}

static int parse_whole(Position at, const char *column, const char *text, const char *wanted)
{
  long long value;
  if (!parse_integer(text, &value) || value < 0 || value > INT_MAX) field_error(at, column, text, wanted);
  return (int)value;
}

/* The step of a wait; by default that of the post. */
static int parse_wait(Position at, const char *column, const char *text, int post)
{
  int step = *text ? parse_whole(at, column, text, "a whole number from 0 to 2147483647") : post;
  if (step < post) field_error(at, column, text, "no step before the one that posts the message");
  return step;
}

static Op parse_row(Position at, char **fields)
{
  static const struct { const char *name; OpKind kind; } kinds[] = {
      {"send", SEND}, {"reduce", REDUCE}, {"copy", COPY}, {"compute", COMPUTE}, {"result", RESULT}};
  Op op = {.peer = -1, .kind = -1};
  for (int k = 0; k < 5; k++)
    if (strcmp(fields[KIND], kinds[k].name) == 0) op.kind = (int)kinds[k].kind;
  if (op.kind < 0) field_error(at, "kind", fields[KIND], "send, reduce, copy, compute or result");
  op.step = op.wait = op.peer_step = op.peer_wait = parse_whole(at, "step", fields[STEP], "a whole number from 0 to 2147483647");
  op.rank = parse_whole(at, "rank", fields[RANK], "a rank, a whole number from 0 to 2147483646");
  if (op.kind == SEND) {
    op.peer = parse_whole(at, "peer", fields[PEER], "the receiving rank, a whole number from 0 to 2147483646");
    if (*fields[PEER_STEP]) op.peer_step = parse_whole(at, "peer_step", fields[PEER_STEP], "a whole number from 0 to 2147483647");
    op.wait = parse_wait(at, "wait", fields[WAIT], op.step);
    op.peer_wait = parse_wait(at, "peer_wait", fields[PEER_WAIT], op.peer_step);
  }
  if (op.kind == COMPUTE) {
    if (!parse_real(fields[DURATION], &op.seconds) || op.seconds < 0)
      field_error(at, "seconds", fields[DURATION], "a number of seconds from 0");
  } else {
    op.bytes = parse_whole(at, "bytes", fields[SIZE],
                     "a whole number of bytes from 0 to 2147483647, the most that one MPI message can count");
  }
  return op;
}

/* Runs are written ADDRESS+LENGTH;ADDRESS+LENGTH…; empty if unknown. */
static void parse_runs(Position at, char *text, Op *op, Schedule *schedule)
{
  static const char form[] = "ADDRESS+LENGTH;… of as many bytes as the message has";
  long long total = 0;
  op->run = schedule->nruns;
  for (char *next; text && *text; text = next) {
    DataRun *run = &schedule->runs[schedule->nruns++];
    if ((next = strchr(text, ';'))) *next++ = 0;
    char *plus = strchr(text, '+');
    if (!plus) field_error(at, "runs", text, form);
    *plus = 0;
    if (!parse_integer(text, &run->first) || run->first < 0) field_error(at, "runs", text, form);
    run->length = parse_whole(at, "runs", plus + 1, form);
    if (run->first > LLONG_MAX - run->length) field_error(at, "runs", text, form);
    total += run->length;
  }
  op->runs = schedule->nruns - op->run;
  if (op->runs && total != op->bytes) field_error(at, "runs", "other bytes", form);
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
  Position at = {path, 1};
  while ((line = next_line(&cursor))) {
    at.line++;
    int nfields = split_fields(line, fields, FIELDS);
    if (nfields != FIELDS) user_error("%s:%d: found %d fields, wanted %s", path, at.line, nfields, header);
    Op op = parse_row(at, fields);
    op.row = schedule.count;
    parse_runs(at, fields[RUNS], &op, &schedule);
    if (op.row > 0 && op.step < schedule.rows[op.row - 1].step)
      field_error(at, "step", fields[STEP], "rows sorted by step");
    if (op.row > 0 && op.kind != RESULT && schedule.rows[op.row - 1].kind == RESULT)
      field_error(at, "kind", fields[KIND], "only results after the first result");
    int top = op.rank > op.peer ? op.rank : op.peer;
    if (top == INT_MAX) field_error(at, "rank", "2147483647", "a rank below 2147483647");
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
