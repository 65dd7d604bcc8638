/* summa: the matrix product C = A B by SUMMA over rectangles of blocks (Rico-Gallego et al. 2017, Algorithm 1).
 *
 * Every rank has its rectangle of A, B and C, in blocks of `bytes`, b x b doubles. In iteration k all ranks start
 * together. Each receives its part of the pivot column and row k (pivots.c), and adds their product to its rectangle of C.
 * One sample is the sum over the iterations of the longest communication time of a rank, including packing. The column
 * `computation` has the same sum for the products. A sample whose C does not verify (product.c) ends the program.
 *
 *   iteration   all, or the number of the one measured iteration
 *   overlapped  1: all messages are non-blocking. Those of every iteration but the first are posted before the product of
 *               the previous iteration, and awaited after it; the sample includes the times of posting and waiting. While a
 *               GPU multiplies, its rank receives these messages, and begins to copy them to the GPU
 *   barrier     0: ranks do not synchronize between iterations, and samples include waits for late ranks
 *   compute     0: no matrices are stored or multiplied; the first pass checks the contents of messages. If the partition
 *               has speeds, an overlapped product is a wait of the same length
 *
 * In simulated time, an iteration after a barrier with the same messages as the previous one takes the same time, and is
 * not executed.
 *
 *   mpiexec -n 6 summa --cases cases.csv --out samples
 *   cases.csv: id,partition,bytes,iteration,overlapped,barrier,compute; a partition: rank,x,y,width,height in blocks[,speed]
 */
#include "kernels.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { PARTITION_COLUMN, BYTES_COLUMN, ITERATION_COLUMN, OVERLAPPED_COLUMN, BARRIER_COLUMN, COMPUTE_COLUMN };
static const Column columns[] = {
    {"partition", "", "path of the partition", WORD},
    {"bytes", "B", "of one block", BYTES},
    {"iteration", "", "all, or the number of an iteration", WORD},
    {"overlapped", "", "0 or 1", COUNT},
    {"barrier", "", "0 or 1", COUNT},
    {"compute", "", "0 or 1", COUNT},
};

typedef struct {
  Run *run;
  Partition partition;
  Rectangle own;
  int side, first, last; /* of a block, in doubles; iterations */
  bool overlapped, barrier, compute;
  double declared_seconds; /* seconds of a product that is not computed */
  Device device;
  double *a, *b;
  Pivots *pivots;
  Product *product;
  Task *task;
  double *times, *longest; /* of every iteration: communication, then computation */
  AlignedRuns aligned;
} State;

static bool parse_iteration(const char *text, int side, int *first, int *last)
{
  long long k = 0;
  *first = 0;
  *last = side;
  if (strcmp(text, "all") == 0) return true;
  if (!parse_integer(text, &k) || k < 0 || k >= side) return false;
  *first = (int)k;
  *last = *first + 1;
  return true;
}

/* The first iteration whose product is computed: with overlap, the previous one of the first measured iteration. */
static int first_product(const State *s) { return s->overlapped && s->first ? s->first - 1 : s->first; }

static void check(const Case *c, int ranks)
{
  const Field *fields = c->fields;
  int first, last;
  char wanted[96];
  for (int k = OVERLAPPED_COLUMN; k <= COMPUTE_COLUMN; k++)
    if (fields[k].count > 1) case_error(c, columns[k].name, fields[k].text, "0 or 1");
  bool compute = fields[COMPUTE_COLUMN].count;
  if (compute && COMMODEL_SIMULATED)
    case_error(c, "compute", "1", "0: in simulated time nothing is computed");
  if (compute && !block_side(fields[BYTES_COLUMN].count))
    case_error(c, "bytes", fields[BYTES_COLUMN].text, "8 b^2 for a block of b x b doubles");
  Partition partition = read_partition(fields[PARTITION_COLUMN].text);
  if (!partition.columns)
    case_error(c, "partition", fields[PARTITION_COLUMN].text, "rectangles in columns of equal widths");
  require_ranks(c, "partition", partition.ranks, ranks);
  snprintf(wanted, sizeof wanted, "all, or a whole number from 0 to %d", partition.side - 1);
  if (!parse_iteration(fields[ITERATION_COLUMN].text, partition.side, &first, &last))
    case_error(c, "iteration", fields[ITERATION_COLUMN].text, wanted);
  if (fields[BYTES_COLUMN].count > INT32_MAX / partition.side)
    case_error(c, "bytes", fields[BYTES_COLUMN].text, "at most 2147483647 bytes in a row of blocks, one MPI message");
  free_partition(&partition);
  if (!compute) return;
  Device device = open_device(); /* only rank 0 reports a wrong environment */
  close_device(&device);
}

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  const Field *fields = c->fields;
  s->run = run;
  s->aligned = make_aligned_runs(run->alignment);
  s->partition = broadcast_partition(fields[PARTITION_COLUMN].text, run->rank);
  s->own = rectangle_of(&s->partition, run->rank);
  s->overlapped = fields[OVERLAPPED_COLUMN].count;
  s->barrier = fields[BARRIER_COLUMN].count;
  s->compute = fields[COMPUTE_COLUMN].count;
  if (s->overlapped && !s->compute) s->declared_seconds = computation_seconds(&s->partition, run->rank);
  parse_iteration(fields[ITERATION_COLUMN].text, s->partition.side, &s->first, &s->last);
  size_t iterations = (size_t)(s->last - s->first), bytes = (size_t)fields[BYTES_COLUMN].count;
  s->times = allocate(2 * iterations, sizeof *s->times);
  s->longest = allocate(2 * iterations, sizeof *s->longest);
  if (s->compute) {
    s->device = open_device();
    s->side = block_side(fields[BYTES_COLUMN].count);
    s->a = make_numbers_of(MATRIX_A, s->own, s->side);
    s->b = make_numbers_of(MATRIX_B, s->own, s->side);
    s->product = open_product(&s->partition, run->rank, s->side, first_product(s), s->last, s->a, s->b);
  }
  s->pivots = open_pivots(&s->partition, run->rank, bytes, s->side, s->a, s->b);
  return s;
}

/* Sends and receives the messages of iteration k, including packing. Returns the seconds. */
static double communicate(void *state, int k)
{
  State *s = state;
  int slot = k % 2;
  double start = clock_now();
  post_column(s->pivots, k, slot);
  if (s->overlapped)
    post_row(s->pivots, k, slot);
  else
    send_row(s->pivots, k, slot);
  wait_pivots(s->pivots, slot);
  return clock_now() - start;
}

static double multiply(State *s, int k)
{
  int slot = k % 2;
  double start = clock_now();
  if (!s->compute) return s->declared_seconds > 0 ? clock_wait(s->declared_seconds) : 0;
  const double *const in[4] = {pivot_column(s->pivots, slot), pivot_row(s->pivots, k, slot)};
  update_task(s->task, in, (double *const[4]){0});
  return clock_now() - start;
}

/* Multiplies on a GPU. If the messages of iteration k + 1 arrive meanwhile, they are loaded. */
static double multiply_apart(State *s, int k)
{
  const int slot = k % 2, next_slot = (k + 1) % 2;
  const double *const in[4] = {pivot_column(s->pivots, slot), pivot_row(s->pivots, k, slot)};
  const double *const next[4] = {pivot_column(s->pivots, next_slot), pivot_row(s->pivots, k + 1, next_slot)};
  double start = clock_now();
  if (!is_loaded(s->task)) load_task(s->task, in);
  start_task(s->task);
  while (!task_is_finished(s->task, (double *const[4]){0})) {
    sched_yield(); /* the device may be this processor */
    if (!is_loaded(s->task) && have_pivots_arrived(s->pivots, next_slot)) load_task(s->task, next);
  }
  return clock_now() - start;
}

static void iterate(State *s, int k, double *communication, double *computation)
{
  *communication = s->barrier ? run_aligned(&s->aligned, communicate, s, k) : communicate(s, k);
  *computation = multiply(s, k);
}

/* Exchanges the messages of the next iteration during the product of iteration k. It is not repeated if a rank is late. */
static void iterate_overlapped(State *s, int k, double *next, double *computation)
{
  Lateness late = s->barrier ? align_pass(s->run->alignment, s->aligned.lead) : IN_TIME;
  double start = clock_now();
  post_column(s->pivots, k + 1, (k + 1) % 2);
  post_row(s->pivots, k + 1, (k + 1) % 2);
  double posting = clock_now() - start;
  *computation = s->compute && computes_apart(s->task) ? multiply_apart(s, k) : multiply(s, k);
  start = clock_now();
  wait_pivots(s->pivots, (k + 1) % 2);
  *next = posting + clock_now() - start;
  if (s->barrier) s->aligned.late += !reduce_lateness(&s->aligned, late);
}

/* Runs the measured iterations, after the messages of the previous one. */
static void run_overlapped(State *s, double *communication, double *computation)
{
  int k = first_product(s);
  double first_seconds = run_aligned(&s->aligned, communicate, s, k), before = 0;
  if (k == s->first) communication[0] = first_seconds;
  for (; k < s->last - 1; k++)
    iterate_overlapped(s, k, &communication[k + 1 - s->first], k < s->first ? &before : &computation[k - s->first]);
  computation[k - s->first] = multiply(s, k);
}

/* Whether iteration k has the same messages as the previous one: no rectangle begins at column or row k. */
static bool repeats_last_iteration(const State *s, int k)
{
  if (!COMMODEL_SIMULATED || !s->barrier || s->overlapped || k == s->first) return false;
  for (const Rectangle *r = s->partition.of; r < s->partition.of + s->partition.ranks; r++)
    if (r->width && (r->x == k || r->y == k)) return false;
  return true;
}

static void pass(void *state)
{
  State *s = state;
  size_t side = (size_t)s->side;
  int n = s->last - s->first;
  s->aligned.late = 0;
  if (s->compute)
    s->task = begin_task(&s->device, "gemm", (size_t)s->own.height * side, (size_t)s->own.width * side, side, NULL);
  MPI_TRY(MPI_Barrier(MPI_COMM_WORLD));
  if (s->overlapped)
    run_overlapped(s, s->times, s->times + n);
  else
    for (int i = 0; i < n; i++) {
      if (repeats_last_iteration(s, s->first + i))
        s->times[i] = s->times[i - 1];
      else
        iterate(s, s->first + i, &s->times[i], &s->times[n + i]);
    }
  bool computes = s->compute || (s->overlapped && s->partition.speed);
  reduce_sample(s->run, &s->aligned, n, s->times, s->longest, computes);
  if (!s->compute) return;
  verify_product(s->product, read_result(s->task));
  end_task(s->task);
}

/* Without matrices, the messages are checked. */
static void first_pass(void *state)
{
  State *s = state;
  for (int k = s->first; !s->compute && k < s->last; k++) {
    if (repeats_last_iteration(s, k)) continue;
    fill_pivots(s->pivots, k, k % 2);
    communicate(s, k);
    check_pivots(s->pivots, k, k % 2);
  }
  pass(state);
}

static void cleanup(void *state)
{
  State *s = state;
  close_pivots(s->pivots);
  if (s->compute) {
    close_product(s->product);
    close_device(&s->device);
  }
  free_partition(&s->partition);
  free(s->a);
  free(s->b);
  free(s->times);
  free(s->longest);
  free(s);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "summa", .title = "Matrix product by SUMMA", .columns = columns, .ncolumns = 6, .computes = true,
      .check = check, .prepare = prepare, .first_pass = first_pass, .pass = pass, .cleanup = cleanup,
  };
  return kernel_main(argc, argv, program);
}
