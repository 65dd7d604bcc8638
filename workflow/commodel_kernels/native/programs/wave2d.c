/* wave2d: steps of the wave equation on a plane over rectangles of cells (Rico-Gallego et al. 2017, section 4.2).
 *
 * In each step all ranks start together. Each rank sends the cells along its sides to the ranks with adjacent
 * rectangles, all messages at once, and then computes its cells (stencil.c). One sample is the longest communication
 * time of a rank in one step. The column `computation` has the longest computation time, including packing and
 * unpacking of the sides. Outside of the plane all values are 0.
 *
 * After every VERIFIED steps, and at the end, each rank verifies its rectangle, bit by bit, against a serial run: it
 * computes again, from the start, all cells that the rectangle depends on. A difference ends the program. Then the wave
 * starts again.
 *
 *   compute  0: no cells are stored or computed; the first pass checks the contents of the messages
 *
 *   mpiexec -n 8 wave2d --cases cases.csv --out samples
 *   cases.csv: id,partition,bytes,compute with bytes of one cell; a partition: rank,x,y,width,height in cells
 */
#include "kernels.h"

#include <stdlib.h>
#include <string.h>

enum { PARTITION_COLUMN, BYTES_COLUMN, COMPUTE_COLUMN, VERIFIED = 16 };
static const Column columns[] = {
    {"partition", "", "path of the partition", WORD},
    {"bytes", "B", "of one cell", BYTES},
    {"compute", "", "0 or 1", COUNT},
};

typedef struct {
  Run *run;
  Partition partition;
  Rectangle own;
  bool compute;
  Device device;
  Edges *edges;
  Task *task;
  AlignedRuns aligned;
  int steps; /* since the wave started */
} State;

static void check(const Case *c, int ranks)
{
  const Field *fields = c->fields;
  if (fields[COMPUTE_COLUMN].count > 1) case_error(c, "compute", fields[COMPUTE_COLUMN].text, "0 or 1");
  bool compute = fields[COMPUTE_COLUMN].count;
  if (compute && COMMODEL_SIMULATED)
    case_error(c, "compute", "1", "0: in simulated time nothing is computed");
  if (compute && fields[BYTES_COLUMN].count != sizeof(double))
    case_error(c, "bytes", fields[BYTES_COLUMN].text, "8: a cell is a double");
  Partition partition = read_partition(fields[PARTITION_COLUMN].text);
  require_ranks(c, "partition", partition.ranks, ranks);
  if (fields[BYTES_COLUMN].count > INT32_MAX / partition.side)
    case_error(c, "bytes", fields[BYTES_COLUMN].text, "at most 2147483647 bytes in a row of cells, one MPI message");
  free_partition(&partition);
  if (!compute) return;
  Device device = open_device(); /* only rank 0 reports a wrong environment */
  close_device(&device);
}

/* The cells of a rectangle at the start; beyond the plane they are 0. */
static void fill_start(double *cells, Rectangle r, int side, size_t stride)
{
  for (int i = 0; i < r.height; i++)
    for (int j = 0; j < r.width; j++) {
      int x = r.x + j, y = r.y + i;
      bool inside = x >= 0 && y >= 0 && x < side && y < side;
      cells[(size_t)i * stride + (size_t)j] = inside ? number_at(WAVE, (uint64_t)y, (uint64_t)x) : 0;
    }
}

static void start_wave(State *s)
{
  size_t rows = (size_t)s->own.height, width = (size_t)s->own.width;
  double *start = allocate(rows * width, sizeof *start);
  fill_start(start, s->own, s->partition.side, width);
  s->task = begin_task(&s->device, "wave", rows, width, 1, start);
  if (rows) copy_edges(start, rows, width, width, own_edges(s->edges));
  s->steps = 0;
  free(start);
}

static int smaller(int a, int b) { return a < b ? a : b; }

/* Verifies the rectangle. It depends on the cells within `steps` cells of it (`all`), since values spread by one cell in
 * each step; wrong values at the edge of `all` therefore do not reach the rectangle. */
static void verify_wave(State *s)
{
  Rectangle own = s->own, all;
  int side = s->partition.side, left = smaller(s->steps, own.x), top = smaller(s->steps, own.y);
  all.x = own.x - left;
  all.y = own.y - top;
  all.width = smaller(own.x + own.width + s->steps, side) - all.x;
  all.height = smaller(own.y + own.height + s->steps, side) - all.y;
  const double *result = read_result(s->task);
  if (own.width == 0) return;
  size_t stride = (size_t)all.width + 2, capacity = ((size_t)all.height + 2) * stride;
  double *current = allocate(capacity, sizeof *current), *old = allocate(capacity, sizeof *old);
  fill_start(current + stride + 1, all, side, stride);
  memcpy(old, current, capacity * sizeof *old);
  for (int step = 0; step < s->steps; step++) {
    wave_step(old + stride + 1, current + stride + 1, (size_t)all.height, (size_t)all.width, stride, 1);
    double *swapped = old;
    old = current;
    current = swapped;
  }
  for (int i = 0; i < own.height; i++)
    for (int j = 0; j < own.width; j++) {
      double cell = result[(size_t)i * (size_t)own.width + (size_t)j];
      double wanted = current[(size_t)(i + top + 1) * stride + (size_t)(j + left + 1)];
      if (!same_cell(&s->device, cell, wanted, s->steps))
        DIE("the wave does not verify: after %d steps the cell (%d, %d) of rank %d is %.17g, wanted %.17g", s->steps,
            own.x + j, own.y + i, s->run->rank, cell, wanted);
    }
  free(current);
  free(old);
}

static void end_wave(State *s)
{
  verify_wave(s);
  end_task(s->task);
}

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  s->run = run;
  s->partition = broadcast_partition(c->fields[PARTITION_COLUMN].text, run->rank);
  s->own = rectangle_of(&s->partition, run->rank);
  s->compute = c->fields[COMPUTE_COLUMN].count;
  s->edges = open_edges(&s->partition, run->rank, (size_t)c->fields[BYTES_COLUMN].count);
  s->aligned = make_aligned_runs(run->alignment);
  if (!s->compute) return s;
  s->device = open_device();
  start_wave(s);
  return s;
}

static double communicate(void *state, int turn)
{
  State *s = state;
  (void)turn;
  double start = clock_now();
  exchange_edges(s->edges);
  return clock_now() - start;
}

static void pass(void *state)
{
  State *s = state;
  double own[2] = {0, 0}, longest[2] = {0, 0};
  if (s->compute && s->steps == VERIFIED) {
    end_wave(s);
    start_wave(s);
  }
  s->aligned.late = 0;
  own[0] = run_aligned(&s->aligned, communicate, s, s->steps);
  if (s->compute) {
    double start = clock_now();
    update_task(s->task, received_edges(s->edges), own_edges(s->edges));
    own[1] = clock_now() - start;
    s->steps++;
  }
  reduce_sample(s->run, &s->aligned, 1, own, longest, s->compute);
}

/* Without computation, messages are checked with two different contents, so that data of the first exchange are not
 * taken for data of the second. */
static void first_pass(void *state)
{
  State *s = state;
  for (int turn = 0; !s->compute && turn < 2; turn++) {
    fill_edges(s->edges, turn);
    exchange_edges(s->edges);
    check_edges(s->edges, turn);
  }
  pass(state);
}

static void cleanup(void *state)
{
  State *s = state;
  if (s->compute) {
    end_wave(s);
    close_device(&s->device);
  }
  close_edges(s->edges);
  free_partition(&s->partition);
  free(s);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "wave2d", .title = "Wave equation on a plane", .columns = columns, .ncolumns = 3, .computes = true,
      .check = check, .prepare = prepare, .first_pass = first_pass, .pass = pass, .cleanup = cleanup,
  };
  return kernel_main(argc, argv, program);
}
