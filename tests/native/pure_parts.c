/* units.c: the parts of the harness that are pure, checked against slow or known answers. One line per failure. */
#include "harness.h"
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                                        \
      failures++;                                                                                                      \
    }                                                                                                                  \
  } while (0)

/* The same rank from binomial coefficients added one by one; exact enough up to some 200 samples. */
static int slow_rank(int n)
{
  double term = 1, below = 1, total = 1;
  int rank = 0;
  for (int i = 0; i < n; i++) total *= 2;
  for (int k = 1; k <= n / 2; k++) { /* below = sum of C(n, j) for j < k */
    if (below <= 0.025 * total) rank = k;
    term *= (double)(n - k + 1) / k;
    below += term;
  }
  return rank;
}

static int check_stopping(void)
{
  int failures = 0;
  CHECK(median_rank(5) == 0 && median_rank(6) == 1 && median_rank(10) == 2 && median_rank(100) == 40);
  for (int n = MIN_SAMPLES_TO_STOP; n < 200; n++) CHECK(median_rank(n) == slow_rank(n));
  int big = median_rank(1000000); /* n/2 - 1.96 sqrt(n)/2 = 499020 */
  CHECK(big > 499015 && big < 499025);
  double values[] = {3, 1, 2, 1.5, 2.5, 100};
  sort_doubles(values, 6);
  CHECK(median_sorted(values, 6) == 2.25 && median_sorted(values, 5) == 2);
  CHECK(!median_is_precise(values, 6, 0.02) && median_is_precise(values, 6, 22));
  return failures;
}

static int check_shuffle(void)
{
  int failures = 0, order[100], again[100], seen[100] = {0}, moved = 0;
  shuffle(order, 100, 0);
  for (int i = 0; i < 100; i++) CHECK(order[i] == i);
  shuffle(order, 100, 7);
  shuffle(again, 100, 7);
  CHECK(memcmp(order, again, sizeof order) == 0);
  for (int i = 0; i < 100; i++) seen[order[i]]++, moved += order[i] != i;
  for (int i = 0; i < 100; i++) CHECK(seen[i] == 1);
  CHECK(moved > 80);
  shuffle(order, 0, 7);
  return failures;
}

static int check_text(void)
{
  int failures = 0;
  long long whole;
  double real;
  char line[] = "a,,b", *fields[2], lines[] = "one\r\n\ntwo", *cursor = lines;
  CHECK(parse_integer("-12", &whole) && whole == -12);
  CHECK(!parse_integer("", &whole) && !parse_integer("1.0", &whole) && !parse_integer(" 1", &whole));
  CHECK(!parse_integer("99999999999999999999", &whole));
  CHECK(parse_real("1.5e-6", &real) && real == 1.5e-6);
  CHECK(!parse_real("nan", &real) && !parse_real("1e999", &real) && !parse_real("1,5", &real));
  CHECK(split_fields(line, fields, 2) == 3 && strcmp(fields[1], "") == 0);
  CHECK(strcmp(next_line(&cursor), "one") == 0 && strcmp(next_line(&cursor), "") == 0);
  CHECK(strcmp(next_line(&cursor), "two") == 0 && next_line(&cursor) == NULL);
  return failures;
}

static int check_steps(void)
{
  int failures = 0, steps, waits[5];
  Op ops[] = {{.step = 1, .wait = 1, .kind = SEND, .row = 0},    {.step = 1, .wait = 1, .kind = REDUCE, .row = 1},
              {.step = 1, .wait = 1, .kind = RECEIVE, .row = 2}, {.step = 1, .wait = 1, .kind = SEND, .row = 3},
              {.step = 5, .wait = 5, .kind = COMPUTE, .row = 4}};
  Step *grouped = group_steps(ops, 5, waits, &steps);
  CHECK(steps == 2);
  CHECK(grouped[0].first == 0 && grouped[0].sends == 1 && grouped[0].works == 3 && grouped[0].end == 4);
  CHECK(grouped[0].due == 0 && grouped[0].due_end == 3 && waits[0] == 0 && waits[1] == 1 && waits[2] == 2);
  CHECK(grouped[1].first == 4 && grouped[1].works == 4 && grouped[1].end == 5);
  CHECK(grouped[1].due == 3 && grouped[1].due_end == 3);
  CHECK(ops[0].row == 2 && ops[1].row == 0 && ops[2].row == 3 && ops[3].row == 1 && ops[4].row == 4);
  free(grouped);
  return failures;
}

/* A send that is waited for after the next step, in which nothing is posted; and a receive in between. */
static int check_late_waits(void)
{
  int failures = 0, steps, waits[3];
  Op ops[] = {{.step = 2, .wait = 2, .kind = RECEIVE, .row = 0},
              {.step = 0, .wait = 3, .kind = SEND, .row = 1},
              {.step = 0, .wait = 0, .kind = SEND, .row = 2}};
  Step *grouped = group_steps(ops, 3, waits, &steps);
  CHECK(steps == 3);
  CHECK(waits[0] == 1 && waits[1] == 2 && waits[2] == 0); /* rows 2, 0, 1 */
  CHECK(grouped[0].due == 0 && grouped[0].due_end == 1 && grouped[1].due_end == 2 && grouped[2].due_end == 3);
  CHECK(grouped[2].first == 3 && grouped[2].end == 3);
  free(grouped);
  return failures;
}

static int check_arena(void)
{
  int failures = 0;
  Arena *arena = open_arena();
  CHECK(allocate_in_arena(arena, 100, 0, 2) == 0 && allocate_in_arena(arena, 1, 0, 0) == 128 && allocate_in_arena(arena, 64, 0, 1) == 192);
  CHECK(allocate_in_arena(arena, 65, 1, 1) == 256); /* the gap is too small */
  CHECK(allocate_in_arena(arena, 64, 2, 2) == 128 && allocate_in_arena(arena, 64, 2, 2) == 192); /* what was in use up to 1 is free */
  CHECK(allocate_in_arena(arena, 100, 3, 3) == 0);
  CHECK(close_arena(arena) == 384);
  return failures;
}

static int check_buffers(void)
{
  int failures = 0;
  for (size_t size = 0; size < 20000; size += 613) {
    char *buffer = allocate_buffer(3, size), *other = allocate_buffer(size, 1);
    CHECK((uintptr_t)buffer % 4096 == 0 && (uintptr_t)other % 4096 == 0); /* a page is that or a multiple of it */
    CHECK(buffer + 3 * size <= other || other + size <= buffer);
    free(buffer);
    free(other);
  }
  return failures;
}

static bool owns(const int *owners, const char *wanted)
{
  for (int i = 0; wanted[i]; i++)
    if (owners[i] != (wanted[i] == '-' ? -1 : wanted[i] - '0')) return false;
  return true;
}

/* `folder` has the files of two devices, one of which is next to the CPUs 4 to 5 and 7. */
static int check_sharing(const char *folder)
{
  int failures = 0, owners[8];
  const int cpus[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  bool *near = read_near_cpus(folder, "0000:3b:00.0", cpus, 8), *everywhere = read_near_cpus(folder, "0000:00:02.0", cpus, 8);
  CHECK(!read_near_cpus(folder, "0000:ff:00.0", cpus, 8));
  CHECK(near[4] && near[5] && near[7] && !near[0] && !near[3] && !near[6]);
  Share shares[] = {{0, 2, -1, NULL}, {0, 1, 0, NULL}, {0, 2, -1, NULL}, {0, 1, 1, NULL}};
  share_cpus(shares, 4, owners, 8);
  CHECK(owns(owners, "001223--"));
  shares[1].near = shares[3].near = everywhere;
  share_cpus(shares, 4, owners, 8);
  CHECK(owns(owners, "001223--"));
  shares[1].near = near;
  share_cpus(shares, 4, owners, 8);
  CHECK(owns(owners, "002213--"));
  shares[3].near = near;
  share_cpus(shares, 4, owners, 8);
  CHECK(owns(owners, "002213--"));
  shares[1].count = 4; /* more than are near */
  share_cpus(shares, 3, owners, 8);
  CHECK(owns(owners, "00111122"));
  shares[1].count = 0; /* gets one that is left, near if it can */
  share_cpus(shares, 4, owners, 8);
  CHECK(owns(owners, "002231--"));
  shares[0].count = 5; /* and none if nothing is left */
  share_cpus(shares, 4, owners, 8);
  CHECK(owns(owners, "00003022"));
  free(near);
  free(everywhere);
  return failures;
}

int main(int argc, char **argv)
{
  Schedule schedule = read_schedule(argc > 1 ? argv[1] : "");
  int failures = check_stopping() + check_shuffle() + check_text() + check_steps() + check_late_waits() +
                 check_arena() + check_buffers() + check_sharing(argc > 2 ? argv[2] : "");
  CHECK(schedule.count == 2 && schedule.ranks == 4);
  CHECK(schedule.rows[0].peer == 3 && schedule.rows[0].bytes == 8 && schedule.rows[1].seconds == 0.5);
  free_schedule(&schedule);
  return failures > 0;
}
